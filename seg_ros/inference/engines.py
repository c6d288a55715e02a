"""The engines that run a network, by name."""

from importlib.util import find_spec
from typing import Protocol

import numpy as np
import torch

from seg_ros.errors import ConfigError
from seg_ros.inference.announce import Announce, print_line
from seg_ros.inference.engine_torch import TorchEngine
from seg_ros.inference.int8 import for_precision
from seg_ros.model_file import Model

ENGINES = ('auto', 'torch', 'openvino', 'onnxruntime')
PRECISIONS = ('auto', 'float32', 'float16', 'bfloat16', 'int8')


class Engine(Protocol):
    """A network made ready on a device. One thread at a time.

    :param name: of the engine, one of ``ENGINES``.
    :param device: that it runs on, e.g. 'cpu' or 'cuda:0'.
    :param precision: that it computes in, one of ``PRECISIONS``.
    """

    name: str
    device: str
    precision: str

    def infer(self, rgb: np.ndarray,
              confidence: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        """Class of each pixel and its probability.

        :param rgb: (B, H, W, 3) uint8, contiguous, H and W at least 32. A shape may take longer
            when it comes for the first time.
        :param confidence: whether the probabilities are wanted.
        :return: (B, H, W) uint8 indices of the output channels and (B, H, W) uint8
            probabilities, 255 for 1, or None. They are the caller's own.
        :raises EngineError: the inference failed; the engine may be used again.
        """

    def close(self) -> None:
        """Release network and memory; nothing can be inferred afterwards."""


def create_engine(model: Model, engine: str = 'auto', device: str = 'auto',
                  precision: str = 'auto', threads: int = 0,
                  announce: Announce = print_line) -> Engine:
    """Make a network ready.

    :param engine: one of ``ENGINES``; 'auto' is torch on a CUDA GPU, else openvino where it is
        installed, else torch.
    :param device: 'auto', 'cpu', 'cuda', 'cuda:1', ..., or one that OpenVINO finds.
    :param precision: one of ``PRECISIONS``; 'auto' is float16 on a CUDA GPU; on a CPU float32,
        and in openvino bfloat16 where the CPU has instructions for it.
    :param threads: of the CPU; 0 is the engine's choice.
    :param announce: told what 'auto' chose and why and, as warnings, what takes minutes or goes
        on more slowly than it could; by default that is printed.
    :raises ConfigError: an engine, device or precision that is not there; the message names
        those that are.
    :raises EngineError: the network could not be made ready.
    """
    if engine not in ENGINES:
        raise ConfigError(f'engine {engine!r}: known are {", ".join(ENGINES)}')
    if precision not in PRECISIONS:
        raise ConfigError(f'precision {precision!r}: known are {", ".join(PRECISIONS)}')
    if threads < 0:
        raise ConfigError(f"threads {threads}: expected 0 (the engine's choice) or more")
    if engine == 'torch' and precision == 'int8':
        raise ConfigError("precision 'int8': the torch engine has float32, float16 and bfloat16; "
                          'give the engine openvino or onnxruntime')
    model = for_precision(model, precision)
    if engine == 'auto':
        engine, reason = _choose(device, model)
        announce(f'engine: {engine}, as {reason}', warning=False)
    if engine == 'torch':
        return TorchEngine(model, device, precision, threads, announce)
    other = 'torch' if model.onnx is None else (
        'onnxruntime' if engine == 'openvino' else 'openvino')
    for package in (['openvino'] if engine == 'openvino' else ['onnx', 'onnxruntime']):
        if not _is_installed(package):
            raise ConfigError(f'engine {engine!r}: {package} is not installed; use {other}, or '
                              f'install it with pip install {package}')
    try:  # on demand: it takes a moment, and a machine with a GPU does without it
        if engine == 'onnxruntime':
            from seg_ros.inference.engine_onnx import OnnxEngine
            return OnnxEngine(model, device, precision, threads, announce)
        from seg_ros.inference.engine_openvino import OpenVinoEngine
        return OpenVinoEngine(model, device, precision, threads)
    except ImportError as error:
        raise ConfigError(f'engine {engine!r}: is installed, but cannot be loaded ({error}); '
                          f'install it anew, or use {other}') from error


def _choose(device: str, model: Model) -> tuple[str, str]:
    """Name of the engine, and why it is that one."""
    if model.onnx is not None:
        return _choose_for_graph(device, model)
    if device.startswith('cuda'):
        return 'torch', f'device {device} was asked for'
    if device == 'auto' and torch.cuda.is_available():
        return 'torch', 'there is a CUDA GPU'
    where = 'there is no CUDA GPU' if device == 'auto' else f'device {device} was asked for'
    if _is_installed('openvino'):
        return 'openvino', f'{where} and openvino is installed'
    return 'torch', f'{where} and openvino is not installed'


def _choose_for_graph(device: str, model: Model) -> tuple[str, str]:
    what = 'the model is an int8 file' if model.precision == 'int8' else (
        'the model is an exported file')
    if device.startswith('cuda'):
        return 'onnxruntime', f'{what} and device {device} was asked for'
    if device == 'auto' and model.precision != 'int8' and _onnxruntime_has_cuda():
        return 'onnxruntime', f'{what} and there is a CUDA GPU'
    if _is_installed('openvino'):
        return 'openvino', f'{what} and openvino is installed'
    return 'onnxruntime', f'{what} and openvino is not installed'


def _onnxruntime_has_cuda() -> bool:
    """Whether it can use a GPU. That torch can says that the libraries of CUDA are there."""
    if not torch.cuda.is_available() or not _is_installed('onnxruntime'):
        return False
    import onnxruntime
    return 'CUDAExecutionProvider' in onnxruntime.get_available_providers()


def _is_installed(package: str) -> bool:
    return find_spec(package) is not None
