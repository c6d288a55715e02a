"""DABNet with ReLU, for measuring its speed against the networks that ship. It is never trained.

Li, Yun, Kim, Kim, "DABNet: Depth-wise Asymmetric Bottleneck for Real-time Semantic Segmentation",
BMVC 2019, table 1 and figure 2; PReLU replaced by ReLU, as in the networks it is compared with.
"""

import torch
from torch import Tensor, nn

from seg_ros.networks.blocks import ConvNormRelu, initialise, upsample_to


class DabNet(nn.Module):
    """Image (B, 3, H, W), normalised, to logits (B, classes, H, W).

    :param classes: number of classes.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.shrink_image = nn.AvgPool2d(3, stride=2, padding=1)
        self.stem = nn.Sequential(
            ConvNormRelu(3, 32, stride=2), ConvNormRelu(32, 32), ConvNormRelu(32, 32))
        self.norm1 = NormRelu(35)
        self.down2 = ParallelDownsampling(35, 64)
        self.block1 = nn.Sequential(*(Bottleneck(64, 2) for _ in range(3)))
        self.norm2 = NormRelu(131)
        self.down3 = ConvNormRelu(131, 128, stride=2)
        self.block2 = nn.Sequential(*(Bottleneck(128, d) for d in (4, 4, 8, 8, 16, 16)))
        self.norm3 = NormRelu(259)
        self.classify = nn.Conv2d(259, classes, 1)
        initialise(self)

    def forward(self, image: Tensor) -> Tensor:
        image2 = self.shrink_image(image)                                # (B, 3, H/2, W/2)
        image4 = self.shrink_image(image2)                               # (B, 3, H/4, W/4)
        image8 = self.shrink_image(image4)                               # (B, 3, H/8, W/8)
        half = self.norm1(torch.cat([self.stem(image), image2], dim=1))  # (B, 35, H/2, W/2)
        down = self.down2(half)                                          # (B, 64, H/4, W/4)
        quarter = self.norm2(torch.cat([self.block1(down), down, image4], dim=1))
        down = self.down3(quarter)                                       # (B, 128, H/8, W/8)
        eighth = self.norm3(torch.cat([self.block2(down), down, image8], dim=1))
        return upsample_to(self.classify(eighth), image)


class NormRelu(nn.Sequential):
    """BatchNorm, ReLU."""

    def __init__(self, channels: int) -> None:
        super().__init__(nn.BatchNorm2d(channels), nn.ReLU(inplace=True))


class ParallelDownsampling(nn.Module):
    """3x3 stride-2 convolution beside 2x2 max pooling, concatenated, BatchNorm, ReLU."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out - c_in, 3, stride=2, padding=1, bias=False)
        self.pool = nn.MaxPool2d(2, stride=2, ceil_mode=True)
        self.norm = NormRelu(c_out)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(torch.cat([self.conv(x), self.pool(x)], dim=1))


class Bottleneck(nn.Module):
    """Depth-wise asymmetric bottleneck: (B, C, H, W) to the same shape."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        half = channels // 2
        self.norm = NormRelu(channels)
        self.reduce = ConvNormRelu(channels, half)
        self.local = asymmetric_pair(half, 1)
        self.context = asymmetric_pair(half, dilation)
        self.expand = nn.Sequential(
            NormRelu(half), nn.Conv2d(half, channels, 1, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        reduced = self.reduce(self.norm(x))                              # (B, C/2, H, W)
        return x + self.expand(self.local(reduced) + self.context(reduced))


def asymmetric_pair(channels: int, dilation: int) -> nn.Sequential:
    """Depth-wise 3x1 then 1x3 convolution, BatchNorm and ReLU behind each."""
    layers: list[nn.Module] = []
    for kernel in ((3, 1), (1, 3)):
        padding = (dilation * (kernel[0] // 2), dilation * (kernel[1] // 2))
        layers += [nn.Conv2d(channels, channels, kernel, padding=padding, dilation=dilation,
                             groups=channels, bias=False), *NormRelu(channels)]
    return nn.Sequential(*layers)
