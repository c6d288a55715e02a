"""The deployed graph: uint8 picture in, uint8 labels and confidence out, nothing left to fold."""

import copy

import torch
from torch import Tensor, nn

from seg_ros.model_file import Model
from seg_ros.networks.blocks import DepthwisePair


class DeployedNetwork(nn.Module):
    """What an engine runs. It equals the trained network but for rounding.

    :param model: left unchanged; the graph is built from a copy.
    :param dtype: that the network computes in.
    """

    scale: Tensor
    shift: Tensor

    def __init__(self, model: Model, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        network = copy.deepcopy(model.network).double()
        merge_depthwise_pairs(network)
        fold_batch_norms(network.eval())
        self.dtype = dtype
        self.network = network.to(dtype)
        mean = torch.tensor(model.spec.mean, dtype=torch.float64)
        std = torch.tensor(model.spec.std, dtype=torch.float64)
        self.register_buffer('scale', (1 / std).float().view(1, 3, 1, 1))
        self.register_buffer('shift', (-mean / std).float().view(1, 3, 1, 1))
        self.eval().requires_grad_(False)

    def forward(self, rgb: Tensor) -> tuple[Tensor, Tensor]:
        """Class of each pixel and its probability.

        :param rgb: (B, H, W, 3) uint8.
        :return: (B, H, W) uint8 indices of the output channels and (B, H, W) uint8
            probabilities, 255 for 1.
        """
        logits = self.logits(rgb).float()                              # (B, classes, H, W)
        highest, labels = logits.max(dim=1, keepdim=True)              # (B, 1, H, W)
        # The softmax's largest value is all that is needed of it.
        confidence = 255 / torch.exp(logits - highest).sum(dim=1)      # (B, H, W)
        return labels[:, 0].to(torch.uint8), torch.round(confidence).to(torch.uint8)

    def logits(self, rgb: Tensor) -> Tensor:
        """(B, H, W, 3) uint8 to (B, classes, H, W) logits."""
        image = rgb.permute(0, 3, 1, 2).float() * self.scale + self.shift
        return self.network(image.to(self.dtype))


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
