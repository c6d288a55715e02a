"""Cut-outs stood on the ground: trees."""

from dataclasses import dataclass

import cv2
import numpy as np

from seg_ros.drawn_scene.canvas import Canvas
from seg_ros.drawn_scene.texture import Cutout

_NEAR_M = 1.5  # a leaf nearer than this would fill the picture


@dataclass(frozen=True)
class Standing:
    """A cut-out and where it stands.

    :param cutout: what it shows.
    :param x: world place across the street in metres.
    :param s: world place along the street in metres.
    :param size: width and height in metres.
    """

    cutout: Cutout
    x: float
    s: float
    size: tuple[float, float]


class CutoutBatch:
    """Cut-outs put into perspective together, then drawn one by one."""

    def __init__(self, canvas: Canvas, standing: list[Standing]) -> None:
        self._canvas = canvas
        self._standing = standing
        feet = np.array([(each.x, 0.0, each.s) for each in standing]).reshape(-1, 3)
        seen = canvas.view.to_camera(feet)
        self._depths = seen[:, 2].copy()
        np.maximum(seen[:, 2], _NEAR_M, out=seen[:, 2])
        self._feet = canvas.view.to_pixels(seen)
        scale = (canvas.view.focal / seen[:, 2])[:, None]
        self._sizes = np.array([each.size for each in standing]).reshape(-1, 2) * scale

    def draw(self, number: int) -> None:
        """Draw the cut-out of this number."""
        depth = float(self._depths[number])
        if depth < _NEAR_M:
            return
        (column, row), (width, height) = self._feet[number], self._sizes[number]
        low = (column - width / 2, row - height)
        box = self._canvas.box(low, (column + width / 2, row))
        if box is None:
            return
        cutout = self._standing[number].cutout
        level = cutout.texture.level(height)
        mask = cutout.masks[level]
        rows, columns = mask.shape
        zoom_x, zoom_y = width / columns, height / rows
        left, top, right, bottom = box
        matrix = np.array(((zoom_x, 0, low[0] + zoom_x / 2 - 0.5 - left),
                           (0, zoom_y, low[1] + zoom_y / 2 - 0.5 - top)))
        size = (right - left, bottom - top)
        patch = cv2.warpAffine(cutout.texture.at(level, depth), matrix, size,
                               flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        solid = cv2.warpAffine(mask, matrix, size, flags=cv2.INTER_LINEAR)
        cv2.threshold(solid, 127, 255, cv2.THRESH_BINARY, solid)
        self._canvas.paste(box, patch, solid)
