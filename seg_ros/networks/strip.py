"""The strip attention network: pooled context of grids and strips, attention on class maps.

A light backbone (the asymmetric encoder up to 1/8), an enhanced pyramid of six pooled branches, a
classification network that gives one map per class, and an attention of two strips, a row and a
column, on each class map by itself.

Choices where the description leaves room: the light feature map itself is concatenated with the
pooled branches, as in PSPNet (Zhao et al. 2017), for pooled maps alone would leave no detail finer
than a 6x6 grid; the branches end at their convolution, without BatchNorm (the 1x1 branch of a
single picture has but one value per channel) and ReLU (means of whole regions vary so little that
it would silence a channel everywhere or nowhere).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from seg_ros.networks.asymmetric import AsymmetricEncoder, check_channels
from seg_ros.networks.blocks import ConvNormRelu, fill_he, initialise, upsample_to

GRIDS = (1, 2, 3, 6)


class StripNetwork(AsymmetricEncoder):
    """Strip attention network: image (B, 3, H, W), normalised, to logits (B, classes, H, W).

    The softmax over the classes is taken by the loss in training, the most probable class of
    each pixel by the deployed graph. Any height and width of at least 32 pixels, odd ones too.

    :param classes: number of classes.
    :param widths: of the encoder, as are the dilations.
    :param pooled: channels of each pooled branch.
    :param hidden: channels of the classification network's convolution.
    :raises ConfigError: arguments that no network can be built with.
    """

    def __init__(self, classes: int, widths: Sequence[int] = (13, 32, 128),
                 dilations2: Sequence[int] = (2, 2, 2),
                 dilations3: Sequence[int] = (1, 2, 5, 9, 2, 5, 9, 17),
                 pooled: int = 16, hidden: int = 80) -> None:
        super().__init__(widths, dilations2, dilations3)
        check_channels(pooled=pooled, hidden=hidden)
        light = self.channels[2]
        self.pyramid = EnhancedPyramid(light, pooled)
        self.classify = nn.Sequential(
            ConvNormRelu(light + (len(GRIDS) + 2) * pooled, hidden),
            nn.Conv2d(hidden, classes, 1))
        self.attention = StripAttention(classes)
        initialise(self)
        self.pyramid.initialise()

    def forward(self, image: Tensor) -> Tensor:
        _, _, light = self.encode(image)                         # (B, 259, H/8, W/8)
        pyramid = self.pyramid(light)                            # (B, 355, H/8, W/8)
        maps = self.classify(pyramid)                            # (B, classes, H/8, W/8)
        semantic = maps + self.attention(maps)                   # (B, classes, H/8, W/8)
        return upsample_to(semantic, image)                      # (B, classes, H, W)


class EnhancedPyramid(nn.Module):
    """Six pooled branches beside the map itself: (B, C, H, W) to (B, C + 6 * pooled, H, W).

    Each branch is average pooling, 1x1 convolution, and the way back to H x W: bilinear for the
    grids, repeated for the strips and the 1x1 grid.
    """

    def __init__(self, c_in: int, pooled: int) -> None:
        super().__init__()
        self.grids = nn.ModuleList(nn.Conv2d(c_in, pooled, 1) for _ in GRIDS)
        self.row = nn.Conv2d(c_in, pooled, 1)
        self.column = nn.Conv2d(c_in, pooled, 1)

    def initialise(self) -> None:
        """Let the branches start at the scale of the map that they stand beside."""
        for conv in (*self.grids, self.row, self.column):
            fill_he(conv, 'fan_in', 'linear')

    def forward(self, x: Tensor) -> Tensor:
        branches = [conv(pool_to_grid(x, n)) for conv, n in zip(self.grids, GRIDS, strict=True)]
        branches.append(self.row(pool_to_row(x)))                # (B, pooled, 1, W)
        branches.append(self.column(pool_to_column(x)))          # (B, pooled, H, 1)
        # Interpolating from a side of 1 repeats it.
        return torch.cat([x, *(upsample_to(branch, x) for branch in branches)], dim=1)


class StripAttention(nn.Module):
    """Attention map of each class map by itself: (B, classes, H, W) to the same shape.

    A row of column means and a column of row means, each convolved along itself; the value at a
    pixel is the product of both where they cross.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.row = nn.Conv2d(classes, classes, (1, 3), padding=(0, 1), groups=classes)
        self.column = nn.Conv2d(classes, classes, (3, 1), padding=(1, 0), groups=classes)

    def forward(self, maps: Tensor) -> Tensor:
        row = self.row(pool_to_row(maps))                        # (B, classes, 1, W)
        column = self.column(pool_to_column(maps))               # (B, classes, H, 1)
        return row * column                                      # (B, classes, H, W)


def pool_to_row(x: Tensor) -> Tensor:
    """Mean of each column: (B, C, H, W) to (B, C, 1, W)."""
    return x.mean(dim=2, keepdim=True)


def pool_to_column(x: Tensor) -> Tensor:
    """Mean of each row: (B, C, H, W) to (B, C, H, 1)."""
    return x.mean(dim=3, keepdim=True)


def pool_to_grid(x: Tensor, n: int) -> Tensor:
    """Mean of each cell of an n x n grid: (B, C, H, W) to (B, C, n, n).

    It equals adaptive average pooling, but for rounding, which exporters lack where n does not
    divide the size.
    """
    return _cell_means(n, x.shape[2], x) @ x @ _cell_means(n, x.shape[3], x).T


def _cell_means(n: int, length: int, like: Tensor) -> Tensor:
    """(n, length) matrix that takes the mean of each of n cells, which may overlap by one.

    Computed by tensors alone: a traced graph then holds the arithmetic, not the matrix of the
    length that it was traced at.
    """
    cell = torch.arange(n, device=like.device)[:, None]          # (n, 1)
    position = torch.arange(length, device=like.device)          # (length,)
    begin = cell * length // n
    end = ((cell + 1) * length + n - 1) // n
    inside = ((position >= begin) & (position < end)).to(like.dtype)
    return inside / inside.sum(dim=1, keepdim=True)
