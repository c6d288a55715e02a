"""The deployed graph: uint8 picture in, uint8 labels and confidence out, nothing left to fold."""

import copy

import torch
from torch import Tensor, nn

from seg_ros.inference.fold import fold_batch_norms, fold_shuffles, merge_depthwise_pairs
from seg_ros.model_file import Model

# In turn: each builds on those before it.
FOLDS = {'pairs': merge_depthwise_pairs, 'norms': fold_batch_norms, 'shuffles': fold_shuffles}


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
        for fold in FOLDS.values():
            fold(network.eval())  # what a fold has made is in training mode
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
        # OpenVINO and torch take the softmax of all classes twice as fast as the exponentials
        # of their distances from the highest logit, which would do.
        probabilities = self.logits(rgb).float().softmax(dim=1)        # (B, classes, H, W)
        confidence, labels = probabilities.max(dim=1)                  # (B, H, W)
        return labels.to(torch.uint8), torch.round(255 * confidence).to(torch.uint8)

    def logits(self, rgb: Tensor) -> Tensor:
        """(B, H, W, 3) uint8 to (B, classes, H, W) logits."""
        image = rgb.permute(0, 3, 1, 2).float() * self.scale + self.shift
        return self.network(image.to(self.dtype))
