"""The deployed graph against the trained network that it is made from."""

import copy

import numpy as np
import onnx
import pytest
import torch
from random_models import TINY, normalised, random_model
from torch import nn

from seg_ros.drawn_scene import DrawnScene
from seg_ros.inference import deploy
from seg_ros.inference.deploy import DeployedNetwork
from seg_ros.inference.fold import (
    Shuffle,
    fold_batch_norms,
    fold_shuffles,
    merge_depthwise_pairs,
)
from seg_ros.inference.onnx_graph import export_graph
from seg_ros.networks.asymmetric import AsymmetricModule
from seg_ros.networks.blocks import ConvNormRelu, DepthwisePair, use_prelu


@pytest.fixture(scope='module')
def model():
    return random_model({})


@pytest.fixture(scope='module')
def deployed(model):
    return DeployedNetwork(model)


def pictures(height: int, width: int) -> torch.Tensor:
    scene = DrawnScene(2, width, height)
    return torch.from_numpy(np.stack([scene.frame(0.0)[0], scene.frame(5.0)[0]]))


@pytest.mark.parametrize('size', [(96, 128), (45, 77), (32, 33), (67, 120)])
def test_logits_equal_those_of_the_trained_network(model, deployed, size):
    rgb = pictures(*size)
    with torch.no_grad():
        trained = model.network(normalised(model.spec, rgb))
        logits = deployed.logits(rgb)
    assert trained.shape == logits.shape == (2, 11, *size)
    assert trained.std() > 0.05, 'the comparison would say nothing'
    assert (trained - logits).abs().max() < 1e-3


def test_labels_and_confidence_are_those_of_the_softmax(model, deployed):
    rgb = pictures(45, 77)
    labels, confidence = deployed(rgb)
    logits = deployed.logits(rgb)
    probability = torch.softmax(logits.double(), dim=1)
    assert labels.dtype == confidence.dtype == torch.uint8
    two_best = logits.topk(2, dim=1).values
    decided = two_best[:, 0] - two_best[:, 1] > 1e-6  # else their float32 probabilities are equal
    assert decided.float().mean() > 0.95
    assert torch.equal(labels.long()[decided], logits.argmax(dim=1)[decided])
    exact = 255 * probability.amax(dim=1)
    assert (confidence - exact).abs().max() <= 0.5 + 1e-3
    assert confidence.max() > 100 > confidence.min()


def test_nothing_is_left_to_fold(deployed):
    left = [type(module).__name__ for module in deployed.modules()
            if isinstance(module, nn.BatchNorm2d | DepthwisePair)]
    assert left == []
    kernels = [tuple(module.kernel_size) for module in deployed.modules()
               if isinstance(module, nn.Conv2d) and module.groups > 1]
    assert kernels == [(3, 3)] * 22  # two in each of 3 + 8 modules


def test_the_trained_network_stays_as_it_was():
    model = random_model()
    before = copy.deepcopy(model.network.state_dict())
    DeployedNetwork(model)
    after = model.network.state_dict()
    assert list(before) == list(after)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(parameter.requires_grad for parameter in model.network.parameters())


def test_a_depthwise_pair_becomes_one_biased_convolution():
    torch.manual_seed(0)
    network = nn.Sequential(DepthwisePair(6, dilation=4)).double()
    pair = network[0]
    pair.norm.running_mean.normal_()
    pair.norm.running_var.uniform_(0.5, 2)
    network.eval()
    # The pair as it is described: 3x1, then 1x3, BatchNorm, ReLU.
    x = torch.randn(1, 6, 21, 30, dtype=torch.double)
    tall = nn.functional.conv2d(x, pair.vertical.weight, padding=(4, 0), dilation=4, groups=6)
    both = nn.functional.conv2d(tall, pair.horizontal.weight, padding=(0, 4), dilation=4, groups=6)
    expected = torch.relu(pair.norm(both))
    merge_depthwise_pairs(network)
    fold_batch_norms(network.eval())
    conv, relu = network[0]
    assert conv.kernel_size == (3, 3) and conv.bias is not None and isinstance(relu, nn.ReLU)
    assert torch.allclose(network(x), expected, atol=1e-12)


def test_folding_keeps_a_bias_that_the_convolution_had():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), ConvNormRelu(4, 5)).double()
    for norm in (network[1], network[2][1]):
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    x = torch.randn(2, 3, 9, 9, dtype=torch.double)
    expected = network.eval()(x)
    fold_batch_norms(network)
    assert len(network) == 2 and len(network[1]) == 2
    assert torch.allclose(network(x), expected, atol=1e-12)


@pytest.mark.parametrize('options', [
    {}, {'activation': 'prelu'}, {'bounded': False}, {'complementary': True}])
def test_other_arguments_deploy_too(options):
    model = random_model({**TINY, **options})
    rgb = pictures(50, 61)
    with torch.no_grad():
        trained = model.network(normalised(model.spec, rgb))
    assert (trained - DeployedNetwork(model).logits(rgb)).abs().max() < 1e-3


@pytest.mark.parametrize('activation', ['relu', 'prelu'])
@pytest.mark.parametrize(('channels', 'modules', 'shuffles'), [
    (8, 1, 1), (8, 5, 1), (10, 4, 4), (32, 3, 1), (48, 3, 1), (128, 8, 3)])
def test_shuffles_fold_into_the_weights_exactly(channels, modules, shuffles, activation):
    torch.manual_seed(1)
    network = nn.Sequential(nn.Sequential(*(
        AsymmetricModule(channels, dilation) for dilation in range(1, modules + 1))))
    if activation == 'prelu':
        use_prelu(network)
        for module in network.modules():
            if isinstance(module, nn.PReLU):
                nn.init.uniform_(module.weight)  # alike, their order would not show
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 2)
            nn.init.normal_(module.bias)
    network.double().eval()
    x = torch.randn(2, channels, 9, 11, dtype=torch.float64)
    with torch.no_grad():
        expected = network(x)
        merge_depthwise_pairs(network)
        fold_batch_norms(network.eval())
        fold_shuffles(network)
        folded = network(x)
    assert expected.std() > 0.1, 'the comparison would say nothing'
    assert (folded - expected).abs().max() < 1e-9
    assert sum(isinstance(module, Shuffle) for module in network.modules()) == shuffles


@pytest.mark.parametrize(('options', 'left'), [  # one is of the second stage
    ({}, 3), ({'architecture': 'strip'}, 3), ({'arguments': {'dilations3': []}}, 1),
    ({'arguments': {'activation': 'prelu'}}, 3), ({'arguments': TINY}, 1)])
def test_what_reads_the_last_stage_does_its_last_shuffle(options, left):
    model = random_model(**{'arguments': {}, **options})
    rgb = pictures(64, 96)
    deployed = DeployedNetwork(model)
    with torch.no_grad():
        expected = model.network(normalised(model.spec, rgb))
    assert (deployed.logits(rgb) - expected).abs().max() < 1e-3
    modules = list(deployed.modules())
    assert not any(isinstance(module, AsymmetricModule) for module in modules)
    assert sum(isinstance(module, Shuffle) for module in modules) == left


@pytest.mark.parametrize(('folds', 'left'), [(['pairs', 'norms'], 11), (list(deploy.FOLDS), 3)])
def test_three_of_eleven_shuffles_are_left_in_the_graph(model, monkeypatch, folds, left):
    monkeypatch.setattr(deploy, 'FOLDS', {name: deploy.FOLDS[name] for name in folds})
    graph = onnx.ModelProto.FromString(export_graph(model)).graph
    # They alone have maps of five dimensions to transpose.
    assert left == sum(node.op_type == 'Transpose' and len(node.attribute[0].ints) == 5
                       for node in graph.node)
