"""A variant made ready to run in this process, and its network alone."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from seg_ros.benchmark.dabnet import DabNet
from seg_ros.benchmark.variants import DABNET, Variant
from seg_ros.drawn_scene import DrawnScene
from seg_ros.inference import deploy
from seg_ros.inference.engines import create_engine
from seg_ros.inference.segmenter import resize_picture
from seg_ros.inference.threads import use_threads
from seg_ros.model_file import Model, ModelSpec, load_model
from seg_ros.model_spec import input_size

SEED = 1


class Contender:
    """A variant with its model and engine.

    :raises ConfigError: an engine, device or precision that is not there.
    :raises EngineError: the network could not be made ready.
    """

    def __init__(self, variant: Variant, model: Model) -> None:
        self.variant = variant
        self.model = model
        self.network_size = variant.network_size or input_size(model.spec, *variant.size)
        with folded_up_to(variant.folds):
            self.engine = create_engine(model, variant.engine, variant.device, variant.precision,
                                        variant.threads)


@contextmanager
def folded_up_to(last: str) -> Iterator[None]:
    """Let networks be deployed with some of the folds only: what each is worth.

    :param last: of the folds; 'none' for none.
    """
    names = list(deploy.FOLDS)
    kept = names[:names.index(last) + 1] if last in names else []
    everything, deploy.FOLDS = deploy.FOLDS, {name: deploy.FOLDS[name] for name in kept}
    try:
        yield
    finally:
        deploy.FOLDS = everything


class NetworkAlone:
    """The engine on pictures that lie ready."""

    def __init__(self, contender: Contender) -> None:
        self._engine = contender.engine
        self._threads = contender.variant.threads
        self._confidence = 'confidence' in contender.variant.outputs
        self._pictures = ready_pictures(contender)

    def run(self) -> dict[str, float]:
        use_threads(self._threads)
        began_s = time.perf_counter()
        self._engine.infer(self._pictures, confidence=self._confidence)
        return {'network': time.perf_counter() - began_s}


def ready_pictures(contender: Contender) -> np.ndarray:
    """A batch at the network's size, (B, H, W, 3) uint8 RGB."""
    picture = np.empty((*contender.network_size, 3), np.uint8)
    resize_picture(draw(contender.variant.size), picture)
    return np.stack([picture] * contender.variant.batch)


def draw(size: tuple[int, int], moment_s: float = 0.0) -> np.ndarray:
    """Draw a road scene, (height, width, 3) uint8 RGB."""
    rgb, _ = DrawnScene(SEED, size[1], size[0]).frame(moment_s)
    return rgb


def open_model(name: str, like: str) -> Model:
    """The model of a variant.

    :param name: as in ``Variant``.
    :param like: of the model whose classes and sizes the comparison network gets.
    :raises ModelFileError: a file cannot be read.
    """
    return _dabnet_like(load_model(like).spec) if name == DABNET else load_model(name)


def like_name(names: Sequence[str]) -> str:
    """Which of some models the comparison network is made like: the first, else the default."""
    return next((name for name in names if name != DABNET), '')


def _dabnet_like(spec: ModelSpec) -> Model:
    """The comparison network for the same classes, with random weights."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(SEED)
        network = DabNet(len(spec.labels)).eval()
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):  # as no trained one is: else it folds to less
                module.running_mean.normal_(0, 0.1)  # type: ignore[union-attr]
                module.running_var.uniform_(0.5, 1.5)  # type: ignore[union-attr]
    return Model(network, replace(spec, architecture=DABNET, arguments={}, provenance={}))
