"""The pinhole camera in the car and where it is at a moment."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

NEAR_M = 0.7
"""Nothing closer to the camera than this is drawn."""

HEIGHT_M = 1.45
"""Height of the camera above the road."""

HORIZON = 0.46
"""Where in the picture the horizon lies on average, as a share of its height."""

_SWAY_RAD = 0.012
_NOD_RAD = 0.007


@dataclass(frozen=True)
class View:
    """A camera pose; points are (right x, up y, forward s) in metres.

    :param focal: focal length in pixels.
    :param center: column and row, in pixels from the centre of the first one, that the camera
        looks at; the row is the horizon.
    :param x: place across the street in metres.
    :param s: place along the street in metres.
    :param yaw: turn to the right in radians.
    """

    focal: float
    center: tuple[float, float]
    x: float
    s: float
    yaw: float

    @cached_property
    def eye(self) -> np.ndarray:
        """World point (3,) of the camera."""
        return np.array((self.x, HEIGHT_M, self.s))

    @cached_property
    def axes(self) -> np.ndarray:
        """Matrix (3, 3) from world steps, as rows, to camera steps: points @ axes."""
        sin, cos = float(np.sin(self.yaw)), float(np.cos(self.yaw))
        return np.array(((cos, 0, sin), (0, 1, 0), (-sin, 0, cos)))

    @cached_property
    def lens(self) -> np.ndarray:
        """Matrix (3, 3) from camera steps, as columns, to homogeneous pixels."""
        column, row = self.center
        return np.array(((self.focal, 0, column), (0, -self.focal, row), (0, 0, 1)))

    def to_camera(self, points: np.ndarray) -> np.ndarray:
        """World points (..., 3) as (right, up, depth) seen from the camera, float."""
        return (points - self.eye) @ self.axes

    def to_pixels(self, camera_points: np.ndarray) -> np.ndarray:
        """Camera points (..., 3) of positive depth as (column, row), (..., 2) float."""
        pixels = camera_points[..., :2] * (self.focal / camera_points[..., 2:])
        pixels[..., 1] *= -1
        pixels += self.center
        return pixels

    def homographies(self, planes: np.ndarray) -> np.ndarray:
        """Matrices (N, 3, 3) that take (a, b, 1) on a plane to homogeneous pixels.

        :param planes: (N, 3, 3): world step for one unit of a, world step for one unit of b, and
            the world point where a = b = 0.
        """
        steps = planes.astype(float)
        steps[:, 2] -= self.eye
        return self.lens @ np.swapaxes(steps @ self.axes, 1, 2)


def clip_near(camera_points: np.ndarray) -> np.ndarray:
    """The part of a polygon, (N, 3) camera points, in front of the near plane; may be empty."""
    depth = camera_points[:, 2]
    if depth.min() >= NEAR_M:
        return camera_points
    if depth.max() <= NEAR_M:
        return camera_points[:0]
    kept = []
    for here, there in zip(camera_points, np.roll(camera_points, -1, 0), strict=True):
        if here[2] >= NEAR_M:
            kept.append(here)
        if (here[2] >= NEAR_M) != (there[2] >= NEAR_M):
            share = (NEAR_M - here[2]) / (there[2] - here[2])
            kept.append(here + share * (there - here))
    return np.array(kept)


def focal_px(width: int, height: int) -> float:
    """Focal length in pixels for a picture of this size: about 61 degrees across at 4:3."""
    return 0.85 * max(width, height * 4 / 3)


def sway_px(width: int, height: int) -> tuple[int, int]:
    """How many columns and rows the sway moves the horizon at most, to each side."""
    focal = focal_px(width, height)
    return int(np.ceil(1.1 * _SWAY_RAD * focal)) + 1, int(np.ceil(1.1 * _NOD_RAD * focal)) + 1


@dataclass(frozen=True)
class Drive:
    """How the car moves: steadily forward in its lane, swaying a little.

    :param speed: metres per second.
    :param lane_x: middle of the lane in metres.
    :param phase: where in the sway it starts, in radians.
    """

    speed: float
    lane_x: float
    phase: float

    def view(self, time_s: float, width: int, height: int) -> View:
        """The camera at a moment for a picture of this size."""
        focal = focal_px(width, height)
        yaw = _SWAY_RAD * np.sin(0.31 * time_s + self.phase)
        pitch = _NOD_RAD * (0.55 * np.sin(1.7 * time_s + self.phase) + 0.45 * np.sin(0.6 * time_s))
        horizon = HORIZON * height + focal * pitch - 0.5
        return View(focal, ((width - 1) / 2, float(horizon)),
                    float(self.lane_x + 0.15 * np.sin(0.23 * time_s + 2 * self.phase)),
                    self.speed * time_s, float(yaw))
