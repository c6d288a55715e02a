"""The asymmetric network: its parts against plain implementations of what they stand for."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seg_ros.errors import ConfigError
from seg_ros.networks import build_network
from seg_ros.networks.asymmetric import (
    AsymmetricModule,
    AsymmetricNetwork,
    ChannelAttention,
    ParallelDownsampling,
    PixelAttention,
    PixelAttentionFusion,
    PyramidAttention,
    shuffle_channels,
)
from seg_ros.networks.blocks import ConvNormRelu, DepthwisePair, use_prelu

torch.set_num_threads(1)  # the tensors here are too small to share out

TINY = {'classes': 4, 'widths': [5, 16, 40], 'dilations2': [2], 'dilations3': [1, 3], 'pyramid': 8}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(11)


def lively(module: nn.Module) -> nn.Module:
    """Give BatchNorm and biases values that would show if they were left out."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.normal_(part.bias)
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2.0)
        elif isinstance(part, nn.Conv2d) and part.bias is not None:
            nn.init.normal_(part.bias)
    return module.eval()


def close(x: Tensor, y: Tensor, tolerance: float = 1e-5) -> bool:
    assert x.shape == y.shape
    return (x - y).abs().max().item() <= tolerance * max(1.0, y.abs().max().item())


# Plain implementations, from the description. Weights come from the modules.

def norm(x: Tensor, n: nn.BatchNorm2d) -> Tensor:
    column = (1, -1, 1, 1)
    scaled = (x - n.running_mean.view(column)) / (n.running_var.view(column) + 1e-5).sqrt()
    return scaled * n.weight.view(column) + n.bias.view(column)


def conv_norm_relu(x: Tensor, block: ConvNormRelu, stride: int = 1) -> Tensor:
    weight = block[0].weight
    top, left = weight.shape[2] // 2, weight.shape[3] // 2
    padded = F.pad(x, (left, left, top, top))
    return norm(F.conv2d(padded, weight, stride=stride), block[1]).clamp(min=0)


def depthwise_pair(x: Tensor, pair: DepthwisePair, d: int) -> Tensor:
    """3x1 and then 1x3, channel by channel, each padded with zeros."""
    c = x.shape[1]
    x = F.conv2d(x, pair.vertical.weight, padding=(d, 0), dilation=(d, 1), groups=c)
    x = F.conv2d(x, pair.horizontal.weight, padding=(0, d), dilation=(1, d), groups=c)
    return norm(x, pair.norm).clamp(min=0)


def channel_attention(x: Tensor, attention: ChannelAttention) -> Tensor:
    means = x.flatten(2).mean(dim=2)
    squeeze, excite = attention.squeeze, attention.excite
    hidden = (means @ squeeze.weight[:, :, 0, 0].T + squeeze.bias).clamp(min=0)
    weights = torch.sigmoid(hidden @ excite.weight[:, :, 0, 0].T + excite.bias)
    return x * weights[:, :, None, None]


def asymmetric_module(x: Tensor, module: AsymmetricModule, d: int) -> Tensor:
    reduced = conv_norm_relu(x, module.reduce)
    both = torch.cat([depthwise_pair(reduced, module.local, 1),
                      depthwise_pair(reduced, module.context, d)], dim=1)
    return F.channel_shuffle(channel_attention(both, module.attention) + x, 2)


def shrink(x: Tensor) -> Tensor:
    """Mean of the pixels of a 3x3 window that lie inside the picture, every second pixel."""
    ones = torch.ones(x.shape[1], 1, 3, 3)
    total = F.conv2d(x, ones, stride=2, padding=1, groups=x.shape[1])
    return total / F.conv2d(torch.ones_like(x), ones, stride=2, padding=1, groups=x.shape[1])


def upsample(x: Tensor, size: tuple[int, int]) -> Tensor:
    return F.interpolate(x, size, mode='bilinear', align_corners=False)


def parallel_downsampling(x: Tensor, down: ParallelDownsampling) -> Tensor:
    even = F.pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2), value=-torch.inf)
    pooled = torch.stack([even[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)]).amax(dim=0)
    return torch.cat([conv_norm_relu(x, down.conv, stride=2), pooled], dim=1)


def pyramid_attention(x: Tensor, p: PyramidAttention, bound=torch.sigmoid) -> Tensor:
    x = conv_norm_relu(x, p.reduce)
    x2 = shrink(x)
    x4 = shrink(x2)
    x8 = shrink(x4)

    def smooth(level: Tensor, layers: nn.Sequential) -> Tensor:
        level = conv_norm_relu(level, layers[0])
        return norm(F.conv2d(level, layers[1].weight, padding=(0, 1)), layers[2])

    rising = upsample(smooth(x8, p.smooth[0]), x4.shape[-2:]) + x4
    rising = upsample(smooth(rising, p.smooth[1]), x2.shape[-2:]) + x2
    rising = upsample(smooth(rising, p.smooth[2]), x.shape[-2:])
    means = x.flatten(2).mean(dim=2)
    image = means @ p.image_level.weight[:, :, 0, 0].T + p.image_level.bias
    return x * bound(rising) + image[:, :, None, None]


def pixel_attention(low: Tensor, high: Tensor, p: PixelAttention) -> Tensor:
    """An ordinary 3x3 convolution of cat(low, high) with one output channel."""
    taps = torch.cat([p.low_taps.weight, p.high_taps.weight], dim=1)      # (9, 2C, 1, 1)
    kernel = taps[:, :, 0, 0].T.reshape(1, -1, 3, 3)
    return F.conv2d(torch.cat([low, high], dim=1), kernel, p.bias, padding=1)


def fusion(low: Tensor, high: Tensor, f: PixelAttentionFusion) -> Tensor:
    low = upsample(norm(F.conv2d(low, f.match[0].weight), f.match[1]), high.shape[-2:])
    weight = torch.sigmoid(pixel_attention(low, high, f.attention))
    return weight * low + weight * high


def whole_network(image: Tensor, n: AsymmetricNetwork) -> Tensor:
    """The steps of the description, for the TINY network."""
    image2 = shrink(image)
    image4 = shrink(image2)
    image8 = shrink(image4)
    f1 = conv_norm_relu(image, n.stem[0], stride=2)
    f1 = conv_norm_relu(conv_norm_relu(f1, n.stem[1]), n.stem[2])
    c1 = torch.cat([f1, image2], dim=1)
    d2 = parallel_downsampling(c1, n.down2)
    c2 = torch.cat([asymmetric_module(d2, n.stage2[0], 2), d2, image4], dim=1)
    d3 = parallel_downsampling(c2, n.down3)
    f3 = asymmetric_module(asymmetric_module(d3, n.stage3[0], 1), n.stage3[1], 3)
    c3 = torch.cat([f3, d3, image8], dim=1)
    fused = fusion(fusion(pyramid_attention(c3, n.pyramid), c2, n.fuse2), c1, n.fuse1)
    logits = F.conv2d(fused, n.classify.weight, n.classify.bias)
    return upsample(logits, image.shape[-2:])


@torch.no_grad()
@pytest.mark.parametrize('size', [(64, 96), (33, 47), (61, 45)])
def test_network_computes_the_described_steps(size):
    network = lively(build_network('asymmetric', TINY))
    image = torch.randn(2, 3, *size)
    assert close(network(image), whole_network(image, network), 1e-4)


@torch.no_grad()
@pytest.mark.parametrize('size', [(32, 32), (32, 333), (33, 47), (61, 45), (40, 56), (127, 129)])
def test_logits_have_the_size_of_the_picture(size):
    network = build_network('asymmetric', TINY).eval()
    assert network(torch.randn(1, 3, *size)).shape == (1, 4, *size)


def test_default_network_has_under_a_million_parameters():
    network = build_network('asymmetric', {'classes': 11})
    assert sum(parameter.numel() for parameter in network.parameters()) < 1_000_000


@torch.no_grad()
def test_default_network_runs_at_an_odd_size():
    assert AsymmetricNetwork(11).eval()(torch.randn(1, 3, 61, 45)).shape == (1, 11, 61, 45)


def test_gradient_reaches_every_parameter():
    network = build_network('asymmetric', TINY).train()
    network(torch.randn(2, 3, 64, 64)).square().mean().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


@torch.no_grad()
def test_pictures_of_a_batch_do_not_influence_each_other():
    network = lively(build_network('asymmetric', TINY))
    pictures = torch.randn(2, 3, 40, 48)
    assert close(network(pictures)[1:], network(pictures[1:]))


@torch.no_grad()
@pytest.mark.parametrize('dilation', [1, 2, 5, 32])
@pytest.mark.parametrize('size', [(9, 13), (4, 40)])
def test_depthwise_pair_is_3x1_then_1x3(dilation, size):
    pair = lively(DepthwisePair(6, dilation))
    x = torch.randn(2, 6, *size)
    assert close(pair(x), depthwise_pair(x, pair, dilation))


def test_depthwise_pair_has_the_gradients_of_its_two_convolutions():
    pair = lively(DepthwisePair(6, 2))
    x = torch.randn(2, 6, 9, 13)
    weights = [pair.vertical.weight, pair.horizontal.weight]
    merged = torch.autograd.grad(pair(x).square().sum(), weights)
    plain = torch.autograd.grad(depthwise_pair(x, pair, 2).square().sum(), weights)
    assert all(close(ours, theirs, 1e-4) for ours, theirs in zip(merged, plain, strict=True))


@torch.no_grad()
@pytest.mark.parametrize('size', [(8, 12), (7, 9)])
def test_pixel_attention_is_a_3x3_convolution_of_both_maps(size):
    attention = PixelAttention(5)
    attention.bias.fill_(0.7)
    low, high = torch.randn(2, 5, *size), torch.randn(2, 5, *size)
    assert close(attention(low, high), pixel_attention(low, high, attention))


def test_shifts_of_pixel_attention_are_no_weights():
    assert not any('shifts' in name for name in PixelAttention(5).state_dict())


@torch.no_grad()
def test_channel_shuffle_is_that_of_torch():
    x = torch.randn(2, 10, 3, 5)
    assert torch.equal(shuffle_channels(x, 2), F.channel_shuffle(x, 2))
    rows = torch.arange(4.0).view(1, 4, 1, 1)
    assert shuffle_channels(rows, 2).flatten().tolist() == [0, 2, 1, 3]


@torch.no_grad()
def test_channel_attention_weighs_channels_by_all_their_means():
    attention = lively(ChannelAttention(16))
    x = torch.randn(2, 16, 4, 7)
    assert close(attention(x), channel_attention(x, attention))
    attention.excite.weight.zero_()
    attention.excite.bias.zero_()
    assert close(attention(x), x / 2)  # sigmoid(0)


@torch.no_grad()
@pytest.mark.parametrize('dilation', [1, 4])
def test_asymmetric_module_is_its_steps(dilation):
    module = lively(AsymmetricModule(16, dilation))
    x = torch.randn(2, 16, 9, 11)
    assert close(module(x), asymmetric_module(x, module, dilation))


@torch.no_grad()
@pytest.mark.parametrize('size', [(8, 12), (9, 13), (5, 6)])
def test_parallel_downsampling_keeps_the_pooled_half_untouched(size):
    down = lively(ParallelDownsampling(3, 8))
    x = torch.randn(2, 3, *size)
    y = down(x)
    assert y.shape == (2, 8, (size[0] + 1) // 2, (size[1] + 1) // 2)
    assert close(y, parallel_downsampling(x, down))
    for row in range(y.shape[2]):  # the last three channels are maxima of the input, no more
        for column in range(y.shape[3]):
            window = x[:, :, 2 * row:2 * row + 2, 2 * column:2 * column + 2]
            assert torch.equal(y[:, 5:, row, column], window.amax(dim=(2, 3)))


@torch.no_grad()
def test_image_pyramid_takes_means_of_what_lies_inside():
    x = torch.tensor([[0., 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]])
    x = x[None, None].repeat(1, 3, 1, 1)
    shrunk = build_network('asymmetric', TINY).shrink_image(x)
    # Corner: (0 + 1 + 4 + 5) / 4; edges: 6 values; inside: 9 values around 10.
    assert shrunk[0, 2].tolist() == [[2.5, 4.0], [8.5, 10.0]]
    assert close(shrunk, shrink(x))
    assert close(build_network('asymmetric', TINY).shrink_image(torch.ones(1, 3, 7, 9)),
                 torch.ones(1, 3, 4, 5))


@torch.no_grad()
@pytest.mark.parametrize('size', [(4, 4), (5, 6), (16, 12), (1, 1)])
def test_pyramid_attention_is_its_steps(size):
    pyramid = lively(PyramidAttention(7, 6, bounded=True))
    x = torch.randn(2, 7, *size)
    assert close(pyramid(x), pyramid_attention(x, pyramid))


@torch.no_grad()
def test_unbounded_pyramid_multiplies_as_it_is():
    pyramid = lively(PyramidAttention(7, 6, bounded=False))
    x = torch.randn(2, 7, 5, 6)
    assert close(pyramid(x), pyramid_attention(x, pyramid, bound=lambda rising: rising))


@torch.no_grad()
def test_fusion_weighs_both_maps_alike():
    fuse = lively(PixelAttentionFusion(4, 6, complementary=False))
    low, high = torch.randn(2, 4, 5, 6), torch.randn(2, 6, 9, 12)
    assert close(fuse(low, high), fusion(low, high, fuse))


@torch.no_grad()
def test_complementary_fusion_gives_the_high_map_what_the_low_one_lacks():
    fuse = lively(PixelAttentionFusion(4, 6, complementary=True))
    low, high = torch.randn(2, 4, 5, 6), torch.randn(2, 6, 9, 12)
    matched = upsample(norm(F.conv2d(low, fuse.match[0].weight), fuse.match[1]), (9, 12))
    weight = torch.sigmoid(pixel_attention(matched, high, fuse.attention))
    assert close(fuse(low, high), high + weight * (matched - high))


@torch.no_grad()
def test_prelu_stands_wherever_a_batchnorm_was_followed_by_relu():
    """With all slopes 0 it is ReLU; with all slopes 1 nothing is cut."""
    relu = lively(build_network('asymmetric', TINY))
    prelu = build_network('asymmetric', {**TINY, 'activation': 'prelu'}).eval()
    prelu.load_state_dict(relu.state_dict(), strict=False)
    slopes = {name: value for name, value in prelu.state_dict().items()
              if name not in relu.state_dict()}
    norms = [module for module in relu.modules() if isinstance(module, nn.BatchNorm2d)]
    unfollowed = 3 + 2  # the pyramid's smoothing and the fusions' matching end with BatchNorm
    assert len(slopes) == len(norms) - unfollowed
    image = torch.randn(1, 3, 40, 48)
    for value in slopes.values():
        value.fill_(0)
    assert close(prelu(image), relu(image))
    pair = lively(DepthwisePair(6))
    x = torch.randn(1, 6, 8, 8)
    block = nn.Sequential(pair, lively(ConvNormRelu(6, 4)))
    use_prelu(block)
    for module in block.modules():
        if isinstance(module, nn.PReLU):
            module.weight.fill_(1)
    y = norm(F.conv2d(x, pair.kernel(), padding=1, groups=6), pair.norm)
    assert close(block(x), norm(F.conv2d(y, block[1][0].weight, padding=1), block[1][1]))


@pytest.mark.parametrize('name', ['nonsense', '', None, 5, ['asymmetric']])
def test_unknown_architecture_is_refused_with_the_known_ones(name):
    with pytest.raises(ConfigError, match='known are asymmetric'):
        build_network(name, {'classes': 4})


@pytest.mark.parametrize('arguments', [
    {}, {'classes': 0.5}, {'classes': -1}, {'classes': 4, 'depth': 1}, {'classes': 4, 5: 1},
    {'classes': 4, 'widths': [5, 15, 40]}, {'classes': 4, 'widths': [13, 16, 40]},
    {'classes': 4, 'widths': (29, 48, 98)}, {'classes': 4, 'widths': [29, 48]},
    {'classes': 4, 'dilations3': [0]}, {'classes': 4, 'dilations2': [1.5]},
    {'classes': 4, 'pyramid': '96'}, {'classes': 4, 'activation': 'gelu'}])
def test_arguments_of_no_network_are_refused(arguments):
    with pytest.raises(ConfigError):
        build_network('asymmetric', arguments)


@torch.no_grad()
@pytest.mark.parametrize('widths', [(1, 8, 20), (4, 8, 20), (12, 16, 36)])
def test_narrowest_widths_that_are_accepted_also_run(widths):
    arguments = {'classes': 2, 'widths': widths, 'dilations2': [], 'dilations3': [1], 'pyramid': 1}
    assert build_network('asymmetric', arguments).eval()(torch.randn(1, 3, 32, 32)).shape[1] == 2
