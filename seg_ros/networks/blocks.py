"""Layers that more than one network is made of. Maps are (B, C, H, W) float tensors."""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn


class ConvNormRelu(nn.Sequential):
    """Convolution that keeps the size (or halves it, rounding up), BatchNorm, ReLU.

    :param kernel: height and width of the kernel, both odd.
    """

    def __init__(self, c_in: int, c_out: int, kernel: tuple[int, int] = (3, 3),
                 stride: int = 1) -> None:
        padding = (kernel[0] // 2, kernel[1] // 2)
        super().__init__(
            nn.Conv2d(c_in, c_out, kernel, stride, padding, bias=False),
            nn.BatchNorm2d(c_out),
            nn.ReLU(inplace=True))
        self.c_out = c_out


class DepthwisePair(nn.Module):
    """Depth-wise 3x1 then 1x3 convolution, BatchNorm, ReLU; the size is kept.

    Nothing stands between the two convolutions, so that they equal one depth-wise 3x3 whose
    kernel is the outer product of both; that one is what runs (:meth:`kernel`).
    """

    def __init__(self, channels: int, dilation: int = 1) -> None:
        super().__init__()
        self.dilation = dilation
        self.vertical = nn.Conv2d(channels, channels, (3, 1), groups=channels, bias=False)
        self.horizontal = nn.Conv2d(channels, channels, (1, 3), groups=channels, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.activation: nn.Module = nn.ReLU(inplace=True)

    def kernel(self) -> Tensor:
        """Return the (C, 1, 3, 3) depth-wise kernel that equals the pair."""
        return self.vertical.weight * self.horizontal.weight

    def forward(self, x: Tensor) -> Tensor:
        y = F.conv2d(x, self.kernel(), padding=self.dilation, dilation=self.dilation,
                     groups=x.shape[1])
        return self.activation(self.norm(y))


def upsample_to(x: Tensor, other: Tensor) -> Tensor:
    """Resize ``x`` bilinearly to the height and width of ``other``."""
    return F.interpolate(x, size=other.shape[-2:], mode='bilinear', align_corners=False)


def use_prelu(network: nn.Module) -> None:
    """Give each ReLU behind a BatchNorm a learned slope for each channel, in place."""
    for module in network.modules():
        if isinstance(module, ConvNormRelu):
            module[2] = nn.PReLU(module.c_out)
        elif isinstance(module, DepthwisePair):
            module.activation = nn.PReLU(module.norm.num_features)


def fill_he(conv: nn.Conv2d, fan: Literal['fan_in', 'fan_out'],
            nonlinearity: Literal['relu', 'linear']) -> None:
    """Fill the weights of a convolution by He et al. 2015, in place."""
    if not conv.weight.is_meta:  # a mere shape: torch would import its compiler, for a second
        nn.init.kaiming_normal_(conv.weight, mode=fan, nonlinearity=nonlinearity)


def initialise(network: nn.Module) -> None:
    """He initialisation (He et al. 2015) of all convolutions, in place."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            fill_he(module, 'fan_out', 'relu')
            if module.bias is not None:
                nn.init.zeros_(module.bias)
