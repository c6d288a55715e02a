"""What training minimises."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from seg_ros.labels import UNKNOWN


def class_weights(frequencies: np.ndarray) -> Tensor:
    """Weight of each class in the cross-entropy: 1 / ln(1.10 + frequency), as in ENet.

    :param frequencies: (classes,) share of each class among all labelled pixels, sum 1.
    """
    return torch.tensor(1 / np.log(1.10 + frequencies), dtype=torch.float32)


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
