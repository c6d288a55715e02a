"""The canvas: a picture whose fourth channel is the class of each pixel.

One call of OpenCV draws colour and class at once, so that the two cannot disagree.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from seg_ros.drawn_scene.camera import View
from seg_ros.drawn_scene.light import Light

SHIFT = 4
"""Vertices are drawn in 16ths of a pixel: OpenCV's ``shift``."""

_FAR_PX = 30000.0  # OpenCV's fixed-point limit for a vertex


def fixed_point(pixels: np.ndarray) -> np.ndarray:
    """Vertices (..., 2) float as OpenCV draws them: int32 in 16ths of a pixel."""
    bounded = np.minimum(np.maximum(pixels, -_FAR_PX), _FAR_PX)
    return np.rint(bounded * (1 << SHIFT)).astype(np.int32)


@dataclass(frozen=True)
class Canvas:
    """A picture in the making.

    :param image: (H, W, 4) uint8 RGB and class id.
    :param view: where it is seen from.
    :param light: the light that it is seen in.
    """

    image: np.ndarray
    view: View
    light: Light

    def box(self, low: np.ndarray | tuple, high: np.ndarray | tuple,
            ) -> tuple[int, int, int, int] | None:
        """Part (left, top, right, bottom) of the picture between two pixels, None if empty."""
        rows, columns = self.image.shape[:2]
        left, top = max(0, int(low[0])), max(0, int(low[1]))
        right, bottom = min(columns, int(high[0]) + 2), min(rows, int(high[1]) + 2)
        return (left, top, right, bottom) if left < right and top < bottom else None

    def paste(self, box: tuple[int, int, int, int], patch: np.ndarray, mask: np.ndarray) -> None:
        """Copy a patch (h, w, 4) where its mask (h, w) is not 0."""
        left, top, right, bottom = box
        cv2.copyTo(patch, mask, self.image[top:bottom, left:right])
