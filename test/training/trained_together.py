"""What the tests of several processes train, in each of them: ``torchrun trained_together.py``.

Its results lie in the folder given, as ``<rank>.pt``.
"""

import argparse
import math
import os
import signal
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from seg_ros.cli.edge import run
from seg_ros.errors import DataError
from seg_ros.model_file import ModelSpec
from seg_ros.training import processes
from seg_ros.training.augment import Augmentation
from seg_ros.training.batches import AugmentedData
from seg_ros.training.dataset import open_data
from seg_ros.training.loop import Trainer
from seg_ros.training.processes import ALONE, Group
from seg_ros.training.recipe import Recipe

TINY = {'widths': [5, 16, 40], 'dilations2': [2], 'dilations3': [3], 'pyramid': 8}
STILL = Augmentation((64, 64), (1, 1), 0, 0, 0)  # mirrors only: no view has a border that is void
EPOCHS = 8
SHIPPED = {'lovasz_weight': 1.0, 'class_terms': 'conditioned', 'terms_warmup_steps': 4}
"""Losses of the recipes of the weights that ship, which compare the pixels of a whole batch."""


def trainer(data: Path, batch: int, group: Group = ALONE, lively: bool = True,
            **losses: Any) -> Trainer:
    """A tiny network on eight pictures.

    :param lively: scale and recolour the pictures.
    :param losses: of the recipe, beside the cross-entropy.
    """
    augmentation = Augmentation((64, 64), (0.75, 1.5)) if lively else STILL
    recipe = Recipe(arguments=TINY, epochs=EPOCHS, batch=batch, learning_rate=0.005,
                    warmup_steps=2, ema=0.9, validate_every=100, seed=3,
                    augmentation=augmentation, **losses)
    folder = open_data(data, 'train')
    spec = ModelSpec(recipe.architecture, TINY, folder.labels, (128.0,) * 3, (60.0,) * 3, (64, 64))
    return Trainer(recipe, spec, AugmentedData(folder, recipe), torch.ones(11), group=group)


def without_batch_statistics(trained: Trainer) -> Trainer:
    """Have BatchNorm normalise by its running statistics in training too, so by none of a batch.
    """
    for module in trained.network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()
            module.train = lambda mode=True, module=module: module
    return trained


def losses(trained: Trainer, epochs: int = EPOCHS) -> list[float]:
    return [trained.train_epoch()['loss'] for _ in range(epochs)]


def weights(trained: Trainer) -> dict[str, Tensor]:
    """The network's and the averaged network's tensors."""
    return {f'{part}.{name}': tensor.clone() for part in ('network', 'averaged')
            for name, tensor in getattr(trained, part).state_dict().items()}


def together(arguments: argparse.Namespace) -> int:
    with processes.group() as group:
        if arguments.fault:
            return FAULTS[arguments.fault](group)
        results = {'rank': group.rank, 'size': group.size}
        results['means'] = group.mean([torch.tensor([1.0, 5.0]) * group.rank, torch.tensor(7.0)])
        results['shared'] = group.share(lambda: {'from': group.rank})
        results['gradient'] = gradient_of_a_line(group)

        run = without_batch_statistics(trainer(arguments.data, 2, group, lively=False))
        results['losses without batch statistics'] = losses(run, 3)
        if group.first:
            run.save(arguments.out / 'without batch statistics.pt')
        results['losses without batch statistics'] += losses(run, EPOCHS - 3)

        run = trainer(arguments.data, 2, group)
        results['losses'] = losses(run)
        results['weights'] = weights(run)

        run = without_batch_statistics(trainer(arguments.data, 2, group, False, **SHIPPED))
        results['shipped losses without batch statistics'] = losses(run)

        run = trainer(arguments.data, 2, group)
        losses(run, 3)
        if group.first:
            run.save(arguments.out / 'last.pt')
        run = trainer(arguments.data, 2, group)
        run.resume(arguments.out / 'last.pt')
        results['losses after resuming'] = losses(run, EPOCHS - 3)
        results['weights after resuming'] = weights(run)

        run = trainer(arguments.data, 2, group)
        before = weights(run)
        if group.rank == 1:
            run.weights.fill_(math.nan)
        results['skipped'] = run.train_epoch()['skipped_steps']
        results['unchanged'] = all(torch.equal(before[name], tensor)
                                   for name, tensor in weights(run).items())
    threads = [path.read_text() for path in Path('/proc/self/task').glob('*/comm')]
    results['threads left'] = [name for name in threads if 'gloo' in name]
    torch.save(results, arguments.out / f'{group.rank}.pt')
    return 0


def gradient_of_a_line(group: Group) -> tuple[float, float]:
    """Weight and gradient of w * x in a process that starts with w = rank + 2, x = 10 ** rank."""
    line = nn.Linear(1, 1, bias=False)
    nn.init.constant_(line.weight, group.rank + 2)
    parallel = group.parallel(line)
    parallel(torch.tensor([[10.0 ** group.rank]])).sum().backward()
    return line.weight.item(), line.weight.grad.item()


def fail_alone(group: Group) -> int:
    """Process 1 fails with a gradient on its way, while the other is busy."""
    if group.rank == 1:
        dist.all_reduce(torch.ones(3), async_op=True)
        raise DataError('street.png: is no picture')
    time.sleep(60)
    return 0


def fail_all(group: Group) -> int:
    """Each process finds the same fault."""
    raise DataError('street.png: is no picture')


def vanish(group: Group) -> int:
    """Process 1 is killed while the other waits for it."""
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    group.wait()
    return 0


FAULTS = {'alone': fail_alone, 'all': fail_all, 'vanish': vanish}


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='together')
    parser.add_argument('data', type=Path)
    parser.add_argument('out', type=Path)
    parser.add_argument('--fault', choices=FAULTS)
    return parser


if __name__ == '__main__':
    torch.set_num_threads(1)
    raise SystemExit(run(together, parser()))
