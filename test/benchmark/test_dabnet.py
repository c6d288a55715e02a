"""The comparison network, by what its paper says of it."""

import pytest
import torch
from torch import nn

from seg_ros.benchmark.dabnet import DabNet


def test_it_is_as_large_as_the_paper_says():
    network = DabNet(19).eval()
    slopes = []
    for module in network.modules():
        if isinstance(module, nn.ReLU):
            module.register_forward_hook(lambda *call: slopes.append(call[-1].shape[1]))
    with torch.no_grad():
        network(torch.zeros(1, 3, 32, 32))
    weights = sum(parameter.numel() for parameter in network.parameters())
    # The paper's PReLU has one slope a channel.
    assert round((weights + sum(slopes)) / 1e6, 2) == 0.76


@pytest.mark.parametrize(('height', 'width'), [(64, 96), (45, 61)])
def test_logits_are_of_the_size_of_the_image(height, width):
    with torch.no_grad():
        logits = DabNet(5).eval()(torch.rand(2, 3, height, width))
    assert logits.shape == (2, 5, height, width)
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize('module', ['block1', 'block2'])
def test_what_a_pixel_sees_grows_with_the_dilations(module):
    """By 1 a side for each 3x3, by the dilation for each dilated pair."""
    block = getattr(DabNet(5), module).eval()
    channels = 64 if module == 'block1' else 128
    x = torch.rand(1, channels, 131, 131, requires_grad=True)
    block(x)[0, :, 65, 65].sum().backward()
    seen = x.grad.abs().sum(dim=(0, 1)).nonzero()
    reach = {'block1': 3 * (1 + 2), 'block2': 6 + 4 + 4 + 8 + 8 + 16 + 16}[module]
    assert (seen.min(), seen.max()) == (max(65 - reach, 0), min(65 + reach, 130))
