"""Solid things made of flat faces: described once, then put into perspective together."""

from dataclasses import dataclass, field

import cv2
import numpy as np

from seg_ros.drawn_scene.camera import NEAR_M, clip_near
from seg_ros.drawn_scene.canvas import SHIFT, Canvas, fixed_point

_FINE_PX_M = 22.0  # pixels a metre below which small details are left out

# What is known of a face, one column each; three for a colour or a direction.
_RGB, _OUT, _SHADE = slice(0, 3), slice(3, 6), slice(6, 9)
_PAINT, _GROUP, _FINE, _CONVEX, _CLASS, _CORNERS = range(9, 15)


class Solid:
    """A thing around its own origin on the ground, looking forward.

    Faces are drawn by group; within a group the furthest first.
    """

    def __init__(self) -> None:
        self._points: list[np.ndarray] = []
        self._faces: list[np.ndarray] = []

    def add(self, points: np.ndarray, rgb: np.ndarray | tuple, class_id: int, *,
            out: tuple[float, float, float] = (0.0, 0.0, 0.0), paint: float = 0.0,
            shade: tuple[float, float, float] | None = None, group: int = 0, fine: bool = False,
            convex: bool = True) -> None:
        """Add a face.

        :param points: (N, 3) corners (right, up, forward) in metres.
        :param rgb: its own colour, 0..255.
        :param out: where it looks to, a unit vector; it is seen from that side only. All zero:
            from every side.
        :param paint: how much of the thing's paint is added to the colour.
        :param shade: direction for the light on it where it differs from ``out``.
        :param group: its place in the order of drawing.
        :param fine: left out where a metre is only a few pixels long.
        :param convex: whether its outline is convex.
        """
        face = np.zeros(15)
        face[_RGB], face[_OUT], face[_SHADE] = rgb, out, out if shade is None else shade
        face[_PAINT:] = paint, group, fine, convex, class_id, len(points)
        self._points.append(np.asarray(points, float))
        self._faces.append(face)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """All corners (V, 3) and all faces (F, 15)."""
        if len(self._points) > 1:
            self._points, self._faces = [np.concatenate(self._points)], [np.array(self._faces)]
        return self._points[0], self._faces[0]


@dataclass(frozen=True)
class Placed:
    """A solid somewhere in the world.

    :param solid: its shape.
    :param x: world place across the street in metres.
    :param s: world place along the street in metres.
    :param heading: 1 looks forward, -1 towards the camera.
    :param paint: (3,) RGB of its painted faces, 0..255.
    :param sun_share: how much of the sun reaches it, 0..1.
    :param stretch: factor of its height.
    """

    solid: Solid
    x: float
    s: float
    heading: int = 1
    paint: np.ndarray = field(default_factory=lambda: np.zeros(3))
    sun_share: float = 1.0
    stretch: float = 1.0


class SolidBatch:
    """Solids put into perspective together, then drawn one by one.

    :param canvas: to draw on.
    :param placed: at least one.
    """

    def __init__(self, canvas: Canvas, placed: list[Placed]) -> None:
        self._canvas = canvas
        arrays = [each.solid.arrays() for each in placed]
        points = np.concatenate([corners for corners, _ in arrays])
        faces = np.concatenate([rows for _, rows in arrays])
        numbers = np.arange(len(placed))
        owner = np.repeat(numbers, [len(rows) for _, rows in arrays])
        point_owner = np.repeat(numbers, [len(corners) for corners, _ in arrays])
        turn = np.array([(each.heading, each.stretch, each.heading) for each in placed], float)
        place = np.array([(each.x, 0.0, each.s) for each in placed])
        points = points * turn[point_owner] + place[point_owner]
        counts = faces[:, _CORNERS].astype(int)
        ends = np.cumsum(counts)
        starts = ends - counts

        view = canvas.view
        seen = view.to_camera(points)
        depth = seen[:, 2]
        nearest = np.minimum.reduceat(depth, starts)
        middle = np.add.reduceat(depth, starts) / counts
        looks = np.array([each.heading for each in placed], float)[owner, None] * (1.0, 0.0, 1.0)
        looks[:, 1] = 1.0
        facing = ((faces[:, _OUT] * looks) * (view.eye - points[starts])).sum(1)
        shown = (facing > 0) | ~faces[:, _OUT].any(1)
        shown &= (faces[:, _FINE] == 0) | (middle * _FINE_PX_M < view.focal)
        shown &= np.maximum.reduceat(depth, starts) > NEAR_M

        ahead = seen.copy()
        np.maximum(ahead[:, 2], NEAR_M, out=ahead[:, 2])
        pixels = view.to_pixels(ahead)
        columns = pixels[:, 0]
        shown &= np.minimum.reduceat(columns, starts) < canvas.image.shape[1]
        shown &= np.maximum.reduceat(columns, starts) > -1

        inks = self._inks(placed, faces, faces[:, _SHADE] * looks, owner, middle)
        order = np.flatnonzero(shown)
        keys = owner * 1e6 + faces[:, _GROUP] * 1e4 - middle
        order = order[np.argsort(keys[order], kind='stable')]
        self._bounds = np.searchsorted(owner[order], np.arange(len(placed) + 1)).tolist()
        self._pixels, self._seen = fixed_point(pixels), seen
        self._starts, self._ends = starts[order].tolist(), ends[order].tolist()
        self._inks_drawn = inks[order].tolist()
        self._whole = (nearest[order] >= NEAR_M).tolist()
        self._convex = (faces[order, _CONVEX] > 0).tolist()

    def _inks(self, placed: list[Placed], faces: np.ndarray, shade: np.ndarray,
              owner: np.ndarray, depth: np.ndarray) -> np.ndarray:
        """Colour and class of each face, (F, 4) float."""
        light = self._canvas.light
        sun = np.maximum(shade @ light.to_sun, 0.0)
        sun *= np.array([each.sun_share for each in placed])[owner]
        paint = np.array([each.paint for each in placed], float)[owner]
        rgb = faces[:, _RGB] + paint * faces[:, _PAINT, None]
        rgb = np.minimum(rgb * (light.ambient + light.sun * sun[:, None]), 255.0)
        rgb += (light.haze - rgb) * light.haze_share(depth)[:, None]
        return np.concatenate([rgb, faces[:, _CLASS, None]], 1)

    def draw(self, number: int) -> None:
        """Draw the solid of this number."""
        image = self._canvas.image
        for face in range(self._bounds[number], self._bounds[number + 1]):
            start, end = self._starts[face], self._ends[face]
            corners = self._pixels[start:end]
            if not self._whole[face]:
                seen = clip_near(self._seen[start:end])
                corners = fixed_point(self._canvas.view.to_pixels(seen))
            if self._convex[face]:
                cv2.fillConvexPoly(image, corners, self._inks_drawn[face], cv2.LINE_8, SHIFT)
            else:
                cv2.fillPoly(image, [corners], self._inks_drawn[face], cv2.LINE_8, SHIFT)
