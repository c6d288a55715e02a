"""The engines that run a network, by name."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Protocol

import numpy as np
import torch

from seg_ros.errors import ConfigError
from seg_ros.inference.engine_torch import TorchEngine
from seg_ros.model_file import Model

ENGINES = ('auto', 'torch', 'openvino')
PRECISIONS = ('auto', 'float32', 'float16', 'bfloat16')


def _print(message: str) -> None:
    print(message, file=sys.stderr)


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
                  announce: Callable[[str], None] = _print) -> Engine:
    """Make a network ready.

    :param engine: one of ``ENGINES``; 'auto' is torch on a CUDA GPU, else openvino where it is
        installed, else torch.
    :param device: 'auto', 'cpu', 'cuda', 'cuda:1', ..., or one that OpenVINO finds.
    :param precision: one of ``PRECISIONS``; 'auto' is float16 on a CUDA GPU, else float32.
    :param threads: of the CPU; 0 is the engine's choice.
    :param announce: told, in a line, what the user should know: what 'auto' chose and why, and
        what goes on more slowly than it could; by default that is printed.
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
    if engine == 'auto':
        engine, reason = _choose(device)
        announce(f'engine: {engine}, as {reason}')
    if engine == 'torch':
        return TorchEngine(model, device, precision, threads, announce)
    if not _has_openvino():
        raise ConfigError("engine 'openvino': is not installed; use torch, or install it with "
                          'pip install openvino')
    # Imported on demand: it takes a moment, and a machine with a GPU does without it.
    from seg_ros.inference.engine_openvino import OpenVinoEngine
    return OpenVinoEngine(model, device, precision, threads)


def _choose(device: str) -> tuple[str, str]:
    """Name of the engine, and why it is that one."""
    if device.startswith('cuda'):
        return 'torch', f'device {device} was asked for'
    if device == 'auto' and torch.cuda.is_available():
        return 'torch', 'there is a CUDA GPU'
    where = 'there is no CUDA GPU' if device == 'auto' else f'device {device} was asked for'
    if _has_openvino():
        return 'openvino', f'{where} and openvino is installed'
    return 'torch', f'{where} and openvino is not installed'


def _has_openvino() -> bool:
    return find_spec('openvino') is not None
