"""Scores of the network while it trains, at the size of the pictures."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from seg_ros.drawn_scene import DrawnScene
from seg_ros.model_file import ModelSpec
from seg_ros.training.dataset import DataFolder, Sample
from seg_ros.training.metrics import ConfusionMatrix, Scores

DRAWN_SEEDS = range(20)  # never seen in training, see batches.DRAWN_TRAINING_SEEDS


def drawn_samples(height: int, width: int) -> Iterable[Sample]:
    """Drawn scenes for scoring: two moments of each of the scoring seeds."""
    for seed in DRAWN_SEEDS:
        scene = DrawnScene(seed, width, height)
        for time_s in (1.0, 8.5):
            yield Sample(*scene.frame(time_s))


@torch.no_grad()
def predict(network: nn.Module, spec: ModelSpec,
            samples: Iterable[Sample]) -> Iterator[tuple[Sample, np.ndarray]]:
    """Yield each sample with the network's labels: (H, W) uint8 class indices."""
    network.eval()
    device = next(network.parameters()).device
    mean, std = (torch.tensor(values, device=device) for values in (spec.mean, spec.std))
    for sample in samples:
        image = (torch.from_numpy(sample.rgb).to(device) - mean) / std
        logits = network(image.permute(2, 0, 1)[None].contiguous())
        yield sample, logits.argmax(dim=1)[0].to(torch.uint8).cpu().numpy()


def score(network: nn.Module, spec: ModelSpec, samples: Iterable[Sample]) -> Scores:
    """Confusion of the network's labels with the truth over all samples."""
    confusion = ConfusionMatrix(len(spec.labels))
    for sample, labels in predict(network, spec, samples):
        confusion.add(sample.target, labels)
    return confusion.scores()


def validate(network: nn.Module, spec: ModelSpec, data: DataFolder | None,
             drawn: bool) -> dict[str, Any]:
    """Score a network for one line of metrics.

    :param data: the pictures for it; None if all are trained on.
    :param drawn: score it on the drawn scene, too.
    :return: mIoU, pixel accuracy and IoU by class, in percent.
    """
    line: dict[str, Any] = {}
    if data:
        scores = score(network, spec, (data[i] for i in range(len(data))))
        line = {'val_miou': round(100 * scores.miou, 2),
                'val_pixel_accuracy': round(100 * scores.pixel_accuracy, 2),
                'val_class_iou': scores.per_class(spec.labels)}
    if drawn:
        drawn_scores = score(network, spec, drawn_samples(*spec.training_size))
        line['drawn_miou'] = round(100 * drawn_scores.miou, 2)
        line['drawn_class_iou'] = drawn_scores.per_class(spec.labels)
    return line
