"""The deployed network in PyTorch, on the CPU or a CUDA GPU."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from seg_ros.errors import ConfigError, EngineError
from seg_ros.inference.announce import Announce
from seg_ros.inference.deploy import DeployedNetwork
from seg_ros.inference.kept import Kept
from seg_ros.inference.threads import use_threads
from seg_ros.model_file import Model

# Of cuBLAS and cuDNN, of CUDA itself and of the CPU: torch has a type only for what its own
# allocator of GPU memory lacks.
NO_MEMORY = ('ALLOC_FAILED', 'out of memory', "can't allocate memory")
Result = TypeVar('Result')

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
                 announce: Announce) -> None:
        self._device = _find_device(device)
        self._announce = announce
        self.on_gpu = self._device.type == 'cuda'
        if precision == 'float16' and not self.on_gpu:
            raise ConfigError("precision 'float16': the torch engine has float32 and bfloat16 on "
                              'the CPU')
        use_threads(threads)
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
        def infer() -> tuple[np.ndarray, np.ndarray | None]:
            labels, probabilities = self.run(torch.from_numpy(rgb).to(self._device))
            return labels.cpu().numpy(), probabilities.cpu().numpy() if confidence else None
        return self.attempt(rgb.shape, infer)

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
        except (RuntimeError, ValueError) as error:  # the latter of a device that is none
            if lacks_memory(error):
                raise
            self._captures = False
            self._graphs.clear()
            # Where the network fails, capturing cannot end either, and that is what is raised.
            self._announce('torch: goes on without CUDA graphs, which is slower; capturing '
                           f'failed: {error.__context__ or error}')
            return None

    def attempt(self, shape: tuple[int, ...], work: Callable[[], Result]) -> Result:
        """Do something on the device; the engine can be used again if that fails.

        :param shape: of the pictures, for the message.
        :raises EngineError: whatever torch raises.
        """
        try:
            return work()
        except (RuntimeError, ValueError, TypeError) as error:
            if not lacks_memory(error):
                raise EngineError(f'torch on {self.device}: failed on pictures of shape {shape}: '
                                  f'{error}') from error
            reason = str(error).partition('\n')[0]
        # Not before the error has gone, whose traceback holds what the network had computed.
        self._free()
        raise EngineError(f'torch on {self.device}: out of memory for pictures of shape {shape} '
                          f'({reason}); set a smaller network_size')

    def close(self) -> None:
        self._network = None
        self._free()

    def _free(self) -> None:
        self._graphs.clear()
        with suppress(RuntimeError):  # the GPU itself has failed, which has been told
            torch.cuda.empty_cache()


class CapturedGraph:
    """The network's kernels for one input shape, launched together."""

    def __init__(self, network: DeployedNetwork, rgb: Tensor) -> None:
        self._input = rgb.clone()
        with torch.cuda.device(rgb.device):  # else the first GPU is set up, too
            current = torch.cuda.current_stream()
            stream = torch.cuda.Stream()  # capturing needs warm kernels, off the main stream
            try:
                self._capture(network, current, stream)
            finally:
                torch.cuda.set_stream(current)  # capturing leaves its own behind where it fails

    def _capture(self, network: DeployedNetwork, current: torch.cuda.Stream,
                 stream: torch.cuda.Stream) -> None:
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            for _ in range(3):
                network(self._input)
        current.wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=stream, capture_error_mode='thread_local'):
            self._labels, self._probabilities = network(self._input)

    def run(self, rgb: Tensor) -> tuple[Tensor, Tensor]:
        self._input.copy_(rgb)
        self._graph.replay()
        # Copies, as the next replay writes to the same memory.
        return self._labels.clone(), self._probabilities.clone()


def lacks_memory(error: BaseException) -> bool:
    """Whether it, or what it came of, is that memory could not be had."""
    if isinstance(error, torch.cuda.OutOfMemoryError) or any(
            text in str(error) for text in NO_MEMORY):
        return True
    return error.__context__ is not None and lacks_memory(error.__context__)


def _find_device(device: str) -> torch.device:
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == 'auto':
        return torch.device('cuda:0' if gpus else 'cpu')
    known = ['cpu', *(['cuda'] if gpus else []), *(f'cuda:{index}' for index in range(gpus))]
    if device not in known:
        raise ConfigError(f'device {device!r}: the torch engine finds {", ".join(known)}'
                          + ('' if gpus else ' and no CUDA GPU'))
    return torch.device(device)
