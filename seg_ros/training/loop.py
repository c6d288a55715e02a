"""The training loop."""

import copy
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from seg_ros.errors import ConfigError, TrainingError
from seg_ros.model_file import ModelSpec
from seg_ros.training.batches import AugmentedData, batches, steps_per_epoch
from seg_ros.training.checkpoint import load_checkpoint, save_checkpoint
from seg_ros.training.losses import total_loss
from seg_ros.training.recipe import Recipe, to_mapping

MAX_SKIPPED_IN_A_ROW = 50


class Trainer:
    """One run: network, averaged weights, optimiser and where it stands.

    :param spec: what the trained network will be saved as.
    :param dataset: what an epoch sees.
    :param weights: (classes,) weights of the cross-entropy.
    :param workers: threads that load pictures while the network computes.
    """

    def __init__(self, recipe: Recipe, spec: ModelSpec, dataset: AugmentedData,
                 weights: Tensor, device: str = 'cpu', workers: int = 1) -> None:
        views = min(recipe.batch, len(dataset)) * math.prod(
            math.ceil(side / 64) for side in recipe.augmentation.crop)
        if views < 2:
            raise ConfigError('a batch of one picture needs a crop above 64: BatchNorm cannot '
                              'train on the single value that is left of it at 1/64')
        torch.manual_seed(recipe.seed)
        self.recipe = recipe
        self.dataset = dataset
        self.device = torch.device(device)
        self.workers = workers
        self.network = spec.build().to(self.device)
        self.averaged = copy.deepcopy(self.network).eval()
        self.weights = weights.to(self.device)
        self.mean = torch.tensor(spec.mean, device=self.device)
        self.std = torch.tensor(spec.std, device=self.device)
        self.optimizer = make_optimizer(self.network, recipe)
        self.total_steps = recipe.epochs * steps_per_epoch(dataset)
        self.epoch = 0
        self.step = 0
        self.skipped = 0
        self.skipped_in_a_row = 0

    def train_epoch(self) -> dict[str, Any]:
        """Train one epoch.

        :return: mean loss (None if every step was skipped), last learning rate, steps skipped
            since the run began, seconds.
        """
        started = time.monotonic()
        self.network.train()
        losses = []
        with tqdm(batches(self.dataset, self.epoch, self.workers), unit='step',
                  desc=f'epoch {self.epoch + 1}/{self.recipe.epochs}',
                  total=steps_per_epoch(self.dataset), leave=False) as progress:
            for rgb, target in progress:
                loss = self._train_step(rgb.to(self.device), target.to(self.device))
                if not math.isnan(loss):
                    losses.append(loss)
                progress.set_postfix(loss=f'{loss:.3f}', skipped=self.skipped)
        self.epoch += 1
        return {'loss': sum(losses) / len(losses) if losses else None,
                'learning_rate': self.optimizer.param_groups[0]['lr'],
                'skipped_steps': self.skipped, 'seconds': time.monotonic() - started}

    def _train_step(self, rgb: Tensor, target: Tensor) -> float:
        """Do one step; return its loss, nan where it was skipped for not being finite."""
        for group in self.optimizer.param_groups:
            group['lr'] = learning_rate(self.step, self.total_steps, self.recipe)
        buffers = [buffer.clone() for buffer in self.network.buffers()]
        image = ((rgb - self.mean) / self.std).permute(0, 3, 1, 2).contiguous()
        loss = total_loss(self.network(image), target, self.weights, self.recipe, self.step)
        self.step += 1
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), 10.0)
        if not (torch.isfinite(loss) and torch.isfinite(norm)):
            for buffer, before in zip(self.network.buffers(), buffers, strict=True):
                buffer.copy_(before)  # or BatchNorm would keep what was not finite for ever
            self._count_skipped()
            return math.nan
        self.skipped_in_a_row = 0
        self.optimizer.step()
        average(self.averaged, self.network, min(self.recipe.ema, self.step / (self.step + 10)))
        return loss.item()

    def _count_skipped(self) -> None:
        self.skipped += 1
        self.skipped_in_a_row += 1
        if self.skipped_in_a_row >= MAX_SKIPPED_IN_A_ROW:
            raise TrainingError(
                f'{MAX_SKIPPED_IN_A_ROW} steps in a row had a loss or gradients that are not '
                'finite; lower learning_rate in the recipe and start again')

    def save(self, path: Path) -> None:
        """Write the run's state."""
        save_checkpoint(path, {
            'recipe': json.dumps(to_mapping(self.recipe)), 'epoch': self.epoch, 'step': self.step,
            'skipped': self.skipped, 'network': self.network.state_dict(),
            'averaged': self.averaged.state_dict(), 'optimizer': self.optimizer.state_dict()})

    def resume(self, path: Path) -> None:
        """Go on where :meth:`save` was called; the recipe's epochs may have changed since.

        :raises TrainingError: no such checkpoint, or one of another network.
        """
        state = load_checkpoint(path)
        try:
            was, now = json.loads(state['recipe']), to_mapping(self.recipe)
            for key in ('architecture', 'arguments'):  # dilations do not show in the weights
                if was[key] != now[key]:
                    raise ValueError(key)
            self.network.load_state_dict(state['network'])
            self.averaged.load_state_dict(state['averaged'])
            self.optimizer.load_state_dict(state['optimizer'])
            self.epoch, self.step = state['epoch'], state['step']
            self.skipped = state['skipped']
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise TrainingError(f'{path.resolve()}: is the checkpoint of another network; give '
                                'the recipe and data it was started with, or another --out'
                                ) from error


def run_epochs(trainer: Trainer, out: Path,
               validate: Callable[[nn.Module], dict[str, Any]]) -> None:
    """Train to the recipe's last epoch, with a checkpoint and a line of metrics after each.

    :param validate: scores of a network, for the line; asked every ``validate_every`` epochs.
    """
    metrics = out / 'metrics.jsonl'
    while trainer.epoch < trainer.recipe.epochs:
        line: dict[str, Any] = {'epoch': trainer.epoch + 1, **trainer.train_epoch()}
        last = trainer.epoch == trainer.recipe.epochs
        if last or trainer.epoch % trainer.recipe.validate_every == 0:
            line.update(validate(trainer.averaged))
        with open(metrics, 'a', encoding='utf-8') as file:
            file.write(json.dumps(line) + '\n')
        trainer.save(out / 'last.pt')
        tqdm.write(', '.join(f'{key} {value:.4g}' for key, value in line.items()
                             if isinstance(value, int | float)))


def learning_rate(step: int, total_steps: int, recipe: Recipe) -> float:
    """Rate at a step: linear warm-up, then (1 - progress) ** 0.9 (DeepLab's poly schedule)."""
    warmup = min(1.0, (step + 1) / max(recipe.warmup_steps, 1))
    return recipe.learning_rate * warmup * max(0.0, 1 - step / total_steps) ** 0.9


def make_optimizer(network: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """AdamW with weight decay on kernels, none on BatchNorm and biases."""
    kernels = [p for p in network.parameters() if p.ndim > 1]
    others = [p for p in network.parameters() if p.ndim <= 1]
    return torch.optim.AdamW([{'params': kernels, 'weight_decay': recipe.weight_decay},
                              {'params': others, 'weight_decay': 0.0}], lr=recipe.learning_rate)


@torch.no_grad()
def average(averaged: nn.Module, network: nn.Module, decay: float) -> None:
    """Move the averaged weights and BatchNorm statistics towards the network's, in place."""
    for ours, theirs in zip(averaged.state_dict().values(), network.state_dict().values(),
                            strict=True):
        if ours.is_floating_point():
            ours.lerp_(theirs, 1 - decay)
        else:
            ours.copy_(theirs)
