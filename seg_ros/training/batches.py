"""Batches of augmented samples, the same for a seed, epoch and position whoever loads them."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from seg_ros.drawn_scene import DrawnScene
from seg_ros.training.dataset import DataFolder, Sample
from seg_ros.training.recipe import Recipe

BATCHES_AHEAD = 2
DRAWN_TRAINING_SEEDS = range(1_000_000, 2_000_000)
"""Seeds of drawn scenes that training may see; scores are taken on seeds below."""


class AugmentedData:
    """Random views of a data set's pictures, then of drawn scenes.

    Items are asked for by (epoch, index): the randomness of each depends on nothing else.
    """

    def __init__(self, data: DataFolder, recipe: Recipe) -> None:
        self.data = data
        self.recipe = recipe
        self.drawn = round(len(data) * recipe.drawn_share)

    def __len__(self) -> int:
        return len(self.data) + self.drawn

    def __getitem__(self, key: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        epoch, index = key
        random = np.random.default_rng([self.recipe.seed, epoch, index])
        sample = self.data[index] if index < len(self.data) else draw_sample(random)
        view = self.recipe.augmentation(sample, random)
        return view.rgb, view.target


def draw_sample(random: np.random.Generator) -> Sample:
    """Draw a road scene at CamVid's size, at a random moment of a random training seed."""
    seed = int(random.integers(DRAWN_TRAINING_SEEDS.start, DRAWN_TRAINING_SEEDS.stop))
    return Sample(*DrawnScene(seed, 480, 360).frame(float(random.uniform(0, 60))))


def batches(dataset: AugmentedData, epoch: int, threads: int, rank: int = 0,
            processes: int = 1) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield one epoch of one process: (B, H, W, 3) uint8 RGB and (B, H, W) int64.

    :param threads: how many load ahead, while the network computes. Threads, as OpenCV computes
        without Python's lock, and processes forked under its thread pool may never start.
    :param rank: number of the process among the processes that train together.
    """
    with ThreadPoolExecutor(threads, thread_name_prefix='load') as pool:
        ahead: deque[list[Future]] = deque()
        for indices in deal(dataset, epoch, rank, processes):
            ahead.append([pool.submit(dataset.__getitem__, (epoch, index)) for index in indices])
            if len(ahead) > BATCHES_AHEAD:
                yield _collate(ahead.popleft())
        while ahead:
            yield _collate(ahead.popleft())


def deal(dataset: AugmentedData, epoch: int, rank: int = 0,
         processes: int = 1) -> list[list[int]]:
    """Indices that each step of an epoch shows to one process.

    Together the processes see in each step what one process would with their batches as one.
    What does not fill a batch for each of them is left out of the epoch.
    """
    order = np.random.default_rng([dataset.recipe.seed, epoch]).permutation(len(dataset)).tolist()
    size = batch_size(dataset, processes)
    return [order[start + rank * size:start + (rank + 1) * size]
            for start in range(0, len(order) - processes * size + 1, processes * size)]


def batch_size(dataset: AugmentedData, processes: int = 1) -> int:
    """Pictures that a process sees in a step: the recipe's batch, or its share of few pictures."""
    return min(dataset.recipe.batch, len(dataset) // processes)


def steps_per_epoch(dataset: AugmentedData, processes: int = 1) -> int:
    """Number of batches that one epoch yields to each process."""
    return len(dataset) // (processes * batch_size(dataset, processes))


def _collate(views: list[Future]) -> tuple[Tensor, Tensor]:
    rgb, target = zip(*(view.result() for view in views), strict=True)
    return torch.from_numpy(np.stack(rgb)), torch.from_numpy(np.stack(target)).long()
