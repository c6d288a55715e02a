"""The deployed network in PyTorch, on the CPU or a CUDA GPU."""

import numpy as np
import torch

from seg_ros.errors import ConfigError, EngineError
from seg_ros.inference.deploy import DeployedNetwork
from seg_ros.model_file import Model

DTYPES = {'float32': torch.float32, 'float16': torch.float16, 'bfloat16': torch.bfloat16}


class TorchEngine:
    """Implements ``seg_ros.inference.engines.Engine``.

    :param device: 'auto' (the first CUDA GPU, else the CPU), 'cpu', 'cuda' or 'cuda:N'.
    :param precision: 'auto' is float16 on a GPU and float32 on the CPU.
    :param threads: on the CPU, for the whole process; 0 leaves torch's choice.
    :raises ConfigError: no such device, or it lacks the precision.
    :raises EngineError: the network does not fit on the device.
    """

    name = 'torch'

    def __init__(self, model: Model, device: str = 'auto', precision: str = 'auto',
                 threads: int = 0) -> None:
        self._device = _find_device(device)
        on_gpu = self._device.type == 'cuda'
        if precision == 'float16' and not on_gpu:
            raise ConfigError("precision 'float16': the torch engine has float32 and bfloat16 on "
                              'the CPU')
        if threads > 0:
            torch.set_num_threads(threads)
        self.device = str(self._device)
        self.precision = {'auto': 'float16' if on_gpu else 'float32'}.get(precision, precision)
        try:
            network = DeployedNetwork(model, DTYPES[self.precision]).to(self._device)
        except RuntimeError as error:
            raise EngineError(f'torch on {self.device}: {error}') from error
        if on_gpu:  # on the CPU this gains nothing
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._network: DeployedNetwork | None = network

    def infer(self, rgb: np.ndarray,
              confidence: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        if self._network is None:
            raise EngineError('torch: the engine has been closed')
        try:
            with torch.inference_mode():
                pictures = torch.from_numpy(rgb).to(self._device)
                labels, probabilities = self._network(pictures)
                return labels.cpu().numpy(), (
                    probabilities.cpu().numpy() if confidence else None)
        except torch.cuda.OutOfMemoryError as error:
            torch.cuda.empty_cache()
            raise EngineError(f'torch on {self.device}: out of memory for pictures of shape '
                              f'{rgb.shape}; set a smaller network_size') from error
        except (RuntimeError, ValueError, TypeError) as error:
            raise EngineError(f'torch on {self.device}: failed on pictures of shape {rgb.shape}: '
                              f'{error}') from error

    def close(self) -> None:
        self._network = None
        if self._device.type == 'cuda':
            torch.cuda.empty_cache()


def _find_device(device: str) -> torch.device:
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == 'auto':
        return torch.device('cuda:0' if gpus else 'cpu')
    known = ['cpu', *(['cuda'] if gpus else []), *(f'cuda:{index}' for index in range(gpus))]
    if device not in known:
        raise ConfigError(f'device {device!r}: the torch engine finds {", ".join(known)}'
                          + ('' if gpus else ' and no CUDA GPU'))
    return torch.device(device)
