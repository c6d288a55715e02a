"""How the weights move: learning rate, optimiser, running average."""

import torch
from torch import nn

from seg_ros.training.recipe import Recipe


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
