"""What training minimises."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from seg_ros.labels import UNKNOWN
from seg_ros.training.class_terms import class_term
from seg_ros.training.recipe import Recipe

ERROR_BINS = 1024


def total_loss(logits: Tensor, target: Tensor, weights: Tensor, recipe: Recipe,
               step: int) -> Tensor:
    """Cross-entropy and what the recipe adds to it.

    :param logits: (B, classes, H, W).
    :param target: (B, H, W) int64, 255 is void.
    :param weights: (classes,) of the cross-entropy.
    :param step: of the run, from 0; the weight of the class terms rises with it.
    """
    loss = cross_entropy(logits, target, weights, recipe.hard_share)
    if recipe.lovasz_weight:
        # Every second row and column is a fair sample, at a quarter of the time.
        loss = loss + recipe.lovasz_weight * lovasz_softmax(logits[..., ::2, ::2],
                                                            target[..., ::2, ::2])
    if recipe.class_terms == 'none':
        return loss
    warmup = min(1.0, (step + 1) / max(recipe.terms_warmup_steps, 1))
    return loss + warmup * class_term(recipe.class_terms, logits, target, recipe.intra_weight,
                                      recipe.inter_weight, recipe.margin)


def class_weights(frequencies: np.ndarray, balance: float) -> Tensor:
    """Weight of each class in the cross-entropy: (1 / ln(1.10 + frequency)) ** balance.

    With a balance of 1 as in ENet (Paszke et al. 2016), with 0 all classes weigh 1.

    :param frequencies: (classes,) share of each class among all labelled pixels, sum 1.
    """
    return torch.tensor(np.log(1.10 + frequencies) ** -balance, dtype=torch.float32)


def cross_entropy(logits: Tensor, target: Tensor, weights: Tensor,
                  hard_share: float = 1.0) -> Tensor:
    """Weighted mean over all pixels that are not void; 0 where all are.

    :param logits: (B, classes, H, W).
    :param target: (B, H, W) int64, 255 is void.
    :param weights: (classes,).
    :param hard_share: of the pixels that are not void, the most expensive ones, that count.
    """
    losses = F.cross_entropy(logits.float(), target, weights, ignore_index=UNKNOWN,
                             reduction='none')                                     # (B, H, W)
    table = F.pad(weights, (0, UNKNOWN + 1 - len(weights)))
    shares = table[target]                                                         # 0 for void
    if hard_share < 1:
        count = math.ceil(hard_share * int((target != UNKNOWN).sum()))
        losses, hardest = losses.flatten().topk(count)
        shares = shares.flatten()[hardest]
    return losses.sum() / shares.sum().clamp(min=1e-12)


def lovasz_softmax(logits: Tensor, target: Tensor) -> Tensor:
    """Convex surrogate of 1 - mIoU over the batch (Berman et al. 2018), in linear time.

    The original sorts all pixels by their error; here errors are counted into ``ERROR_BINS``
    equal bins, and pixels of one bin share the slope between its ends.

    :param logits: (B, classes, H, W).
    :param target: (B, H, W) int64, 255 is void; classes absent from the batch are left out.
    """
    known = target != UNKNOWN
    probabilities = logits.float().softmax(dim=1)
    losses = []
    for index in target[known].unique().tolist():
        truth = (target == index)[known]
        error = (truth.float() - probabilities[:, index][known]).abs()
        losses.append((error * _jaccard_slope(error.detach(), truth)).sum())
    return torch.stack(losses).mean() if losses else logits.sum() * 0


def _jaccard_slope(error: Tensor, truth: Tensor) -> Tensor:
    """Slope of the Jaccard loss at each pixel, pixels taken from the largest error down."""
    bins = ((1 - error) * ERROR_BINS).long().clamp(0, ERROR_BINS - 1)
    members = torch.bincount(bins, minlength=ERROR_BINS).double()
    positives = torch.bincount(bins[truth], minlength=ERROR_BINS).double()
    missed = positives.cumsum(0)                  # of the class, at least as wrong as this bin
    added = (members - positives).cumsum(0)       # of other classes
    total = missed[-1]
    jaccard = 1 - (total - missed) / (total + added)
    rise = jaccard.diff(prepend=jaccard.new_zeros(1))
    return (rise / members.clamp(min=1)).float()[bins]
