"""Textures of walls, roofs and fences."""

import cv2
import numpy as np

from seg_ros.drawn_scene.classes import BUILDING, FENCE
from seg_ros.drawn_scene.noise import cloudy, grain, textured, with_class
from seg_ros.drawn_scene.street import LOT_M

FLOOR_M = 3.1
"""Height of a floor."""

_PX = 28  # pixels a metre
_WALLS = ((158, 92, 70), (176, 122, 88), (206, 190, 160), (214, 208, 196), (150, 142, 134),
          (186, 160, 120), (128, 84, 70), (196, 176, 168))
_DOORS = ((40, 60, 96), (112, 32, 30), (34, 72, 48), (60, 46, 38), (28, 28, 32))


def wall(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """A plain wall of brick or render, (height, width, 3) float32."""
    color = np.array(_WALLS[rng.integers(len(_WALLS))], np.float32)
    color *= np.float32(rng.uniform(0.85, 1.08))
    gain = 1 + 0.045 * cloudy(rng, height, width, (2, 30, 90))
    if color[0] - color[2] > 55:  # bricks, every other course moved by half a brick
        rows, columns = np.arange(height) // 3, np.arange(width)
        each = 0.09 * grain(rng, height // 3 + 1, width // 7 + 2)
        bricks = (columns[None] + 3 * (rows[:, None] % 2)) // 7
        gain += each[rows[:, None], bricks]
        gain[2::3] *= 1.12
    return textured(color, gain)


def facade(rng: np.random.Generator, floors: int) -> np.ndarray:
    """A front of the full width of a lot, (h, w, 4) uint8, unlit."""
    height, width = int(floors * FLOOR_M * _PX), int(LOT_M * _PX)
    picture = wall(rng, height, width)
    bays = int(rng.integers(4, 7))
    trim = np.array((226, 222, 212), np.float32) * rng.uniform(0.75, 1.0)
    shop = rng.random() < 0.35
    tall, wide = rng.uniform(1.3, 1.8) * _PX, rng.uniform(0.42, 0.6) * width / bays
    for floor in range(floors):
        base = height - floor * FLOOR_M * _PX
        for bay in range(bays):
            middle = (bay + 0.5) * width / bays
            if floor == 0 and shop:
                continue
            if floor == 0 and bay % 3 == 1:
                _door(picture, rng, middle, base, trim)
            else:
                _window(picture, rng, (middle - wide / 2, base - 0.9 * _PX - tall),
                        (middle + wide / 2, base - 0.9 * _PX), trim)
    if shop:
        _shops(picture, rng, height, width)
    for row, thick, gain in ((0, 9, 1.1), (9, 4, 0.6), (height - 10, 10, 0.7)):
        picture[row:row + thick] *= gain  # cornice, its shadow, plinth
    # Less light reaches the foot of a wall.
    picture *= np.linspace(1.04, 0.88, height, dtype=np.float32)[:, None, None]
    return with_class(picture, BUILDING)


def _box(picture: np.ndarray, low: tuple[float, float], high: tuple[float, float],
         color: np.ndarray) -> None:
    cv2.rectangle(picture, (int(low[0]), int(low[1])), (int(high[0]), int(high[1])),
                  tuple(float(c) for c in color), -1)


def _window(picture: np.ndarray, rng: np.random.Generator, low: tuple[float, float],
            high: tuple[float, float], trim: np.ndarray) -> None:
    (left, top), (right, bottom) = low, high
    _box(picture, (left - 4, top - 5), (right + 4, bottom + 2), trim * 0.92)
    _box(picture, (left - 7, bottom + 1), (right + 7, bottom + 5), trim)
    _box(picture, (left - 7, bottom + 6), (right + 7, bottom + 8), trim * 0.45)
    glass = np.array((58, 70, 84), np.float32) * rng.uniform(0.6, 1.5)
    _box(picture, low, high, glass)
    _box(picture, low, (right, top + 0.35 * (bottom - top)), glass * 1.45 + 12)  # sky in it
    if rng.random() < 0.4:
        for side in (left, right - (right - left) * 0.25):
            _box(picture, (side, top), (side + (right - left) * 0.25, bottom),
                 np.array((190, 184, 170)) * rng.uniform(0.5, 0.9))
    _box(picture, low, (right, top + 2), glass * 0.4)  # shadow of the lintel
    middle = (left + right) / 2
    _box(picture, (middle - 1, top), (middle + 1, bottom), trim)
    _box(picture, (left, (top + bottom) / 2 - 1), (right, (top + bottom) / 2 + 1), trim)


def _door(picture: np.ndarray, rng: np.random.Generator, middle: float, base: float,
          trim: np.ndarray) -> None:
    half, top = 0.55 * _PX, base - 2.3 * _PX
    color = np.array(_DOORS[rng.integers(len(_DOORS))], np.float32)
    _box(picture, (middle - half - 5, top - 6), (middle + half + 5, base), trim)
    _box(picture, (middle - half, top), (middle + half, base), color)
    _box(picture, (middle - half, top), (middle + half, top + 10), np.array((70, 80, 92)))
    for left in (-half + 4, 3):
        for row in (18, 40):
            _box(picture, (middle + left, top + row), (middle + left + half - 7, top + row + 16),
                 color * 1.35 + 8)


def _shops(picture: np.ndarray, rng: np.random.Generator, height: int, width: int) -> None:
    top, count = height - int(2.9 * _PX), int(rng.integers(2, 4))
    for shop in range(count):
        left, right = shop * width / count + 6, (shop + 1) * width / count - 6
        color = rng.uniform(30, 200, 3)
        _box(picture, (left, top), (right, height), color * 0.55)
        _box(picture, (left, top), (right, top + 15), color)
        for letter in range(int(rng.integers(5, 10))):  # a name, too far to read
            at = left + (right - left) * 0.2 + letter * 9
            _box(picture, (at, top + 4), (at + rng.integers(3, 7), top + 11), 255 - color * 0.4)
        panes = np.linspace(left + 4, right - 4, 4)
        for at, to in zip(panes[:-1], panes[1:], strict=True):
            _box(picture, (at + 1, top + 19), (to - 1, height - 12),
                 np.array((66, 74, 80)) * rng.uniform(0.6, 1.4))
            _box(picture, (at + 4, top + 40), (to - 5, height - 16), rng.uniform(50, 150, 3))


def side_wall(rng: np.random.Generator) -> np.ndarray:
    """A wall without windows, (h, w, 4) uint8, unlit."""
    return with_class(wall(rng, 192, 192), BUILDING)


def roof(rng: np.random.Generator) -> np.ndarray:
    """Rows of tiles, (h, w, 4) uint8, unlit."""
    color = np.array(((118, 70, 56), (92, 88, 92), (104, 84, 72))[rng.integers(3)], np.float32)
    gain = 1 + 0.08 * cloudy(rng, 96, 320, (2, 5, 40))
    gain[::5] *= 0.72
    gain[:, ::6] *= 0.9
    return with_class(textured(color, gain), BUILDING)


def fence(rng: np.random.Generator, kind: int) -> np.ndarray:
    """Wooden boards (0), railings on a wall (1) or pickets (2), (h, w, 4) uint8, unlit."""
    height, width = 64, 448
    columns = np.arange(width)
    gain = 1 + 0.07 * cloudy(rng, height, width, (2, 16))
    if kind == 0:
        boards = rng.uniform(0.8, 1.15, width // 8 + 1).astype(np.float32)[columns // 8]
        picture = textured((146, 108, 70), gain * boards)
        picture[:, columns % 8 == 0] *= 0.45
        picture[:, columns % 96 < 6] *= 0.7
        picture[[6, 7, 52, 53]] *= 0.75
    elif kind == 1:
        picture = textured((70, 78, 62), gain)
        picture[:, columns % 6 < 2] = (30, 32, 36)
        picture[2:5] = picture[36:39] = (34, 36, 40)
        picture[42:] = textured((152, 116, 96), gain[42:])
        picture[42:45] = (176, 170, 160)
    else:
        picture = textured((84, 96, 66), gain)
        slats = columns % 9 < 6
        picture[:, slats] = textured((222, 220, 212), gain[:, slats])
        picture[[14, 15, 16, 46, 47, 48]] = textured((204, 202, 196), gain[:6])
    picture *= np.linspace(1.05, 0.85, height, dtype=np.float32)[:, None, None]
    return with_class(picture, FENCE)
