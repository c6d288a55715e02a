"""Smooth noise, the grain of all textures."""

from functools import lru_cache

import cv2
import numpy as np

_SIDE = 1280


@lru_cache(maxsize=1)
def _white() -> np.ndarray:
    # One field for all textures, each takes another part: drawing noise anew for each would
    # take most of the time in which a scene is made.
    field = np.random.default_rng(0).standard_normal((_SIDE, _SIDE), np.float32)
    field.flags.writeable = False
    return field


def grain(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Noise from pixel to pixel, (height, width) float32 of mean 0 and deviation 1, read-only.

    :param height: at most 1024 like the width.
    """
    top, left = rng.integers(0, _SIDE - height), rng.integers(0, _SIDE - width)
    return _white()[top:top + height, left:left + width]


def cloudy(rng: np.random.Generator, height: int, width: int, cells: tuple[int, ...],
           ) -> np.ndarray:
    """Sum of smooth noises, (height, width) float32 of mean about 0 and deviation about 1.

    :param cells: size in pixels of each noise's grain.
    """
    total = np.zeros((height, width), np.float32)
    for cell in cells:
        small = grain(rng, height // cell + 2, width // cell + 2)
        total += cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR)
    # Linear interpolation leaves 4/9 of the variance.
    total *= np.float32(1.5 / np.sqrt(len(cells)))
    return total


def textured(color: np.ndarray | tuple, gain: np.ndarray) -> np.ndarray:
    """A colour (3,) times a gain (H, W) float32: (H, W, 3) float32."""
    return cv2.merge([gain * np.float32(part) for part in color])


def with_class(rgb: np.ndarray, class_id: int) -> np.ndarray:
    """A picture (H, W, 3) float32 as a texture (H, W, 4) uint8 of one class."""
    rounded = cv2.convertScaleAbs(np.maximum(rgb, 0))  # saturates at 255
    return cv2.merge([*cv2.split(rounded), np.full(rgb.shape[:2], class_id, np.uint8)])
