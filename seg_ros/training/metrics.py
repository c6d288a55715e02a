"""Scores of predicted labels."""

from dataclasses import dataclass

import numpy as np

from seg_ros.labels import UNKNOWN, LabelSet


class ConfusionMatrix:
    """Counts of pixels by true and predicted class; void pixels are never counted.

    A pixel predicted as unknown (255) counts as missed: it lies in an extra last column.
    """

    def __init__(self, classes: int) -> None:
        self.counts = np.zeros((classes, classes + 1), np.int64)

    def add(self, target: np.ndarray, predicted: np.ndarray) -> None:
        """Count the pixels of one picture.

        :param target: (H, W) uint8 class indices; 255 is void.
        :param predicted: (H, W) uint8 class indices; 255 is unknown.
        """
        classes = len(self.counts)
        counted = target != UNKNOWN
        column = np.minimum(predicted[counted], classes).astype(np.int64)
        flat = target[counted].astype(np.int64) * (classes + 1) + column
        self.counts += np.bincount(flat, minlength=self.counts.size).reshape(self.counts.shape)

    def scores(self) -> 'Scores':
        """IoU is true positives / (true positives + false positives + false negatives).

        A class that never occurs in the truth has no IoU (nan) and is left out of the mean; one
        that occurs and is never found counts with 0.
        """
        true_positives = np.diag(self.counts).astype(float)
        truth = self.counts.sum(axis=1)
        union = truth + self.counts[:, :-1].sum(axis=0) - true_positives
        iou = np.where(truth > 0, true_positives / np.maximum(union, 1), np.nan)
        seen = ~np.isnan(iou)
        return Scores(float(iou[seen].mean()) if seen.any() else 0.0,
                      float(true_positives.sum() / max(truth.sum(), 1)), tuple(iou.tolist()))


@dataclass(frozen=True)
class Scores:
    """Scores in 0..1.

    :param miou: mean of the classes' IoU.
    :param pixel_accuracy: share of labelled pixels that are right.
    :param class_iou: one per class; nan where the class never occurs.
    """

    miou: float
    pixel_accuracy: float
    class_iou: tuple[float, ...]

    def per_class(self, labels: LabelSet) -> dict[str, float | None]:
        """IoU by class name in percent, None where the class never occurs."""
        return {name: None if np.isnan(iou) else round(100 * iou, 2)
                for name, iou in zip(labels.names, self.class_iou, strict=True)}
