"""The deployed network in PyTorch, on the CPU or a CUDA GPU."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from seg_ros.errors import ConfigError, EngineError
from seg_ros.inference.deploy import DeployedNetwork
from seg_ros.inference.kept import Kept
from seg_ros.model_file import Model

DTYPES = {'float32': torch.float32, 'float16': torch.float16, 'bfloat16': torch.bfloat16}


class TorchEngine:
    """Implements ``seg_ros.inference.engines.Engine``.

    On a GPU the network is captured once for each input shape as a CUDA graph, as a small
    network is bound by the launches of its kernels.

    :param device: 'auto' (the first CUDA GPU, else the CPU), 'cpu', 'cuda' or 'cuda:N'.
    :param precision: 'auto' is float16 on a GPU and float32 on the CPU.
    :param threads: on the CPU, for the whole process; 0 leaves torch's choice.
    :param announce: told, in a line, what the user should know.
    :raises ConfigError: no such device, or it lacks the precision.
    :raises EngineError: the network does not fit on the device.
    """

    name = 'torch'

    def __init__(self, model: Model, device: str, precision: str, threads: int,
                 announce: Callable[[str], None]) -> None:
        self._device = _find_device(device)
        self._announce = announce
        self.on_gpu = self._device.type == 'cuda'
        if precision == 'float16' and not self.on_gpu:
            raise ConfigError("precision 'float16': the torch engine has float32 and bfloat16 on "
                              'the CPU')
        if threads > 0:
            torch.set_num_threads(threads)
        self.device = str(self._device)
        self.precision = {'auto': 'float16' if self.on_gpu else 'float32'}.get(precision,
                                                                              precision)
        try:
            network = DeployedNetwork(model, DTYPES[self.precision]).to(self._device)
        except RuntimeError as error:
            raise EngineError(f'torch on {self.device}: {error}') from error
        if self.on_gpu:  # on the CPU this gains nothing
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._network: DeployedNetwork | None = network
        self._graphs: Kept[CapturedGraph] = Kept()
        self._captures = self.on_gpu

    def infer(self, rgb: np.ndarray,
              confidence: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        with self.failures_told(rgb.shape):
            labels, probabilities = self.run(torch.from_numpy(rgb).to(self._device))
            return labels.cpu().numpy(), probabilities.cpu().numpy() if confidence else None

    @torch.no_grad()
    def run(self, rgb: Tensor) -> tuple[Tensor, Tensor]:
        """Infer on the device, without waiting for it.

        :param rgb: (B, H, W, 3) uint8 on the device.
        :return: as :meth:`infer`, on the device.
        """
        if self._network is None:
            raise EngineError('torch: the engine has been closed')
        if self._captures:
            graph = self._find_graph(self._network, rgb)
            if graph is not None:
                return graph.run(rgb)
        return self._network(rgb)

    def _find_graph(self, network: DeployedNetwork, rgb: Tensor) -> 'CapturedGraph | None':
        try:
            return self._graphs.get(tuple(rgb.shape), lambda: CapturedGraph(network, rgb))
        except torch.cuda.OutOfMemoryError:
            raise
        except (RuntimeError, ValueError) as error:  # the latter of a device that is none
            self._captures = False
            self._graphs.clear()
            self._announce('torch: goes on without CUDA graphs, which is slower; capturing '
                           f'failed: {error}')
            return None

    @contextmanager
    def failures_told(self, shape: tuple[int, ...]) -> Iterator[None]:
        """Turn what torch raises into :class:`EngineError`; the engine can be used again.

        :param shape: of the pictures, for the message.
        """
        try:
            yield
        except torch.cuda.OutOfMemoryError as error:
            self._graphs.clear()
            torch.cuda.empty_cache()
            raise EngineError(f'torch on {self.device}: out of memory for pictures of shape '
                              f'{shape}; set a smaller network_size') from error
        except (RuntimeError, ValueError, TypeError) as error:
            raise EngineError(f'torch on {self.device}: failed on pictures of shape {shape}: '
                              f'{error}') from error

    def close(self) -> None:
        self._network = None
        self._graphs.clear()
        if self.on_gpu:
            torch.cuda.empty_cache()


class CapturedGraph:
    """The network's kernels for one input shape, launched together."""

    def __init__(self, network: DeployedNetwork, rgb: Tensor) -> None:
        self._input = rgb.clone()
        stream = torch.cuda.Stream(rgb.device)  # capturing needs warm kernels, off the main stream
        stream.wait_stream(torch.cuda.current_stream(rgb.device))
        with torch.cuda.stream(stream):
            for _ in range(3):
                network(self._input)
        torch.cuda.current_stream(rgb.device).wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        # The stream is told, as the default one lies on the current device, not on this one.
        with torch.cuda.graph(self._graph, stream=stream, capture_error_mode='thread_local'):
            self._labels, self._probabilities = network(self._input)

    def run(self, rgb: Tensor) -> tuple[Tensor, Tensor]:
        self._input.copy_(rgb)
        self._graph.replay()
        # Copies, as the next replay writes to the same memory.
        return self._labels.clone(), self._probabilities.clone()


def _find_device(device: str) -> torch.device:
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == 'auto':
        return torch.device('cuda:0' if gpus else 'cpu')
    known = ['cpu', *(['cuda'] if gpus else []), *(f'cuda:{index}' for index in range(gpus))]
    if device not in known:
        raise ConfigError(f'device {device!r}: the torch engine finds {", ".join(known)}'
                          + ('' if gpus else ' and no CUDA GPU'))
    return torch.device(device)
