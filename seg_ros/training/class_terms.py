"""Intra-class and inter-class terms, which training may add to the cross-entropy.

Computed in float32 also within autocast (float64 stays). Void has no part in either term.
"""

import torch
from torch import Tensor

from seg_ros.labels import UNKNOWN


def class_term(kind: str, logits: Tensor, target: Tensor, intra_weight: float,
               inter_weight: float, margin: float) -> Tensor:
    """Weighted sum of both terms, which training minimises.

    :param kind: 'literal' or 'conditioned'.
    :param logits: (B, classes, H, W).
    :param target: (B, H, W) int64, 255 is void.
    :param margin: of the conditioned terms.
    """
    if kind == 'literal':
        intra, inter = literal_terms(logits, target)
        return intra_weight * intra - inter_weight * inter  # the distances are to grow
    intra, inter = conditioned_terms(logits, target, margin)
    return intra_weight * intra + inter_weight * inter


def literal_terms(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Terms of the class maps as they are, whatever the labels say; means over the pictures.

    The centre of a picture's class map is the mean of its probabilities. Alone these terms
    prefer one class everywhere, so that their weights have to be small.

    :param logits: (B, classes, H, W).
    :param target: (B, H, W) int64, 255 is void.
    :return: intra, mean over maps and pixels of the distance to the map's centre, to be small;
        inter, sum over pairs of maps of the distance between their centres, to be large. A
        picture of nothing but void adds 0.
    """
    with torch.autocast(logits.device.type, enabled=False):
        probabilities = _probabilities(logits)                           # (B, K, H*W)
        labelled = (target != UNKNOWN).flatten(1)[:, None].to(probabilities.dtype)
        pixels = labelled.sum(dim=2).clamp(min=1)                        # (B, 1)
        centres = (probabilities * labelled).sum(dim=2) / pixels         # (B, K)
        distances = (probabilities - centres[:, :, None]).abs() * labelled
        intra = (distances.sum(dim=2) / pixels).mean()
        one, other = _pairs(centres.shape[1], centres)
        inter = (centres[:, one] - centres[:, other]).abs().sum(dim=1).mean()
        return intra, inter


def conditioned_terms(logits: Tensor, target: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """Terms of the probabilities of the pixels that have a label in common.

    The centre of a class is the mean probability vector over the batch's pixels labelled so;
    a class without pixels has none.

    :param logits: (B, classes, H, W).
    :param target: (B, H, W) int64, 255 is void.
    :param margin: distance that two centres are to have, sqrt(2) at most.
    :return: intra, mean over pixels of the squared distance to the centre of their class;
        inter, sum over pairs of classes present of what their distance lacks to the margin.
        Both are to be small; both are 0 where all is void.
    """
    with torch.autocast(logits.device.type, enabled=False):
        probabilities = _probabilities(logits)                           # (B, K, H*W)
        ids = torch.arange(logits.shape[1], device=target.device)
        # As 0 and 1, so that matrix products sum over pixels and look the centres up.
        members = (target.flatten(1)[:, None] == ids[:, None]).to(probabilities.dtype)
        pixels = members.sum(dim=(0, 2))                                 # (K,)
        sums = (members @ probabilities.transpose(1, 2)).sum(dim=0)      # (K, K)
        centres = sums / pixels.clamp(min=1)[:, None]                    # (K, K), row by class
        squares = (probabilities - centres.T @ members).square().sum(dim=1)
        intra = (squares * members.sum(dim=1)).sum() / pixels.sum().clamp(min=1)
        one, other = _pairs(len(centres), centres)
        # vector_norm has the gradient 0, not NaN, where two centres coincide.
        distances = torch.linalg.vector_norm(centres[one] - centres[other], dim=1)
        present = (pixels[one] > 0) & (pixels[other] > 0)
        inter = ((margin - distances).clamp(min=0) * present).sum()
        return intra, inter


def _probabilities(logits: Tensor) -> Tensor:
    """(B, classes, H, W) of any type to (B, classes, H * W) in float32 or float64."""
    dtype = torch.promote_types(logits.dtype, torch.float32)
    return torch.softmax(logits.to(dtype), dim=1).flatten(2)


def _pairs(classes: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Both classes of each pair of two."""
    one, other = torch.triu_indices(classes, classes, offset=1, device=like.device)
    return one, other
