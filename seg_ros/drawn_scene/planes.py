"""Textured parallelograms in perspective: walls, roofs and fences."""

from dataclasses import dataclass

import cv2
import numpy as np

from seg_ros.drawn_scene.camera import NEAR_M, clip_near
from seg_ros.drawn_scene.canvas import SHIFT, Canvas, fixed_point
from seg_ros.drawn_scene.texture import Texture

_WHOLE = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))


@dataclass(frozen=True)
class Plane:
    """A texture that spans a parallelogram.

    :param texture: its rows run along ``across``.
    :param corner: world point (3,) of the texture's upper left corner.
    :param across: world vector (3,) along its upper edge.
    :param down: world vector (3,) along its left edge.
    :param outline: four (across, down) shares, 0..1: the corners of what there is of it.
    """

    texture: Texture
    corner: np.ndarray
    across: np.ndarray
    down: np.ndarray
    outline: tuple[tuple[float, float], ...] = _WHOLE


class PlaneBatch:
    """Planes put into perspective together, then drawn one by one.

    :param canvas: to draw on.
    :param planes: any number.
    """

    def __init__(self, canvas: Canvas, planes: list[Plane]) -> None:
        self._canvas = canvas
        self._planes = planes
        steps = np.array([(plane.across, plane.down, plane.corner) for plane in planes])
        steps = steps.reshape(-1, 3, 3)
        self._matrices = canvas.view.homographies(steps)
        outlines = np.array([plane.outline for plane in planes]).reshape(-1, 4, 2)
        points = outlines @ steps[:, :2] + steps[:, 2:]
        self._seen = canvas.view.to_camera(points)
        depth = self._seen[..., 2]
        self._nearest, self._middle = depth.min(1), depth.mean(1)
        self._lengths = np.linalg.norm(steps[:, 1], axis=1) * canvas.view.focal
        ahead = self._seen.copy()
        np.maximum(ahead[..., 2], NEAR_M, out=ahead[..., 2])
        self._pixels = canvas.view.to_pixels(ahead)
        self._low, self._high = self._pixels.min(1), self._pixels.max(1)

    def draw(self, number: int) -> None:
        """Draw the plane of this number."""
        pixels, low, high = self._pixels[number], self._low[number], self._high[number]
        nearest, depth = float(self._nearest[number]), float(self._middle[number])
        if nearest < NEAR_M:
            seen = clip_near(self._seen[number])
            if len(seen) < 3:
                return
            pixels = self._canvas.view.to_pixels(seen)
            low, high = pixels.min(0), pixels.max(0)
            nearest, depth = NEAR_M, float(seen[:, 2].mean())
        box = self._canvas.box(low, high)
        if box is None:
            return
        texture = self._planes[number].texture
        # Rows tell the scale: the columns of a wall along the street are foreshortened anyway.
        level = texture.level(self._lengths[number] / nearest)
        picture = texture.at(level, depth)
        rows, columns = picture.shape[:2]
        left, top, right, bottom = box
        # Texture pixel (0, 0) lies half a pixel inside the plane's corner.
        matrix = self._matrices[number] @ np.array(
            ((1 / columns, 0, 0.5 / columns), (0, 1 / rows, 0.5 / rows), (0, 0, 1)))
        matrix[0] -= left * matrix[2]
        matrix[1] -= top * matrix[2]
        if abs(np.linalg.det(matrix)) < 1e-9:  # seen edge on
            return
        size = (right - left, bottom - top)
        # A constant border: OpenCV 5 takes ten times as long for a small wall to replicate one.
        patch = cv2.warpPerspective(picture, matrix, size, flags=cv2.INTER_LINEAR,
                                    borderMode=cv2.BORDER_CONSTANT, borderValue=texture.edge)
        mask = np.zeros(size[::-1], np.uint8)
        cv2.fillConvexPoly(mask, fixed_point(pixels - (left, top)), 255, cv2.LINE_8, SHIFT)
        self._canvas.paste(box, patch, mask)
