"""Models with random weights, whose BatchNorm statistics are those of a drawn scene."""

import torch
from torch import nn

from seg_ros.drawn_scene import DrawnScene
from seg_ros.labels import CAMVID, LabelSet
from seg_ros.model_file import Model, ModelSpec

TINY = {'widths': [5, 16, 40], 'dilations2': [2], 'dilations3': [3], 'pyramid': 8}


def random_model(arguments=TINY, labels: LabelSet = CAMVID, training_size=(64, 96),
                 architecture: str = 'asymmetric') -> Model:
    """Every BatchNorm shifts and scales by its own values; logits stay of the order of one."""
    spec = ModelSpec(architecture, arguments, labels, (104.0, 107.5, 108.0), (75.0, 78.0, 77.5),
                     training_size)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        network = spec.build()
        norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
        for norm in norms:
            norm.momentum = None  # takes the statistics of the one picture below
            norm.weight.uniform_(0.5, 1.5)
            norm.bias.normal_(0, 0.3)
        rgb, _ = DrawnScene(1, 160, 120).frame(0.0)
        network.train()(normalised(spec, torch.from_numpy(rgb)[None]))
        for norm in norms:
            norm.running_mean += 0.3 * norm.running_var.sqrt() * torch.randn_like(norm.bias)
            norm.running_var *= torch.empty_like(norm.bias).uniform_(0.7, 1.5)
    return Model(network.eval(), spec)


def normalised(spec: ModelSpec, rgb: torch.Tensor) -> torch.Tensor:
    """(B, H, W, 3) uint8 as the trained network takes it, (B, 3, H, W)."""
    return ((rgb - torch.tensor(spec.mean)) / torch.tensor(spec.std)).permute(0, 3, 1, 2)
