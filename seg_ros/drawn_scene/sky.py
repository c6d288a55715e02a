"""The sky and the skyline under it: what lies too far away to move."""

import cv2
import numpy as np

from seg_ros.drawn_scene.camera import HORIZON, focal_px, sway_px
from seg_ros.drawn_scene.classes import BUILDING, SKY, TREE
from seg_ros.drawn_scene.light import Light
from seg_ros.drawn_scene.noise import cloudy, textured, with_class

_ROWS, _COLUMNS = 256, 640
_HIGH = 0.8  # focal lengths above the horizon that the texture reaches


def sky(rng: np.random.Generator, light: Light) -> np.ndarray:
    """Sky above the horizon, the last row on it, (h, w, 4) uint8."""
    up = np.linspace(1, 0, _ROWS, dtype=np.float32)[:, None]
    share = (1 - np.exp(-3.0 * up)) / (1 - np.exp(-3.0))
    picture = np.repeat((light.horizon + (light.zenith - light.horizon) * share[..., None]),
                        _COLUMNS, axis=1).astype(np.float32)
    cover, lit = _clouds(rng, up[:, 0], light.clouds)
    # Clouds are white above and lose themselves in the haze over the horizon.
    white = light.horizon * 0.5 + np.array((250, 250, 252)) * 0.5
    picture += (textured(white, lit) - picture) * cover[..., None]
    texture = with_class(picture, SKY)
    _skyline(texture, rng, light)
    return texture


def _clouds(rng: np.random.Generator, up: np.ndarray, share: float,
            ) -> tuple[np.ndarray, np.ndarray]:
    """How much clouds cover (0..1) and how bright they are (about 1), each (h, w) float32.

    :param up: (h,) height above the horizon of each row, 0..1.
    """
    side = 512
    field = np.zeros((side, side), np.float32)
    for weight, cell in ((1.0, 128), (0.55, 64), (0.32, 32), (0.18, 16), (0.1, 8)):
        field += np.float32(weight) * cloudy(rng, side, side, (cell,))
    # A flat layer of clouds: the nearer to the horizon, the further away.
    away = 0.34 / (up.astype(np.float32) + 0.16)
    across = np.linspace(-0.5, 0.5, _COLUMNS, dtype=np.float32)
    columns = 256 + 420 * across[None] * away[:, None]
    rows = np.repeat(240 * away[:, None], _COLUMNS, 1)
    dense = cv2.remap(field, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
    edge = np.clip((dense + 2.2 * share - 1.1) / 1.1, 0, 1)
    cover = edge * edge * (3 - 2 * edge) * np.clip(up * 6, 0.25, 0.9)[:, None].astype(np.float32)
    return cover, 1.04 - 0.11 * np.clip(dense, -0.5, 1.6)


def _skyline(texture: np.ndarray, rng: np.random.Generator, light: Light) -> None:
    """Hazy roofs and tree tops along the last rows."""
    at = 0
    while at < _COLUMNS:
        width, high = int(rng.integers(8, 26)), int(rng.integers(7, 13))
        if rng.random() < 0.5:
            color = np.array((150, 138, 128)) * rng.uniform(0.8, 1.1)
            outline = [(at, _ROWS), (at, _ROWS - high), (at + width // 2, _ROWS - high - 4),
                       (at + width, _ROWS - high), (at + width, _ROWS)]
            class_id = BUILDING
        else:
            color, class_id = np.array((84, 100, 66)) * rng.uniform(0.8, 1.1), TREE
            bumps = high - 3 * np.abs(np.sin(np.arange(width + 1) * 0.7 + rng.uniform(0, 6)))
            outline = ([(at, _ROWS)] + [(at + i, int(_ROWS - b)) for i, b in enumerate(bumps)]
                       + [(at + width, _ROWS)])
        color = color * light.factor((0.0, 0.6, -0.6))
        color = color + (light.haze - color) * 0.45
        cv2.fillPoly(texture, [np.array(outline, np.int32)],
                     (*(float(c) for c in color), class_id))
        at += width


def fit_sky(texture: np.ndarray, width: int, height: int) -> np.ndarray:
    """The sky for a picture size, with a margin for the sway of the camera.

    :return: (rows, columns, 4) uint8, the horizon below the last row.
    """
    sideways, upward = sway_px(width, height)
    columns, rows = width + 2 * sideways, int(HORIZON * height) + upward + 2
    zoom_x, zoom_y = columns / _COLUMNS, focal_px(width, height) * _HIGH / _ROWS
    matrix = np.array(((zoom_x, 0, zoom_x / 2 - 0.5),
                       (0, zoom_y, rows - zoom_y * (_ROWS - 0.5) - 0.5)))
    fitted = cv2.warpAffine(texture, matrix, (columns, rows), flags=cv2.INTER_LINEAR,
                            borderMode=cv2.BORDER_REPLICATE)
    # Halfway between classes lies another class: they are taken from the nearest pixel.
    fitted[..., 3] = cv2.warpAffine(np.ascontiguousarray(texture[..., 3]), matrix,
                                    (columns, rows), flags=cv2.INTER_NEAREST,
                                    borderMode=cv2.BORDER_REPLICATE)
    return fitted
