"""What training minimises."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from seg_ros.labels import UNKNOWN
from seg_ros.training.class_terms import class_term
from seg_ros.training.recipe import Recipe


def total_loss(logits: Tensor, target: Tensor, weights: Tensor, recipe: Recipe,
               step: int) -> Tensor:
    """Cross-entropy and the class terms that the recipe adds to it.

    :param logits: (B, classes, H, W).
    :param target: (B, H, W) int64, 255 is void.
    :param weights: (classes,) of the cross-entropy.
    :param step: of the run, from 0; the weight of the class terms rises with it.
    """
    loss = cross_entropy(logits, target, weights)
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


def cross_entropy(logits: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean over all pixels that are not void; 0 where all are.

    :param logits: (B, classes, H, W).
    :param target: (B, H, W) int64, 255 is void.
    :param weights: (classes,).
    """
    total = F.cross_entropy(logits.float(), target, weights, ignore_index=UNKNOWN,
                            reduction='sum')
    table = F.pad(weights, (0, UNKNOWN + 1 - len(weights)))
    return total / table[target].sum().clamp(min=1e-12)
