"""What of a trained network need not run: folded into its weights, in place and exactly."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from seg_ros.networks.asymmetric import AsymmetricModule, AsymmetricNetwork, shuffle_channels
from seg_ros.networks.blocks import DepthwisePair
from seg_ros.networks.strip import StripNetwork

MOST_PIECES = 8  # of a concatenation; OpenVINO gains nothing from more


@torch.no_grad()
def merge_depthwise_pairs(network: nn.Module) -> None:
    """Replace each pair by the one depth-wise 3x3 convolution that it equals, in place."""
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, DepthwisePair):
                kernel = child.kernel()
                conv = nn.Conv2d(len(kernel), len(kernel), 3, padding=child.dilation,
                                 dilation=child.dilation, groups=len(kernel), bias=False)
                conv.weight = nn.Parameter(kernel)
                setattr(module, name, nn.Sequential(conv, child.norm, child.activation))


@torch.no_grad()
def fold_batch_norms(network: nn.Module) -> None:
    """Move each BatchNorm that follows a convolution in an ``nn.Sequential`` into it, in place."""
    for module in list(network.modules()):
        if not isinstance(module, nn.Sequential):
            continue
        for index in reversed(range(1, len(module))):
            conv, norm = module[index - 1], module[index]
            if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                module[index - 1] = nn.utils.fuse_conv_bn_eval(conv, norm)
                del module[index]


@torch.no_grad()
def fold_shuffles(network: nn.Module) -> None:
    """Let the modules of each stage work on channels that stay where they are, in place.

    To be called after both others. A shuffle only renames channels: the next module's weights
    are reordered to read them unshuffled. What the next module adds must lie in that order too:
    its two branches are then concatenated in pieces instead of whole. With each module the
    pieces get smaller; before they become too many, one shuffle does what all before it would
    have done. That at the end of the last stage is read by convolutions alone, which take it over.
    """
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            stage = list(child) if isinstance(child, nn.Sequential) else []
            blocks = [block for block in stage if isinstance(block, AsymmetricModule)]
            if blocks and blocks == stage:
                setattr(module, name, nn.Sequential(*_unshuffled(blocks)))
    if isinstance(network, AsymmetricNetwork | StripNetwork):
        stage = list(network.stage3)
        last = stage.pop() if stage else None
        if isinstance(last, Shuffle):
            network.stage3 = nn.Sequential(*stage)
            for layers in _readers(network):
                _reorder_inputs(layers, last.place.argsort())


def _readers(network: AsymmetricNetwork | StripNetwork) -> Iterator[nn.Module]:
    """All that reads C3, whose first channels are those of the last stage."""
    if isinstance(network, AsymmetricNetwork):
        yield network.pyramid.reduce
    else:
        pyramid = network.pyramid
        yield from (*pyramid.grids, pyramid.row, pyramid.column, network.classify[0])


def _unshuffled(stage: list[AsymmetricModule]) -> Iterator[nn.Module]:
    channels = stage[0].attention.excite.out_channels
    shuffle = _shuffled(channels, 2)
    place = torch.arange(channels)  # where each channel of the network lies
    for index, module in enumerate(stage):
        yield InPieces(module, place)
        place = place[shuffle]
        if index + 1 == len(stage) or not (
                _can_be_pieced(place) and _find_groups(place[shuffle])):
            yield Shuffle(place)
            place = torch.arange(channels)


class InPieces(nn.Module):
    """An asymmetric module without its shuffle: (B, C, H, W) to the same shape.

    :param module: folded already.
    :param place: (C,) where each channel that the module reads lies in what it is given.
    """

    def __init__(self, module: AsymmetricModule, place: Tensor) -> None:
        super().__init__()
        order = place.argsort()                  # the channel that lies at each place
        half = len(order) // 2
        in_branch = order[order < half]          # of the first branch; of the second alike
        self.pieces = _pieces(place)
        self.reduce = module.reduce
        self.local, self.context = module.local, module.context
        self.attention = module.attention
        _reorder_inputs(self.reduce, order)
        _reorder_inputs(self.attention.squeeze, order)
        for branch in (self.reduce, self.local, self.context):
            _reorder_outputs(branch, in_branch)
        _reorder_outputs(self.attention.excite, order)

    def forward(self, x: Tensor) -> Tensor:
        reduced = self.reduce(x)                                                # (B, C/2, H, W)
        local = self.local(reduced).split(self.pieces[0::2], dim=1)
        context = self.context(reduced).split(self.pieces[1::2], dim=1)
        both = torch.cat([piece for pair in zip(local, context, strict=True) for piece in pair],
                         dim=1)                                                 # (B, C, H, W)
        return self.attention(both) + x


class Shuffle(nn.Module):
    """Channel shuffle of any number of groups.

    :param place: (C,) which channel it puts at each place.
    """

    def __init__(self, place: Tensor) -> None:
        super().__init__()
        self.place = place
        self.groups = _find_groups(place)

    def forward(self, x: Tensor) -> Tensor:
        return shuffle_channels(x, self.groups)


def _shuffled(channels: int, groups: int) -> Tensor:
    """Order of the channels after a shuffle."""
    return shuffle_channels(torch.arange(channels).view(1, channels, 1, 1), groups).flatten()


def _find_groups(place: Tensor) -> int:
    """Groups of the shuffle that gives this order; 0 if none does."""
    return next((groups for groups in range(1, len(place) + 1) if len(place) % groups == 0
                 and torch.equal(_shuffled(len(place), groups), place)), 0)


def _can_be_pieced(place: Tensor) -> bool:
    """Whether both branches lie in one order, in pieces that are few enough."""
    order, half = place.argsort(), len(place) // 2
    return len(_pieces(place)) <= MOST_PIECES and torch.equal(
        order[order < half], order[order >= half] - half)


def _pieces(place: Tensor) -> list[int]:
    """Lengths of the runs of places that belong to one branch; the first branch has the first."""
    first = place.argsort() < len(place) // 2
    return torch.unique_consecutive(first, return_counts=True)[1].tolist()


def _reorder_inputs(layers: nn.Module, order: Tensor) -> None:
    """Reorder what the one convolution in ``layers`` reads, or the first channels of it."""
    conv, = (layer for layer in layers.modules() if isinstance(layer, nn.Conv2d))
    conv.weight = nn.Parameter(torch.cat(
        [conv.weight[:, order], conv.weight[:, len(order):]], dim=1))


def _reorder_outputs(layers: nn.Module, order: Tensor) -> None:
    """Reorder what a convolution, of all channels or of each one, and an activation give."""
    for layer in layers.modules():
        for name, parameter in list(layer.named_parameters(recurse=False)):
            setattr(layer, name, nn.Parameter(parameter[order]))
