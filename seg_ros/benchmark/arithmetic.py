"""How much a network computes, and how much the cores can."""

import time

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from seg_ros.errors import ModelFileError
from seg_ros.inference.deploy import DeployedNetwork
from seg_ros.inference.threads import use_threads
from seg_ros.model_file import Model

# Large enough to come within a few percent of the peak, small enough to be a turn in each round.
SIDE = 1024


def multiply_adds_of(model: Model, height: int, width: int) -> int | None:
    """Multiply-adds of one picture in the deployed network.

    :param height: of the picture at the network, like width.
    :return: None of an exported graph, whose layers cannot be asked.
    """
    try:
        network = DeployedNetwork(model)
    except ModelFileError:
        return None
    return count_multiply_adds(network, torch.zeros((1, height, width, 3), dtype=torch.uint8))


@torch.no_grad()
def count_multiply_adds(network: nn.Module, example: torch.Tensor) -> int:
    """Multiply-adds of the convolutions and matrix products that run for an input.

    Those with the zeros of padding are among them; additions and comparisons alone are not.
    """
    with FlopCounterMode(display=False) as counter:
        network(example)
    return counter.get_total_flops() // 2


class MatrixProduct:
    """Product of two float32 matrices: what the cores can do at best.

    :param threads: of the CPU; 0 is torch's choice.
    """

    multiply_adds = SIDE ** 3

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._left, self._right = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
        self._product = torch.empty(SIDE, SIDE)

    def run(self) -> dict[str, float]:
        use_threads(self.threads)
        began_s = time.perf_counter()
        torch.mm(self._left, self._right, out=self._product)
        return {'peak': time.perf_counter() - began_s}
