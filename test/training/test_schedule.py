"""The learning rate, which weights decay, and the running average of them."""

import pytest
import torch
from torch import nn

from seg_ros.networks.asymmetric import AsymmetricNetwork
from seg_ros.training.recipe import Recipe
from seg_ros.training.schedule import average, learning_rate, make_optimizer


def test_rate_rises_linearly_and_falls_by_the_poly_rule():
    recipe = Recipe(learning_rate=2.0, warmup_steps=4)
    rates = [learning_rate(step, 10, recipe) for step in range(11)]
    assert rates[0] == pytest.approx(2.0 * 1 / 4)
    assert rates[1] == pytest.approx(2.0 * 2 / 4 * 0.909532576)     # 0.9 ** 0.9
    assert rates[3] == pytest.approx(2.0 * 0.725417847)             # 0.7 ** 0.9
    assert rates[5] == pytest.approx(2.0 * 0.535886731)             # 0.5 ** 0.9
    assert rates[9] == pytest.approx(2.0 * 0.125892541)             # 0.1 ** 0.9
    assert rates[10] == 0


def test_rate_without_warmup_starts_at_its_highest():
    assert learning_rate(0, 10, Recipe(learning_rate=0.5, warmup_steps=0)) == 0.5


def test_rate_past_the_last_step_is_zero():
    assert learning_rate(12, 10, Recipe()) == 0  # a run resumed with fewer epochs


def test_average_moves_weights_and_statistics_and_copies_counters():
    averaged, network = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    with torch.no_grad():
        averaged.weight.copy_(torch.tensor([1.0, 2.0]))
        network.weight.copy_(torch.tensor([5.0, 0.0]))
    network.running_mean += 8
    network.num_batches_tracked += 3
    average(averaged, network, 0.75)
    assert averaged.weight.tolist() == [0.75 * 1 + 0.25 * 5, 0.75 * 2 + 0.25 * 0]
    assert averaged.running_mean.tolist() == [2, 2]
    assert averaged.num_batches_tracked == 3
    assert network.weight.tolist() == [5, 0]


def test_kernels_decay_and_nothing_else():
    recipe = Recipe(weight_decay=0.3)
    network = AsymmetricNetwork(11, (5, 16, 40), (2,), (3,), 8)
    kernels, others = make_optimizer(network, recipe).param_groups
    assert (kernels['weight_decay'], others['weight_decay']) == (0.3, 0.0)
    assert {p.ndim for p in kernels['params']} == {4}
    assert {p.ndim for p in others['params']} == {1}
    assert len(kernels['params']) + len(others['params']) == len([*network.parameters()])
