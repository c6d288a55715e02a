"""The training loop."""

import copy
import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from seg_ros.errors import ConfigError, TrainingError
from seg_ros.model_file import ModelSpec
from seg_ros.networks import default_arguments
from seg_ros.training.batches import AugmentedData, batch_size, batches, steps_per_epoch
from seg_ros.training.changes import changes_of_pictures, changes_of_recipe, pictures_as_values
from seg_ros.training.checkpoint import load_checkpoint, save_checkpoint
from seg_ros.training.losses import total_loss
from seg_ros.training.memory import lack_of_memory_told
from seg_ros.training.processes import ALONE, Group
from seg_ros.training.recipe import Recipe, to_mapping
from seg_ros.training.schedule import average, learning_rate, make_optimizer

MAX_SKIPPED_IN_A_ROW = 50

Lap = Callable[[str], None]
"""Called at the end of each stage of a step with its name."""


class Trainer:
    """One run: network, averaged weights, optimiser and where it stands.

    Several processes train on one batch of theirs together: the recipe's batch is that of each,
    its learning rate that of all. Gradients are the mean of those of the processes, each of which
    computes its loss on its own part: means over classes or weights are taken there. On CPUs each
    process also normalises by its own part, and BatchNorm's running statistics become the mean
    over the processes.

    :param spec: what the trained network will be saved as; its provenance says what it was
        started from. A resumed run keeps the statistics and provenance that it was begun with.
    :param dataset: what an epoch sees, in all processes together.
    :param weights: (classes,) weights of the cross-entropy.
    :param device: where this process computes.
    :param workers: threads that load pictures while the network computes.
    :param group: the processes that train together, each with a trainer alike.
    :raises ConfigError: this recipe cannot be trained on this device or with so few pictures.
    """

    def __init__(self, recipe: Recipe, spec: ModelSpec, dataset: AugmentedData, weights: Tensor,
                 device: str | torch.device = 'cpu', workers: int = 1,
                 group: Group = ALONE) -> None:
        self.device = torch.device(device)
        _check(recipe, dataset, self.device, group.size)
        torch.manual_seed(recipe.seed)
        self.recipe = recipe
        self.dataset = dataset
        self.workers = workers
        self.group = group
        self.network = spec.build().to(self.device)
        self.averaged = copy.deepcopy(self.network).eval()
        if group.size > 1 and self.device.type == 'cuda':
            self.network = nn.SyncBatchNorm.convert_sync_batchnorm(self.network)
        self.weights = weights.to(self.device)
        self._take(spec)
        self.optimizer = make_optimizer(self.network, recipe)
        # Small gradients vanish in float16; scaled ones may overflow, which lowers the scale.
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=recipe.precision == 'float16')
        self.steps_per_epoch = steps_per_epoch(dataset, group.size)
        self.total_steps = recipe.epochs * self.steps_per_epoch
        self.epoch = 0
        self.step = 0
        self.skipped = 0
        self.skipped_in_a_row = 0

    def _take(self, spec: ModelSpec) -> None:
        self.spec = spec
        self.mean = torch.tensor(spec.mean, device=self.device)
        self.std = torch.tensor(spec.std, device=self.device)

    def train_epoch(self, lap: Lap = lambda stage: None,
                    steps: int | None = None) -> dict[str, Any]:
        """Train one epoch.

        :param lap: told when a stage of a step has ended: data, forward, loss, backward, update.
        :param steps: how many to do at most, for measuring.
        :return: mean loss over steps and processes (None if every step was skipped), last
            learning rate, steps skipped since the run began, seconds.
        :raises TrainingError: steps stay not finite, or the memory does not suffice.
        """
        started = time.monotonic()
        self.network.train()
        # Made anew, as it settles on an order of adding up: a resumed run then adds alike.
        parallel = self.group.parallel(self.network)
        losses = []
        epoch = batches(self.dataset, self.epoch, self.workers, self.group.rank, self.group.size)
        with (lack_of_memory_told(self._remedy_for_memory()),
              tqdm(islice(epoch, steps), unit='step', leave=False,
                   desc=f'epoch {self.epoch + 1}/{self.recipe.epochs}',
                   total=steps or self.steps_per_epoch,
                   disable=not self.group.first) as progress):
            for rgb, target in progress:
                loss = self._train_step(parallel, rgb, target, lap)
                if not math.isnan(loss):
                    losses.append(loss)
                progress.set_postfix(loss=f'{loss:.3f}', skipped=self.skipped)
        self.epoch += 1
        return {'loss': sum(losses) / len(losses) if losses else None,
                'learning_rate': self.optimizer.param_groups[0]['lr'],
                'skipped_steps': self.skipped, 'seconds': time.monotonic() - started}

    def _train_step(self, parallel: nn.Module, rgb: Tensor, target: Tensor, lap: Lap) -> float:
        """Do one step; return its loss, nan where it was skipped for not being finite.

        :param parallel: the network, wrapped for the processes that train together.
        """
        for group in self.optimizer.param_groups:
            group['lr'] = learning_rate(self.step, self.total_steps, self.recipe)
        buffers = [buffer.clone() for buffer in self.network.buffers()]
        rgb, target = rgb.to(self.device), target.to(self.device)
        lap('data')
        image = ((rgb - self.mean) / self.std).permute(0, 3, 1, 2).contiguous()
        with torch.autocast(self.device.type, getattr(torch, self.recipe.precision),
                            enabled=self.recipe.precision != 'float32'):
            logits = parallel(image)
        lap('forward')
        loss = total_loss(logits, target, self.weights, self.recipe, self.step)
        lap('loss')
        self.step += 1
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        lap('backward')
        value = self._update(loss, buffers)
        lap('update')
        return value

    def _update(self, loss: Tensor, buffers: list[Tensor]) -> float:
        """Move the weights by their gradients, and the averaged ones after them.

        :param buffers: what the network's buffers held before the step.
        :return: mean loss over the processes; nan if it or a gradient is not finite in any of
            them, and then nothing has changed.
        """
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), 10.0)
        loss, norm = self.group.mean([loss.detach(), norm])  # so that all decide alike
        finite = bool(torch.isfinite(loss) and torch.isfinite(norm))
        if finite:
            self.scaler.step(self.optimizer)
            self._average_statistics()
            average(self.averaged, self.network,
                    min(self.recipe.ema, self.step / (self.step + 10)))
        else:
            for buffer, before in zip(self.network.buffers(), buffers, strict=True):
                buffer.copy_(before)  # or BatchNorm would keep what was not finite for ever
        self.scaler.update()
        self._count(finite)
        return loss.item() if finite else math.nan

    def _average_statistics(self) -> None:
        """Give all processes the same statistics of BatchNorm."""
        floats = [buffer for buffer in self.network.buffers() if buffer.is_floating_point()]
        for buffer, mean in zip(floats, self.group.mean(floats), strict=True):
            buffer.copy_(mean)

    def _count(self, finite: bool) -> None:
        self.skipped_in_a_row = 0 if finite else self.skipped_in_a_row + 1
        self.skipped += not finite
        if self.skipped_in_a_row >= MAX_SKIPPED_IN_A_ROW:
            raise TrainingError(
                f'{MAX_SKIPPED_IN_A_ROW} steps in a row had a loss or gradients that are not '
                'finite; lower learning_rate in the recipe and start again')

    def _remedy_for_memory(self) -> str:
        crop = list(self.recipe.augmentation.crop)
        return (f'the memory of {self.device} does not suffice for the recipe: lower batch '
                f'({self.recipe.batch}) or augmentation.crop ({crop}) in it, then '
                + ('go on with --resume' if self.epoch else 'start again'))

    def save(self, path: Path) -> None:
        """Write the run's state: of the network itself, whatever it is wrapped in for training.

        :raises OSError: the disk is full or the folder is gone; the older file stays.
        """
        save_checkpoint(path, {
            'recipe': json.dumps(to_mapping(self.recipe)), 'epoch': self.epoch,
            'pictures': pictures_as_values(self.dataset.data),
            'labels': json.dumps(self.spec.labels.to_dict()), 'mean': list(self.spec.mean),
            'std': list(self.spec.std),
            'provenance': json.dumps(dict(self.spec.provenance)),
            'skipped': self.skipped, 'network': self.network.state_dict(),
            'averaged': self.averaged.state_dict(), 'optimizer': self.optimizer.state_dict(),
            'scaler': self.scaler.state_dict()})

    def resume(self, path: Path) -> list[str]:
        """Go on where :meth:`save` was called.

        Epochs, batch and the number of processes may have changed since: the schedule goes on
        from the same epoch.

        :return: what else of the recipe and the data has changed since, for the user.
        :raises TrainingError: no such checkpoint, or one of another network or other classes.
        """
        state = self.group.share(lambda: load_checkpoint(path))
        try:
            was, now = json.loads(state['recipe']), to_mapping(self.recipe)
            # Older checkpoints hold only those that the recipe gave.
            was['arguments'] = {**default_arguments(self.recipe.architecture), **was['arguments']}
            for key in ('architecture', 'arguments'):  # dilations do not show in the weights
                if was[key] != now[key]:
                    raise ValueError(key)
            if json.loads(state['labels']) != self.spec.labels.to_dict():
                raise ValueError('labels')
            self.network.load_state_dict(state['network'])
            self.averaged.load_state_dict(state['averaged'])
            # Its groups hold numbers of the recipe, such as the weight decay: those of now count.
            self.optimizer.load_state_dict({
                **state['optimizer'],
                'param_groups': self.optimizer.state_dict()['param_groups']})
            if self.scaler.is_enabled() and state.get('scaler'):
                self.scaler.load_state_dict(state['scaler'])
            self._take(replace(self.spec, mean=tuple(state['mean']), std=tuple(state['std']),
                               provenance=json.loads(state['provenance'])))
            self.epoch, self.skipped = state['epoch'], state['skipped']
            self.step = self.epoch * self.steps_per_epoch
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise TrainingError(f'{path.resolve()}: is the checkpoint of another network or '
                                'of other classes; give the recipe and data it was started with, '
                                'or another --out') from error
        return [*changes_of_recipe(was, now),
                *changes_of_pictures(state.get('pictures'), self.dataset.data)]


def _check(recipe: Recipe, dataset: AugmentedData, device: torch.device, processes: int) -> None:
    """Refuse what would fail, or teach nothing, only in the first step."""
    if recipe.precision == 'float16' and device.type != 'cuda':
        raise ConfigError(f'precision float16: is for --device cuda; on {device.type} set it to '
                          'bfloat16 or float32')
    size = batch_size(dataset, processes)
    if not size:
        raise ConfigError(f'{len(dataset)} pictures for {processes} processes: each needs one in '
                          'every step; start fewer processes')
    if size * math.prod(math.ceil(side / 64) for side in recipe.augmentation.crop) < 2:
        raise ConfigError('a batch of one picture needs a crop above 64: BatchNorm cannot '
                          'train on the single value that is left of it at 1/64')
