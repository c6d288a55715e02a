"""The deployed network in ONNX Runtime: on a CPU, or on a GPU by CUDA or TensorRT."""

import os
import time
from collections.abc import Sequence

import numpy as np
import onnxruntime
import torch

from seg_ros.errors import EngineError
from seg_ros.inference.announce import Announce
from seg_ros.inference.kept import Kept
from seg_ros.inference.nvidia import gpu_names, tensorrt_version
from seg_ros.inference.onnx_graph import export_graph, fixed_to, labels_only
from seg_ros.inference.onnx_providers import (
    CUDA,
    TENSORRT,
    Provider,
    choose_device,
    choose_precision,
    providers_for,
    tensorrt_for,
)
from seg_ros.inference.tensorrt_cache import EngineCache, cache_root, engine_name
from seg_ros.model_file import Model

NO_LOG = 4  # what matters is in the exceptions


class OnnxEngine:
    """Implements ``seg_ros.inference.engines.Engine``.

    On a GPU, TensorRT is used where ONNX Runtime and the system have it: one engine for each
    shape, built when the shape comes for the first time and kept in the user's cache folder.
    Should that fail, CUDA runs the network from then on.

    :param device: 'auto' (the first CUDA GPU, else the CPU), 'cpu', 'cuda' or 'cuda:N'.
    :param precision: 'auto' is that of an int8 file, float16 on a GPU, else float32.
    :param threads: on the CPU; 0 leaves ONNX Runtime's choice.
    :param announce: is told, in a line, of what takes minutes and what cannot be kept.
    :raises ConfigError: no such device, or it lacks the precision.
    :raises EngineError: the network cannot be exported.
    """

    name = 'onnxruntime'

    def __init__(self, model: Model, device: str, precision: str, threads: int,
                 announce: Announce) -> None:
        if device == 'auto' and model.precision == 'int8':
            device = 'cpu'  # such a file is for CPUs
        gpus = gpu_names()
        available = onnxruntime.get_available_providers()
        self.device = choose_device(device, available, len(gpus))
        self._tensorrt = tensorrt_version() if (
            self.device != 'cpu' and TENSORRT in available) else None
        self._uses_tensorrt = self._tensorrt is not None
        self.precision = choose_precision(model, self.device, self._uses_tensorrt, precision)
        self._gpu = gpus[int(self.device[5:])] if self.device != 'cpu' else ''
        self._threads = threads
        self._announce = announce
        self._cache = EngineCache(cache_root(os.environ), announce)
        self._model = model
        self._graph: bytes | None = self._make_graph()
        self._sessions: Kept[onnxruntime.InferenceSession] = Kept()

    def infer(self, rgb: np.ndarray,
              confidence: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        if self._graph is None:
            raise EngineError('onnxruntime: the engine has been closed')
        try:
            session = self._find_session(self._graph, rgb.shape, confidence)
            results = session.run(None, {'rgb': rgb})
        except EngineError:
            raise
        except Exception as error:  # ONNX Runtime's errors have no base of their own
            reason = _in_a_line(error)
            if 'allocate' in reason or isinstance(error, MemoryError):
                reason += '; set a smaller network_size'
            raise EngineError(f'onnxruntime on {self.device}: failed on pictures of shape '
                              f'{rgb.shape}: {reason}') from error
        return results[0], results[1] if confidence else None

    def close(self) -> None:
        self._graph = None
        self._sessions.clear()

    def _make_graph(self) -> bytes:
        """Write the graph as it suits the providers; the precision follows where it is given."""
        # TensorRT makes float16 of float32 itself, and better: layer by layer.
        half = self.precision == 'float16' and not self._uses_tensorrt
        if self._model.onnx is None:
            return export_graph(self._model, torch.float16 if half else torch.float32)
        if half:
            self.precision = 'float32'
        return self._model.onnx

    def _find_session(self, graph: bytes, shape: tuple[int, ...],
                      confidence: bool) -> onnxruntime.InferenceSession:
        if self._uses_tensorrt:
            try:  # one engine for each shape, with confidence or without: it takes minutes
                return self._sessions.get(shape, lambda: self._build(fixed_to(graph, shape),
                                                                     shape))
            except Exception as error:  # see infer()
                graph = self._graph = self._leave_tensorrt(error)
        # A session computes all its outputs, whichever are asked for.
        return self._sessions.get(confidence, lambda: self._open(
            graph if confidence else labels_only(graph), providers_for(self.device)))

    def _open(self, graph: bytes, providers: list[Provider]) -> onnxruntime.InferenceSession:
        session = open_session(graph, providers, self._threads)
        found = session.get_providers()
        if self.device != 'cpu' and CUDA not in found:
            raise EngineError(f'onnxruntime on {self.device}: its CUDA provider cannot be loaded; '
                              'install the CUDA and cuDNN that it was built for, or give the '
                              'device cpu')
        if providers[0][0] == TENSORRT and TENSORRT not in found:
            raise EngineError('TensorRT cannot be loaded')
        return session

    # What follows has been run without TensorRT only, with a stand-in for it.

    def _build(self, graph: bytes, shape: tuple[int, ...]) -> onnxruntime.InferenceSession:
        """Open a session of TensorRT, which builds its engine unless it is kept."""
        half = self.precision == 'float16'
        name = engine_name(graph, self.precision, self._gpu, onnxruntime.__version__,
                           self._tensorrt)
        if kept := self._cache.find(name):
            try:
                return self._open(graph, tensorrt_for(self.device, half, kept))
            except Exception as error:  # see infer()
                self._announce(f'{kept}: this TensorRT engine cannot be used: '
                               f'{_in_a_line(error)}')
        batch, height, width = shape[:3]
        with self._cache.build(name, instead_of=kept) as folder:
            self._announce(f'TensorRT builds an engine for {batch} x {width}x{height} on '
                           f'{self._gpu}, which takes minutes'
                           + ('; it is kept for the next time' if folder else ''))
            began_s = time.monotonic()
            session = self._open(graph, tensorrt_for(self.device, half, folder))
            self._announce(f'TensorRT has built its engine in {time.monotonic() - began_s:.0f} s',
                           warning=False)
        return session

    def _leave_tensorrt(self, error: Exception) -> bytes:
        """Go on with CUDA alone; return the graph for it."""
        self._sessions.clear()
        self._uses_tensorrt = False
        graph = self._make_graph()
        self._announce(f'TensorRT failed; CUDA runs the network on {self._gpu} from now on, in '
                       f'{self.precision}: {_in_a_line(error)}')
        return graph


def open_session(graph: bytes, providers: Sequence[Provider],
                 threads: int) -> onnxruntime.InferenceSession:
    """Make a graph ready to run; what ONNX Runtime raises has no base of its own."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = NO_LOG
    # Else its threads wait busily after each inference: 188 instead of 139 ms of CPU time for
    # a picture of 360x480 by two threads.
    options.add_session_config_entry('session.force_spinning_stop', '1')
    # Without its fallback, which prints to standard output and goes on with another provider.
    return onnxruntime.InferenceSession(graph, options, providers, enable_fallback=0)


def _in_a_line(error: Exception) -> str:
    return ' '.join(str(error).split())
