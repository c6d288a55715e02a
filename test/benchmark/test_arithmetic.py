"""Multiply-adds, counted by hand."""

import torch
from random_models import random_model
from torch import nn

from seg_ros.benchmark.arithmetic import (
    SIDE,
    MatrixProduct,
    count_multiply_adds,
    multiply_adds_of,
)
from seg_ros.benchmark.contender import open_model
from seg_ros.inference.deploy import DeployedNetwork


def test_multiply_adds_of_a_small_network_are_those_counted_by_hand():
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),             # 5x7 results of 27 products, 8 times
        nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8),  # 5x7 results of 9, 8 times
        nn.Conv2d(8, 4, 1),                                   # 5x7 results of 8, 4 times
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 6)).eval()
    expected = 5 * 7 * (8 * 27 + 8 * 9 + 4 * 8) + 4 * 6
    assert count_multiply_adds(network, torch.zeros(1, 3, 9, 13)) == expected
    assert count_multiply_adds(network, torch.zeros(2, 3, 9, 13)) == 2 * expected


def test_multiply_adds_of_a_model_grow_with_the_picture():
    model = random_model()
    small, large = (multiply_adds_of(model, height, width)
                    for height, width in ((64, 96), (128, 192)))
    assert 3.9 < large / small < 4  # but for the attention's, which are per picture


def test_multiply_adds_of_a_model_are_those_of_its_convolutions():
    model = open_model('dabnet', like='')  # has nothing else that multiplies
    counted = []

    def count(conv, _, out):
        counted.append(out[0].numel() * conv.weight[0].numel())

    network = DeployedNetwork(model)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(count)
    network(torch.zeros((1, 64, 96, 3), dtype=torch.uint8))
    assert multiply_adds_of(model, 64, 96) == sum(counted) > 1e6


def test_matrix_product_takes_the_threads_that_it_is_given():
    before = torch.get_num_threads()
    try:
        laps = MatrixProduct(2).run()
        assert torch.get_num_threads() == 2
        assert MatrixProduct(1).run().keys() == {'peak'} and torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
    assert laps['peak'] > 0 and MatrixProduct.multiply_adds == SIDE * SIDE * SIDE
