"""Losses against values computed by hand."""

import math

import numpy as np
import pytest
import torch

from seg_ros.training.losses import class_weights, cross_entropy


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
