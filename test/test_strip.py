"""The strip network: each property of its description, and its way through files and engines."""

import json
import sys

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from random_models import normalised, random_model
from test_networks import close, conv_norm_relu, lively
from torch import Tensor, nn

from seg_ros.cli import predict
from seg_ros.drawn_scene import DrawnScene
from seg_ros.errors import ConfigError
from seg_ros.inference.deploy import DeployedNetwork
from seg_ros.inference.engines import create_engine
from seg_ros.model_file import load_model, save_model
from seg_ros.networks import build_network
from seg_ros.networks.strip import (
    EnhancedPyramid,
    StripAttention,
    StripNetwork,
    pool_to_column,
    pool_to_grid,
    pool_to_row,
)
from seg_ros.training import evaluate

ENCODER = {'widths': [5, 16, 40], 'dilations2': [2], 'dilations3': [3]}
TINY = {**ENCODER, 'pooled': 3, 'hidden': 8}
SCENE, TRUTH = DrawnScene(5, 120, 90).frame(2.0)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(11)


@pytest.fixture(scope='module')
def model():
    return random_model(TINY, architecture='strip')


@pytest.fixture(scope='module')
def model_file(model, tmp_path_factory):
    path = tmp_path_factory.mktemp('model') / 'strip.safetensors'
    save_model(path, model.network, model.spec)
    return path


def apply_1x1(x: Tensor, conv: nn.Conv2d) -> Tensor:
    return torch.einsum('oi,bihw->bohw', conv.weight[:, :, 0, 0], x) + conv.bias.view(-1, 1, 1)


# Pooling.

def test_cells_of_a_grid_by_hand():
    x = torch.tensor([[1., 2, 3, 4, 5], [10, 20, 30, 40, 50], [0, 0, 0, 0, 60]])[None, None]
    # Two cells of five columns overlap in the third; two of three rows in the second.
    assert close(pool_to_grid(x, 2), torch.tensor([[[[11.0, 22.0], [10.0, 30.0]]]]), 1e-6)
    assert close(pool_to_grid(x, 1), torch.tensor([[[[15.0]]]]), 1e-6)


@pytest.mark.parametrize('n', [1, 2, 3, 6])
@pytest.mark.parametrize('size', [(12, 18), (7, 13), (45, 61), (4, 5), (1, 2)])
def test_grid_has_the_values_of_adaptive_pooling(n, size):
    x = torch.randn(2, 3, *size, dtype=torch.double)
    assert torch.allclose(pool_to_grid(x, n), F.adaptive_avg_pool2d(x, n), rtol=0, atol=1e-14)


def test_row_strip_holds_means_of_columns_and_column_strip_means_of_rows():
    x = torch.tensor([[1., 2, 3], [5, 8, 11]])[None, None]
    assert pool_to_row(x).tolist() == [[[[3.0, 5.0, 7.0]]]]
    assert pool_to_column(x).tolist() == [[[[2.0], [8.0]]]]


@torch.no_grad()
@pytest.mark.parametrize('size', [(6, 12), (7, 9), (4, 5)])
def test_pyramid_is_the_map_beside_six_pooled_branches(size):
    pyramid = lively(EnhancedPyramid(5, 3))
    x = torch.randn(2, 5, *size)
    expected = [x]
    for shape, conv in zip([1, 2, 3, 6, (1, None), (None, 1)],
                           [*pyramid.grids, pyramid.row, pyramid.column], strict=True):
        branch = apply_1x1(F.adaptive_avg_pool2d(x, shape), conv)
        expected.append(F.interpolate(branch, size, mode='bilinear', align_corners=False))
    y = pyramid(x)
    assert y.shape == (2, 5 + 6 * 3, *size)
    assert close(y, torch.cat(expected, dim=1))


@torch.no_grad()
def test_strips_of_the_pyramid_are_repeated_over_the_side_that_was_pooled():
    pyramid = lively(EnhancedPyramid(5, 3))
    y = pyramid(torch.randn(1, 5, 7, 9))
    image, row, column = y[:, 5:8], y[:, 17:20], y[:, 20:23]
    assert close(image, image[:, :, :1, :1].expand_as(image))
    assert close(row, row[:, :, :1].expand_as(row)) and row.std(dim=3).max() > 0.01
    assert close(column, column[..., :1].expand_as(column)) and column.std(dim=2).max() > 0.01


# Strip attention.

@torch.no_grad()
def test_attention_is_the_product_of_both_strips_by_hand():
    attention = StripAttention(1)
    attention.row.weight.copy_(torch.tensor([1.0, 2.0, 3.0]).view(1, 1, 1, 3))
    attention.row.bias.fill_(1.0)
    attention.column.weight.copy_(torch.tensor([0.5, 1.0, -1.0]).view(1, 1, 3, 1))
    attention.column.bias.fill_(-2.0)
    maps = torch.tensor([[1., 2, 3], [5, 8, 11]])[None, None]
    # Row strip 3 5 7, convolved along itself: 2*3+3*5, 1*3+2*5+3*7, 1*5+2*7, each + 1.
    # Column strip 2 8, convolved along itself: 1*2-1*8, 0.5*2+1*8, each - 2.
    row, column = [22.0, 35.0, 20.0], [-8.0, 7.0]
    assert attention(maps)[0, 0].tolist() == [[r * c for r in row] for c in column]


@torch.no_grad()
def test_each_class_map_has_an_attention_map_of_its_own():
    attention = lively(StripAttention(4))
    maps = torch.randn(2, 4, 5, 6)
    before = attention(maps)
    assert before.shape == maps.shape
    maps[:, 2] += torch.randn(2, 5, 6)
    changed = (attention(maps) != before).any(dim=3).any(dim=2)
    assert changed.tolist() == [[False, False, True, False]] * 2


@torch.no_grad()
def test_convolutions_run_along_the_strips():
    attention = lively(StripAttention(1))
    maps = torch.randn(1, 1, 9, 9)
    before = attention(maps)
    maps[0, 0, 2, 6] += 1.0
    changed = (attention(maps) != before)[0, 0]
    columns, rows = torch.zeros(9, dtype=torch.bool), torch.zeros(9, dtype=torch.bool)
    columns[5:8] = True  # the row strip changes at column 6, its convolution at 5, 6 and 7
    rows[1:4] = True
    assert torch.equal(changed, columns[None] | rows[:, None])


# The network.

@torch.no_grad()
@pytest.mark.parametrize('size', [(64, 96), (33, 47)])
def test_network_computes_the_described_steps(size):
    network = lively(build_network('strip', {**TINY, 'classes': 4}))
    image = torch.randn(2, 3, *size)
    light = network.encode(image)[2]
    maps = apply_1x1(conv_norm_relu(network.pyramid(light), network.classify[0]),
                     network.classify[1])
    semantic = maps + network.attention(maps)
    logits = F.interpolate(semantic, size, mode='bilinear', align_corners=False)
    assert maps.shape == (2, 4, -(-size[0] // 8), -(-size[1] // 8))
    assert close(network(image), logits)


@torch.no_grad()
@pytest.mark.parametrize('size', [(32, 32), (32, 333), (61, 45), (127, 129)])
def test_logits_have_the_size_of_the_picture(size):
    network = build_network('strip', {**TINY, 'classes': 4}).eval()
    assert network(torch.randn(1, 3, *size)).shape == (1, 4, *size)


def test_default_network_has_under_a_million_parameters():
    assert sum(parameter.numel() for parameter in StripNetwork(11).parameters()) < 1_000_000


def test_one_picture_can_train_and_gradient_reaches_every_parameter():
    network = build_network('strip', {**TINY, 'classes': 4}).train()
    network(torch.randn(1, 3, 64, 64)).square().mean().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


@torch.no_grad()
def test_encoder_of_an_asymmetric_network_can_start_it():
    asymmetric = lively(build_network('asymmetric', {**ENCODER, 'pyramid': 8, 'classes': 4}))
    strip = build_network('strip', {**TINY, 'classes': 4}).eval()
    mine = strip.state_dict()
    shared = {name: tensor for name, tensor in asymmetric.state_dict().items()
              if name.startswith(('stem', 'down2', 'stage2', 'down3', 'stage3'))}
    assert shared.keys() < mine.keys()
    strip.load_state_dict({**mine, **shared})
    image = torch.randn(1, 3, 40, 48)
    for ours, theirs in zip(strip.encode(image), asymmetric.encode(image), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize('arguments', [
    {}, {'classes': -1}, {'classes': 4, 'pyramid': 96}, {'classes': 4, 'pooled': 0},
    {'classes': 4, 'hidden': 1.5}, {'classes': 4, 'hidden': '9' * 999},
    {'classes': 4, 'widths': [5, 15, 40]}])
def test_arguments_of_no_network_are_refused(arguments):
    with pytest.raises(ConfigError) as caught:
        build_network('strip', arguments)
    assert len(str(caught.value)) < 300


# File, deployed graph, engines and commands.

def test_file_is_read_back_as_it_was_saved(model, model_file):
    again = load_model(model_file)
    assert again.spec == model.spec and isinstance(again.network, StripNetwork)
    image = torch.randn(1, 3, 40, 56)
    assert torch.equal(again.network(image), model.network(image))


def test_deployed_graph_gives_each_pixel_its_most_probable_class(model):
    deployed = DeployedNetwork(model)
    rgb = torch.from_numpy(SCENE)[None]
    with torch.no_grad():
        logits = model.network(normalised(model.spec, rgb))
    assert (logits - deployed.logits(rgb)).abs().max() < 1e-3
    probabilities = torch.softmax(logits.double(), dim=1)
    two_best = probabilities.topk(2, dim=1).values
    clear = two_best[:, 0] - two_best[:, 1] > 1e-4
    labels, confidence = deployed(rgb)
    assert len(labels.unique()) > 3, 'the comparison would say nothing'
    assert clear.float().mean() > 0.99
    assert torch.equal(labels[clear].long(), probabilities.argmax(dim=1)[clear])
    assert (confidence - 255 * two_best[:, 0]).abs().max() <= 0.5 + 0.1
    assert not [m for m in deployed.modules() if isinstance(m, nn.BatchNorm2d)]


@pytest.mark.parametrize('name', ['torch', 'openvino'])
def test_engines_take_it_at_any_size(model, name):
    if name == 'openvino':
        pytest.importorskip('openvino')
    engine = create_engine(model, name, 'cpu', 'float32')
    deployed = DeployedNetwork(model)
    for height, width in [(90, 120), (33, 47), (61, 45)]:  # none is the size of the trace
        rgb = np.ascontiguousarray(SCENE[None, :height, :width])
        labels, confidence = engine.infer(rgb)
        expected, expected_confidence = deployed(torch.from_numpy(rgb))
        assert (labels == expected.numpy()).mean() >= 0.999
        assert np.abs(confidence.astype(int) - expected_confidence.numpy()).max() <= 1
    engine.close()


def test_traced_graph_holds_no_matrix_of_the_size_that_it_was_traced_at(model):
    traced = torch.jit.trace(model.network, torch.zeros(1, 3, 64, 96), check_trace=False)
    image = torch.randn(2, 3, 61, 115)
    with torch.no_grad():
        assert close(traced(image), model.network(image))


@pytest.fixture
def picture(tmp_path):
    """A folder with one labelled picture in CamVid's layout."""
    for folder, pixels in (('val', SCENE[..., ::-1]), ('valannot', TRUTH)):
        (tmp_path / folder).mkdir()
        assert cv2.imwrite(str(tmp_path / folder / 'a.png'), pixels)
    return tmp_path


def test_commands_take_its_file_as_any_other(picture, model, model_file, monkeypatch):
    def run(main, *arguments) -> None:
        monkeypatch.setattr(sys, 'argv', ['command', '--engine', 'torch', '--model',
                                          str(model_file), *map(str, arguments)])
        assert main() == 0

    run(predict.main, picture / 'val' / 'a.png', '-o', picture / 'out')
    labels = cv2.imread(str(picture / 'out' / 'a_labels.png'), cv2.IMREAD_UNCHANGED)
    assert labels.shape == TRUTH.shape
    assert set(np.unique(labels)) <= set(model.spec.labels.ids)
    run(evaluate.main, '--data', picture, '--json', picture / 'scores.json')
    assert json.loads((picture / 'scores.json').read_text())['images'] == 1
