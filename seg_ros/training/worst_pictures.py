"""The pictures that a network labels worst, beside their truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from torch import nn
from tqdm import tqdm

from seg_ros.files import write_png
from seg_ros.labels import UNKNOWN, LabelSet
from seg_ros.model_file import ModelSpec
from seg_ros.render import draw_overlay
from seg_ros.training.dataset import DataFolder, Sample
from seg_ros.training.metrics import ConfusionMatrix, Scores
from seg_ros.training.sheet import GAP_PX, LINE_PX, draw_legend, fit, paper, stripe_void, write
from seg_ros.training.validation import predict

TILE_PX = 480          # longer side of each picture
TITLES = ('picture', 'truth', 'prediction', 'wrong pixels in red')
ALPHA = 0.6            # of the colours over the pictures
WRONG = 255, 40, 40
LOWEST_CLASSES = 4     # named in the line over a picture


@dataclass(frozen=True)
class _Worst:
    scores: Scores
    name: str
    tiles: np.ndarray


def draw_worst(network: nn.Module, spec: ModelSpec, data: DataFolder, path: Path,
               count: int = 8) -> None:
    """Write a PNG of the pictures with the lowest scores, the lowest first.

    The score of a picture is the mean IoU of the classes that its truth holds, by its own pixels
    alone; void pixels do not count, and a picture of nothing else is left out.

    :param spec: how the network's input is to be read.
    :param data: its classes are the network's.
    :param count: pictures at most.
    :raises DataError: a file cannot be read.
    :raises OSError: the disk is full or the folder cannot be written.
    """
    worst: list[_Worst] = []
    samples = (data[index] for index in range(len(data)))
    labelled = zip(data.pairs, predict(network, spec, samples), strict=True)
    for (picture, _), (sample, labels) in tqdm(labelled, 'worst pictures', len(data),
                                               unit='picture', leave=False):
        confusion = ConfusionMatrix(len(data.labels))
        confusion.add(sample.target, labels)
        scores = confusion.scores()
        full = len(worst) == count
        if not confusion.counts.any() or full and scores.miou >= worst[-1].scores.miou:
            continue
        # As they will be drawn: pictures of a modern camera would fill the memory.
        worst.append(_Worst(scores, picture.name, _draw_tiles(sample, labels, data.labels)))
        worst = sorted(worst, key=lambda one: one.scores.miou)[:count]
    write_png(path, _draw_sheet(worst, data.labels))


def _draw_tiles(sample: Sample, labels: np.ndarray, classes: LabelSet) -> np.ndarray:
    """Draw picture, truth, prediction and wrong pixels side by side."""
    palette = LabelSet(classes.names, classes.colors).palette  # by index, as samples have classes
    rgb = fit(sample.rgb, TILE_PX, cv2.INTER_AREA)
    target, labels = (fit(ids, TILE_PX, cv2.INTER_NEAREST) for ids in (sample.target, labels))
    truth = stripe_void(draw_overlay(rgb, target, palette, ALPHA), target)
    found = draw_overlay(rgb, labels, palette, ALPHA)
    dim = cv2.cvtColor(cv2.cvtColor(rgb // 2, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    dim[(labels != target) & (target != UNKNOWN)] = WRONG
    gap = paper(rgb.shape[0], GAP_PX)
    return np.hstack([rgb, gap, truth, gap, found, gap, stripe_void(dim, target)])


def _draw_sheet(worst: Sequence[_Worst], classes: LabelSet) -> np.ndarray:
    width = len(TITLES) * (TILE_PX + GAP_PX) + GAP_PX
    titles = paper(LINE_PX, width)
    rows = [draw_legend(classes, width), titles]
    for place, title in enumerate(TITLES):
        write(titles, title, GAP_PX + place * (TILE_PX + GAP_PX))
    for one in worst:
        height, wide = one.tiles.shape[:2]
        row = paper(LINE_PX + height + GAP_PX, width)
        write(row[:LINE_PX], _caption(one, classes), GAP_PX)
        row[LINE_PX:-GAP_PX, GAP_PX:GAP_PX + wide] = one.tiles
        rows.append(row)
    return np.vstack(rows)


def _caption(one: _Worst, classes: LabelSet) -> str:
    lowest = sorted((iou, name) for name, iou in one.scores.per_class(classes).items()
                    if iou is not None)[:LOWEST_CLASSES]
    return (f'{one.name}   mIoU {100 * one.scores.miou:.1f} %, '
            f'pixels right {100 * one.scores.pixel_accuracy:.1f} %; lowest: '
            + ', '.join(f'{name} {iou:.1f}' for iou, name in lowest))
