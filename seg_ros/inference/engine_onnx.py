"""The deployed network in ONNX Runtime: on a CPU, or on a GPU by CUDA or TensorRT."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from seg_ros.errors import EngineError
from seg_ros.inference.kept import Kept
from seg_ros.inference.nvidia import gpu_names, tensorrt_version
from seg_ros.inference.onnx_graph import export_graph, fixed_to, labels_only
from seg_ros.inference.onnx_providers import (
    CUDA,
    TENSORRT,
    choose_device,
    choose_precision,
    providers_for,
)
from seg_ros.inference.tensorrt_cache import EngineCache, cache_root, engine_name
from seg_ros.model_file import Model

NO_LOG = 4  # what matters is in the exceptions


class OnnxEngine:
    """Implements ``seg_ros.inference.engines.Engine``.

    On a GPU, TensorRT is used where ONNX Runtime and the system have it: one engine for each
    shape, built when the shape comes for the first time and kept in the user's cache folder.

    :param device: 'auto' (the first CUDA GPU, else the CPU), 'cpu', 'cuda' or 'cuda:N'.
    :param precision: 'auto' is that of an int8 file, float16 on a GPU, else float32.
    :param threads: on the CPU; 0 leaves ONNX Runtime's choice.
    :param announce: is told, in a line, of what takes minutes and what cannot be kept.
    :raises ConfigError: no such device, or it lacks the precision.
    :raises EngineError: the network cannot be exported.
    """

    name = 'onnxruntime'

    def __init__(self, model: Model, device: str, precision: str, threads: int,
                 announce: Callable[[str], None]) -> None:
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
        # TensorRT makes float16 of float32 itself, and better: layer by layer.
        half = self.precision == 'float16' and not self._uses_tensorrt
        self._graph: bytes | None = model.onnx if model.onnx is not None else export_graph(
            model, torch.float16 if half else torch.float32)
        self._sessions: Kept[onnxruntime.InferenceSession] = Kept()

    def infer(self, rgb: np.ndarray,
              confidence: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        if self._graph is None:
            raise EngineError('onnxruntime: the engine has been closed')
        try:
            graph = self._graph
            # TensorRT has an engine for each shape, which serves both: it takes minutes.
            key = (rgb.shape, True) if self._uses_tensorrt else (None, confidence)
            session = self._sessions.get(key, lambda: self._open_for(graph, *key))
            results = session.run(None, {'rgb': rgb})
        except EngineError:
            raise
        except Exception as error:  # ONNX Runtime's errors have no base of their own
            reason = ' '.join(str(error).split())
            if 'allocate' in reason or isinstance(error, MemoryError):
                reason += '; set a smaller network_size'
            raise EngineError(f'onnxruntime on {self.device}: failed on pictures of shape '
                              f'{rgb.shape}: {reason}') from error
        return results[0], results[1] if confidence else None

    def close(self) -> None:
        self._graph = None
        self._sessions.clear()

    def _open_for(self, graph: bytes, shape: tuple[int, ...] | None,
                  confidence: bool) -> onnxruntime.InferenceSession:
        """Open a session for one shape; for any, where that is None."""
        if not confidence:  # a session computes all its outputs, whichever are asked for
            graph = labels_only(graph)
        if shape is None:
            return self._open(graph, None)
        return self._build(fixed_to(graph, shape), shape)

    def _open(self, graph: bytes, cache: Path | None) -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = NO_LOG
        # Else its threads wait busily after each inference: 188 instead of 139 ms of CPU time for
        # a picture of 360x480 by two threads.
        options.add_session_config_entry('session.force_spinning_stop', '1')
        providers = providers_for(self.device, self.precision, self._uses_tensorrt, cache)
        # Else it prints to standard output, and goes on with another provider.
        session = onnxruntime.InferenceSession(graph, options, providers, enable_fallback=0)
        if self.device != 'cpu' and CUDA not in session.get_providers():
            raise EngineError(f'onnxruntime on {self.device}: its CUDA provider cannot be loaded; '
                              'install the CUDA and cuDNN that it was built for, or give the '
                              'device cpu')
        return session

    # What follows was written by ONNX Runtime's documentation, and has never been run.

    def _build(self, graph: bytes, shape: tuple[int, ...]) -> onnxruntime.InferenceSession:
        """Open a session of TensorRT, which builds its engine unless it is kept."""
        name = engine_name(graph, self.precision, self._gpu, onnxruntime.__version__,
                           self._tensorrt)
        if kept := self._cache.find(name):
            try:
                session = self._open(graph, kept)
                if TENSORRT in session.get_providers():
                    return session
            except Exception as error:  # see infer()
                self._announce(f'{kept}: this TensorRT engine cannot be used: {error}')
        cache = self._cache.make(name)
        batch, height, width = shape[:3]
        self._announce(f'TensorRT builds an engine for {batch} x {width}x{height} on {self._gpu}, '
                       'which takes minutes' + (f'; it is kept in {cache}' if cache else ''))
        session = self._open(graph, cache)
        if TENSORRT not in session.get_providers():
            self._announce(f'TensorRT cannot run this network; CUDA runs it on {self._gpu}')
        return session
