"""The asymmetric attention network: real-time segmentation with under one million parameters.

An encoder of depth-wise asymmetric modules with channel attention, fed at every scale by a
pyramid of the image itself, and a decoder of pyramid pooling with spatial attention and two
multi-scale fusions with pixel attention.

Choices where the description leaves room, as the defaults of the arguments: narrow early stages,
at whose sizes channels cost most time (wider ones learn more slowly, too); ReLU instead of PReLU
(1.2 to 2.3 times faster on CPU engines); a sigmoid bounds the pooled pyramid before it multiplies
as attention; both maps of a fusion are multiplied by the same pixel attention, which has one
channel, shared by all channels of both.
"""

import reprlib
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seg_ros.errors import ConfigError
from seg_ros.networks.blocks import (
    ConvNormRelu,
    DepthwisePair,
    initialise,
    upsample_to,
    use_prelu,
)


class AsymmetricEncoder(nn.Module):
    """The encoder, which networks inherit.

    Its layers thus have one name in every network's file, so that the trained encoder of one
    can start another. Any height and width of at least 32 pixels, odd ones too.

    :param widths: channels that the three stages compute, at 1/2, 1/4 and 1/8.
    :param dilations2: dilation of each module of the second stage (1/4).
    :param dilations3: dilation of each module of the third stage (1/8).
    :raises ConfigError: arguments that no network can be built with.
    """

    def __init__(self, widths: Sequence[int], dilations2: Sequence[int],
                 dilations3: Sequence[int]) -> None:
        super().__init__()
        _check(widths, dilations2, dilations3)
        w1, w2, w3 = widths
        c1 = w1 + 3           # with the image at 1/2
        c2 = w2 + w2 + 3      # with the downsampled map and the image at 1/4
        c3 = w3 + w3 + 3
        self.channels = (c1, c2, c3)
        self.shrink_image = nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False)
        self.stem = nn.Sequential(
            ConvNormRelu(3, w1, stride=2), ConvNormRelu(w1, w1), ConvNormRelu(w1, w1))
        self.down2 = ParallelDownsampling(c1, w2)
        self.stage2 = nn.Sequential(*(AsymmetricModule(w2, d) for d in dilations2))
        self.down3 = ParallelDownsampling(c2, w3)
        self.stage3 = nn.Sequential(*(AsymmetricModule(w3, d) for d in dilations3))

    def encode(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """C1, C2 and C3: maps at 1/2, 1/4 and 1/8 of the image's size."""
        image2 = self.shrink_image(image)                        # (B, 3, H/2, W/2)
        image4 = self.shrink_image(image2)                       # (B, 3, H/4, W/4)
        image8 = self.shrink_image(image4)                       # (B, 3, H/8, W/8)

        half = torch.cat([self.stem(image), image2], dim=1)      # C1: (B, 16, H/2, W/2)

        d2 = self.down2(half)                                    # (B, 32, H/4, W/4)
        f2 = self.stage2(d2)                                     # (B, 32, H/4, W/4)
        quarter = torch.cat([f2, d2, image4], dim=1)             # C2: (B, 67, H/4, W/4)

        d3 = self.down3(quarter)                                 # (B, 128, H/8, W/8)
        f3 = self.stage3(d3)                                     # (B, 128, H/8, W/8)
        eighth = torch.cat([f3, d3, image8], dim=1)              # C3: (B, 259, H/8, W/8)
        return half, quarter, eighth


class AsymmetricNetwork(AsymmetricEncoder):
    """Asymmetric attention network: image (B, 3, H, W), normalised, to logits (B, classes, H, W).

    Any height and width of at least 32 pixels, odd ones too.

    :param classes: number of classes.
    :param widths: of the encoder, as are the dilations.
    :param pyramid: channels of the pooled pyramid.
    :param activation: 'relu' or 'prelu'.
    :param bounded: the pyramid passes a sigmoid before it multiplies as attention.
    :param complementary: where a fusion gives the low map a pixel attention of ``a``, it gives
        the high map ``1 - a`` instead of ``a``.
    :raises ConfigError: arguments that no network can be built with.
    """

    def __init__(self, classes: int, widths: Sequence[int] = (13, 32, 128),
                 dilations2: Sequence[int] = (2, 2, 2),
                 dilations3: Sequence[int] = (1, 2, 5, 9, 2, 5, 9, 17),
                 pyramid: int = 96, activation: str = 'relu', bounded: bool = True,
                 complementary: bool = False) -> None:
        super().__init__(widths, dilations2, dilations3)
        check_channels(pyramid=pyramid)
        if activation not in ('relu', 'prelu'):
            raise ConfigError(f'activation {activation!r}: expected relu or prelu')
        for name, value in (('bounded', bounded), ('complementary', complementary)):
            if type(value) is not bool:
                raise ConfigError(f'{name} {reprlib.repr(value)}: expected true or false')
        c1, c2, c3 = self.channels
        self.pyramid = PyramidAttention(c3, pyramid, bounded)
        self.fuse2 = PixelAttentionFusion(pyramid, c2, complementary)
        self.fuse1 = PixelAttentionFusion(c2, c1, complementary)
        self.classify = nn.Conv2d(c1, classes, 1)
        initialise(self)
        if activation == 'prelu':
            use_prelu(self)

    def forward(self, image: Tensor) -> Tensor:
        return upsample_to(self.classify(self.features(image)), image)

    def features(self, image: Tensor) -> Tensor:
        """Everything before the classifier: (B, 32, H/2, W/2)."""
        half, quarter, eighth = self.encode(image)
        context = self.pyramid(eighth)                           # (B, 96, H/8, W/8)
        fused = self.fuse2(context, quarter)                     # (B, 99, H/4, W/4)
        return self.fuse1(fused, half)                           # (B, 32, H/2, W/2)


def _check(widths: Sequence[int], dilations2: Sequence[int], dilations3: Sequence[int]) -> None:
    """Refuse what could be built and would fail, or exhaust the memory, only when it runs."""
    for name, values, length in (('widths', widths, 3), ('dilations2', dilations2, 64),
                                 ('dilations3', dilations3, 64)):
        if not isinstance(values, list | tuple) or len(values) > length or not all(
                type(value) is int and 1 <= value <= 4096 for value in values):
            raise ConfigError(f'{name} {reprlib.repr(values)}: expected at most {length} whole '
                              'numbers, 1 to 4096')
    if len(widths) != 3 or widths[1] % 2 or widths[2] % 2 or widths[1] < 8 or (
            widths[1] <= widths[0] + 3 or widths[2] <= 2 * widths[1] + 3):
        raise ConfigError(f'widths {list(widths)}: expected three; the second even, 8 or more and '
                          'above the first + 3; the third even and above twice the second + 3')


def check_channels(**counts: int) -> None:
    """Refuse numbers of channels, by the names of their arguments, that are none."""
    for name, value in counts.items():
        if type(value) is not int or not 1 <= value <= 4096:
            raise ConfigError(f'{name} {reprlib.repr(value)}: expected a whole number, 1 to 4096')


class ParallelDownsampling(nn.Module):
    """Halve the size: 3x3 stride-2 convolution beside 2x2 max pooling, concatenated."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.conv = ConvNormRelu(c_in, c_out - c_in, stride=2)
        self.pool = nn.MaxPool2d(2, stride=2, ceil_mode=True)  # rounds up as the convolution does

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.conv(x), self.pool(x)], dim=1)


class AsymmetricModule(nn.Module):
    """Depth-wise asymmetric module with channel attention: (B, C, H, W) to the same shape."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.reduce = ConvNormRelu(channels, channels // 2)
        self.local = DepthwisePair(channels // 2)
        self.context = DepthwisePair(channels // 2, dilation)
        self.attention = ChannelAttention(channels)

    def forward(self, x: Tensor) -> Tensor:
        reduced = self.reduce(x)                                                # (B, C/2, H, W)
        both = torch.cat([self.local(reduced), self.context(reduced)], dim=1)   # (B, C, H, W)
        return shuffle_channels(self.attention(both) + x, 2)


class ChannelAttention(nn.Module):
    """Multiply each channel by a weight in 0..1 computed from the means of all channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, channels // 8, 1)
        self.excite = nn.Conv2d(channels // 8, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        means = x.mean(dim=(2, 3), keepdim=True)                                # (B, C, 1, 1)
        return x * torch.sigmoid(self.excite(F.relu(self.squeeze(means))))


def shuffle_channels(x: Tensor, groups: int) -> Tensor:
    """Channel shuffle: the first channels of all groups, then their second ones, and so on."""
    b, c, h, w = x.shape  # by view and transpose: the classic ONNX exporter lacks channel_shuffle
    return x.view(b, groups, c // groups, h, w).transpose(1, 2).reshape(b, c, h, w)


class PyramidAttention(nn.Module):
    """Pyramid pooling with spatial attention: (B, C_in, H, W) to (B, C, H, W)."""

    def __init__(self, c_in: int, channels: int, bounded: bool) -> None:
        super().__init__()
        self.bounded = bounded
        self.reduce = ConvNormRelu(c_in, channels, (1, 1))
        self.shrink = nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False)
        self.smooth = nn.ModuleList(
            nn.Sequential(ConvNormRelu(channels, channels, (3, 1)),
                          nn.Conv2d(channels, channels, (1, 3), padding=(0, 1), bias=False),
                          nn.BatchNorm2d(channels))
            for _ in range(3))
        self.image_level = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.reduce(x)                                       # X: (B, C, H, W)
        levels = [x]
        for _ in self.smooth:
            levels.append(self.shrink(levels[-1]))               # (B, C, H/2, W/2), /4, /8
        rising = levels.pop()
        for smooth in self.smooth:                               # from the smallest up
            below = levels.pop()
            rising = upsample_to(smooth(rising), below)
            if levels:
                rising = rising + below
        attention = torch.sigmoid(rising) if self.bounded else rising
        return x * attention + self.image_level(x.mean(dim=(2, 3), keepdim=True))


class PixelAttentionFusion(nn.Module):
    """Multi-scale fusion: low (B, C_low, h, w) and high (B, C, H, W) to (B, C, H, W)."""

    def __init__(self, c_low: int, c_high: int, complementary: bool) -> None:
        super().__init__()
        self.complementary = complementary
        self.match = nn.Sequential(nn.Conv2d(c_low, c_high, 1, bias=False),
                                   nn.BatchNorm2d(c_high))
        self.attention = PixelAttention(c_high)

    def forward(self, low: Tensor, high: Tensor) -> Tensor:
        low = upsample_to(self.match(low), high)                                   # (B, C, H, W)
        weight = torch.sigmoid(self.attention(low, high))                          # (B, 1, H, W)
        return weight * low + (1 - weight if self.complementary else weight) * high


class PixelAttention(nn.Module):
    """3x3 convolution of cat(low, high) to one channel: two maps (B, C, H, W) to (B, 1, H, W).

    Engines are slow at convolutions with a single output channel. This one is computed as a 1x1
    convolution to the nine products of its taps, which a fixed kernel then shifts and adds.
    """

    shifts: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.low_taps = nn.Conv2d(channels, 9, 1, bias=False)
        self.high_taps = nn.Conv2d(channels, 9, 1, bias=False)
        self.bias = nn.Parameter(torch.zeros(1))
        self.register_buffer('shifts', torch.zeros(9, 9).fill_diagonal_(1).view(1, 9, 3, 3),
                             persistent=False)

    def forward(self, low: Tensor, high: Tensor) -> Tensor:
        taps = self.low_taps(low) + self.high_taps(high)                           # (B, 9, H, W)
        return F.conv2d(taps, self.shifts, self.bias, padding=1)
