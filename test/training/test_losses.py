"""Losses against values computed by hand."""

import math

import numpy as np
import pytest
import torch

from seg_ros.training.losses import (
    class_weights,
    cross_entropy,
    lovasz_softmax,
    total_loss,
)
from seg_ros.training.recipe import Recipe


@pytest.mark.parametrize(('balance', 'expected'), [
    (1.0, [10.4921, 2.12765, 2.79584]),  # 1 / ln(1.10 + p) = 1 / 0.09531, 1 / 0.47, 1 / 0.35767
    (0.5, [3.23915, 1.45865, 1.67208]),  # the square roots of these
    (0.0, [1.0, 1.0, 1.0])])
def test_class_weights_are_those_of_the_formula(balance, expected):
    weights = class_weights(np.array([0.0, 0.5, 0.330]), balance)
    assert weights.tolist() == pytest.approx(expected, rel=1e-4)
    assert weights.dtype == torch.float32


def test_class_weights_of_camvid_are_the_known_ones():
    shares = np.array([.175, .242, .010, .330, .047, .101, .012, .012, .061, .007, .003])
    known = [4.1, 3.4, 9.6, 2.8, 7.3, 5.5, 9.4, 9.4, 6.7, 9.9, 10.2]
    assert class_weights(shares, 1.0).tolist() == pytest.approx(known, abs=0.1)


def two_by_two() -> torch.Tensor:
    """Logits of two classes on a 2x2 map: differences (first - second) 0, ln 3, -ln 3, 0."""
    difference = torch.tensor([[0.0, math.log(3)], [-math.log(3), 0.0]])
    return torch.stack([difference, torch.zeros(2, 2)])[None]


def test_cross_entropy_is_the_weighted_mean_by_hand():
    # Probabilities of the first class: 1/2, 3/4; 1/4, 1/2.
    target = torch.tensor([[[0, 0], [1, 1]]])
    losses = [math.log(2), math.log(4 / 3), math.log(4 / 3), math.log(2)]
    loss = cross_entropy(two_by_two(), target, torch.tensor([1.0, 3.0]))
    expected = (1 * (losses[0] + losses[1]) + 3 * (losses[2] + losses[3])) / (1 + 1 + 3 + 3)
    assert loss.item() == pytest.approx(expected, rel=1e-6)


def test_void_is_not_part_of_the_mean():
    target = torch.tensor([[[255, 0], [255, 1]]])
    loss = cross_entropy(two_by_two(), target, torch.tensor([1.0, 3.0]))
    assert loss.item() == pytest.approx((math.log(4 / 3) + 3 * math.log(2)) / 4, rel=1e-6)


def test_void_gets_no_gradient():
    logits = two_by_two().requires_grad_()
    target = torch.tensor([[[255, 0], [255, 1]]])
    cross_entropy(logits, target, torch.tensor([1.0, 3.0])).backward()
    assert (logits.grad[..., 0] == 0).all()
    # (weight / sum of weights) * (p - 1) = 1/4 * (3/4 - 1) for the pixel of class 0.
    assert logits.grad[0, 0, 0, 1].item() == pytest.approx(-1 / 16, rel=1e-5)


def test_nothing_but_void_gives_zero_and_no_gradient():
    logits = two_by_two().requires_grad_()
    loss = cross_entropy(logits, torch.full((1, 2, 2), 255), torch.ones(2))
    loss.backward()
    assert loss.item() == 0
    assert (logits.grad == 0).all()


def test_mean_is_over_the_pixels_of_the_batch_not_over_pictures():
    target = torch.tensor([[[0, 255], [255, 255]], [[1, 0], [1, 1]]])
    logits = two_by_two().repeat(2, 1, 1, 1)
    losses = [math.log(2), math.log(2), math.log(4 / 3), math.log(4 / 3), math.log(2)]
    loss = cross_entropy(logits, target, torch.ones(2))
    assert loss.item() == pytest.approx(sum(losses) / 5, rel=1e-6)


def test_only_the_hardest_pixels_count():
    # Losses ln 2, ln 4/3, ln 4/3, ln 2 with weights 1, 1, 3, 3: weighted, the last two are
    # largest (0.86, 2.08), and half of the four pixels count.
    target = torch.tensor([[[0, 0], [1, 1]]])
    logits = two_by_two().requires_grad_()
    loss = cross_entropy(logits, target, torch.tensor([1.0, 3.0]), hard_share=0.5)
    loss.backward()
    assert loss.item() == pytest.approx((3 * math.log(4 / 3) + 3 * math.log(2)) / 6, rel=1e-6)
    assert (logits.grad[0, :, 0] == 0).all() and (logits.grad[0, :, 1] != 0).all()


def test_share_of_the_hardest_is_of_what_is_not_void():
    target = torch.tensor([[[255, 0], [255, 1]]])  # losses ln 4/3, ln 2: one of two counts
    loss = cross_entropy(two_by_two(), target, torch.ones(2), hard_share=0.5)
    assert loss.item() == pytest.approx(math.log(2), rel=1e-6)
    nothing = cross_entropy(two_by_two(), torch.full((1, 2, 2), 255), torch.ones(2), 0.5)
    assert nothing.item() == 0


def test_lovasz_softmax_by_hand():
    # Probabilities of class 0: 1/2, 3/4, 1/4, 1/2; truth 0, 0, 1, 1. Class 0: errors 1/2, 1/4,
    # 1/4, 1/2. From the largest down, the Jaccard loss after the two of 1/2 (one pixel missed,
    # one added) is 1 - 1/3, after all four 1. Their ties share a slope: 2/3 * 1/2 + 1/3 * 1/4.
    # Class 1 has the same errors.
    loss = lovasz_softmax(two_by_two(), torch.tensor([[[0, 0], [1, 1]]]))
    assert loss.item() == pytest.approx(2 / 3 * 1 / 2 + 1 / 3 * 1 / 4, rel=1e-5)


def sorted_lovasz(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The definition (Berman et al. 2018): errors sorted, weighed by the steps of the Jaccard."""
    probabilities, known = logits.softmax(dim=1), target != 255
    losses = []
    for index in sorted(set(target[known].tolist())):
        truth = (target == index)[known].double()
        errors = (truth - probabilities[:, index][known]).abs()
        errors, order = errors.sort(descending=True)
        truth = truth[order]
        jaccard = 1 - (truth.sum() - truth.cumsum(0)) / (truth.sum() + (1 - truth).cumsum(0))
        steps = torch.cat([jaccard[:1], jaccard[1:] - jaccard[:-1]])
        losses.append(errors @ steps)
    return torch.stack(losses).mean()


def test_lovasz_softmax_equals_the_sorted_one_to_the_width_of_a_bin():
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(2, 5, 30, 40, generator=generator, dtype=torch.double)
    target = torch.randint(0, 4, (2, 30, 40), generator=generator)  # class 4 is absent
    target[0, :5] = 255
    exact = sorted_lovasz(logits, target).item()
    assert lovasz_softmax(logits, target).item() == pytest.approx(exact, abs=1 / 1024)


def test_lovasz_softmax_falls_along_its_gradient_and_leaves_void_alone():
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(1, 3, 20, 20, generator=generator).requires_grad_()
    target = torch.randint(0, 3, (1, 20, 20), generator=generator)
    target[0, 0] = 255
    first = lovasz_softmax(logits, target).item()
    moved = logits
    for _ in range(60):
        gradient, = torch.autograd.grad(lovasz_softmax(moved, target), moved)
        assert (gradient[..., 0, :] == 0).all() and torch.isfinite(gradient).all()
        moved = (moved - 100 * gradient).detach().requires_grad_()
    assert lovasz_softmax(moved, target).item() < first / 3


def test_lovasz_softmax_of_perfect_labels_is_zero_and_of_void_alone_too():
    target = torch.tensor([[[0, 1], [1, 255]]])
    logits = 50.0 * torch.nn.functional.one_hot(target.clamp(max=1), 2).permute(0, 3, 1, 2)
    assert lovasz_softmax(logits, target).item() == pytest.approx(0, abs=1e-6)
    logits = torch.zeros(1, 2, 2, 2, requires_grad=True)
    loss = lovasz_softmax(logits, torch.full((1, 2, 2), 255))
    loss.backward()
    assert loss.item() == 0 and (logits.grad == 0).all()


def test_recipe_adds_the_lovasz_loss_by_its_weight():
    logits = two_by_two().repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
    target = torch.tensor([[[0, 0], [1, 1]]])
    target = target.repeat_interleave(2, dim=1).repeat_interleave(2, dim=2)
    weights = torch.ones(2)
    plain = total_loss(logits, target, weights, Recipe(), 0).item()
    both = total_loss(logits, target, weights, Recipe(lovasz_weight=0.5), 0).item()
    assert both - plain == pytest.approx(0.5 * (2 / 3 * 1 / 2 + 1 / 3 * 1 / 4), rel=1e-4)
