"""Telling a lack of memory from other faults."""

import cv2
import torch


def out_of_memory(error: BaseException) -> bool:
    """Whether torch, NumPy or OpenCV failed as there is too little memory, of the GPU or the CPU.
    """
    if isinstance(error, cv2.error):
        return error.code == cv2.Error.StsNoMem
    if isinstance(error, RuntimeError):
        return isinstance(error, torch.OutOfMemoryError) or any(
            part in str(error) for part in ('allocate memory', 'ALLOC_FAILED'))  # CPU; cuDNN
    return isinstance(error, MemoryError)
