"""Samples beside their labels on one sheet, so that a glance finds labels that are wrong."""

from collections.abc import Sequence

import cv2
import numpy as np

from seg_ros.labels import LabelSet
from seg_ros.render import draw_overlay
from seg_ros.training.dataset import Sample
from seg_ros.training.sheet import GAP_PX, LINE_PX, draw_legend, fit, paper, stripe_void, write

TILE_PX = 400          # longer side of each picture
LEAST_WIDTH_PX = 600   # of the sheet, whose legend narrow pictures would leave no room
COLUMNS = 2            # samples side by side
ALPHA = 0.6            # of the colours over the pictures


def draw_contact_sheet(samples: Sequence[tuple[str, Sample]], labels: LabelSet) -> np.ndarray:
    """Draw a legend, then each picture and beside it the same with its labels drawn over.

    Void is dark with bright stripes.

    :param samples: caption and sample, all of one size.
    :return: (H, W, 3) uint8 RGB.
    """
    palette = LabelSet(labels.names, labels.colors).palette  # by index, as samples have classes
    cells = [_draw_cell(caption, sample, palette) for caption, sample in samples]
    height, width = cells[0].shape[:2]
    columns = min(COLUMNS, len(cells))
    rows = -(-len(cells) // columns)
    grid = paper(rows * (height + GAP_PX),
                 max(LEAST_WIDTH_PX, GAP_PX + columns * (width + GAP_PX)))
    for place, cell in enumerate(cells):
        y = place // columns * (height + GAP_PX)
        x = GAP_PX + place % columns * (width + GAP_PX)
        grid[y:y + height, x:x + width] = cell
    return np.vstack([draw_legend(labels, grid.shape[1]), grid])


def _draw_cell(caption: str, sample: Sample, palette: np.ndarray) -> np.ndarray:
    rgb = fit(sample.rgb, TILE_PX, cv2.INTER_AREA)
    target = fit(sample.target, TILE_PX, cv2.INTER_NEAREST)
    marked = stripe_void(draw_overlay(rgb, target, palette, ALPHA), target)
    pictures = np.hstack([rgb, marked])
    line = paper(LINE_PX, pictures.shape[1])
    write(line, caption, 0)
    return np.vstack([pictures, line])
