"""Whether labels come sooner when several frames go through the network at once: measured."""

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from seg_ros.errors import EngineError
from seg_ros.inference.segmenter import Segmenter

GAIN = 0.05  # what a batch has to bring; less is within the error of measuring
FEWEST_REPETITIONS, MOST_REPETITIONS = 3, 7
PATIENCE_S = 2.0  # of measuring one batch, compiling it apart


@dataclass(frozen=True)
class Batching:
    """How many frames may go at once.

    :param sizes: of the batches that pay, with 1.
    :param times: that each batch measured took, by its size, in times of one frame.
    """

    sizes: tuple[int, ...]
    times: dict[int, float]

    def __str__(self) -> str:
        measured = ', '.join(f'{size} frames at once take {time:.2f} times as long as one '
                             f'(worth it up to {worth_it(size):.2f})'
                             for size, time in self.times.items())
        most = max(self.sizes)
        return f'{measured}: frames go ' + (
            'one by one' if most == 1 else f'up to {most} at once, of those that wait')


def worth_it(size: int) -> float:
    """Longest time of a batch, in times of one frame, at which its labels come sooner.

    One after the other, ``size`` waiting frames are labelled after (size + 1) / 2 times of one
    on average, and those still waiting are replaced by newer ones; in a batch all come at its
    end. So it pays only where the engine is clearly faster a frame.
    """
    return (1 - GAIN) * (size + 1) / 2


def measure_batching(segmenter: Segmenter, most: int, height: int, width: int) -> Batching:
    """Time batches of growing size until one does not pay.

    :param most: frames that can wait at the same time.
    :param height: of the frames that are measured; so is ``width``.
    """
    sizes = [1]
    times: dict[int, float] = {}
    frame = np.zeros((height, width, 3), np.uint8)
    for size in _candidates(most):
        try:
            times[size] = _relative_time(segmenter, frame, size)
        except EngineError:  # short of memory
            times[size] = float('inf')
        if times[size] > worth_it(size):
            break
        sizes.append(size)
    return Batching(tuple(sizes), times)


def _candidates(most: int) -> Iterator[int]:
    """2, 4, 8, ... and ``most``: few, as engines prepare themselves for each size."""
    size = 2
    while size < most:
        yield size
        size *= 2
    if most > 1:
        yield most


def _relative_time(segmenter: Segmenter, frame: np.ndarray, size: int) -> float:
    """Median time of a batch over the median of one frame, taken in turn.

    :raises EngineError: the inference failed.
    """
    one, batch = [frame], [frame] * size
    _time(segmenter, one)
    _time(segmenter, batch)
    times: list[tuple[float, float]] = []
    started_s = time.perf_counter()
    while len(times) < FEWEST_REPETITIONS or (
            len(times) < MOST_REPETITIONS and time.perf_counter() - started_s < PATIENCE_S):
        times.append((_time(segmenter, one), _time(segmenter, batch)))
    return statistics.median(b for _, b in times) / statistics.median(a for a, _ in times)


def _time(segmenter: Segmenter, frames: Sequence[np.ndarray]) -> float:
    started_s = time.perf_counter()
    # A GPU may still be at work when the call returns; it is waited for when labels are read.
    _ = [segmentation.labels for segmentation in segmenter.segment(frames, confidence=False)]
    return time.perf_counter() - started_s
