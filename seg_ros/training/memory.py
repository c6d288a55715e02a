"""Telling a lack of memory from other faults."""

from collections.abc import Iterator
from contextlib import contextmanager

import cv2
import torch

from seg_ros.errors import TrainingError


@contextmanager
def lack_of_memory_told(remedy: str) -> Iterator[None]:
    """Explain it where the memory does not suffice for what the block does.

    :raises TrainingError: with this text, instead of what the libraries raise.
    """
    try:
        yield
    except Exception as error:
        if not out_of_memory(error):
            raise
        raise TrainingError(remedy) from error


def out_of_memory(error: BaseException) -> bool:
    """Whether torch, NumPy or OpenCV failed as there is too little memory, of the GPU or the CPU.
    """
    if isinstance(error, cv2.error):
        return error.code == cv2.Error.StsNoMem
    if isinstance(error, RuntimeError):
        return isinstance(error, torch.OutOfMemoryError) or any(
            part in str(error) for part in ('allocate memory', 'ALLOC_FAILED'))  # CPU; cuDNN
    return isinstance(error, MemoryError)
