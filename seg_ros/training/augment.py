"""Random views of a picture and its labels."""

from dataclasses import dataclass

import cv2
import numpy as np

from seg_ros.errors import ConfigError
from seg_ros.labels import UNKNOWN
from seg_ros.training.dataset import Sample


@dataclass(frozen=True)
class Augmentation:
    """Random scale, crop, horizontal flip and colour.

    :param crop: height and width of the result, multiples of 8.
    :param scale: smallest and largest factor that the picture is resized by.
    :param brightness: each picture's values are multiplied by 1 - b .. 1 + b.
    :param contrast: the same of the differences to the picture's mean.
    :param saturation: the same of the differences to each pixel's grey value.
    :param balanced_crops: share of the views that hold a pixel of a class drawn from those of
        the picture, each as likely as the others, however rare its pixels are.
    """

    crop: tuple[int, int] = (320, 400)
    scale: tuple[float, float] = (0.75, 2.0)
    brightness: float = 0.3
    contrast: float = 0.3
    saturation: float = 0.4
    balanced_crops: float = 0.0

    def __post_init__(self) -> None:
        for what, value in zip(('height', 'width'), self.crop, strict=True):
            if type(value) is not int or not 32 <= value <= 8192 or value % 8:
                raise ConfigError(f'augmentation: crop {what} {value!r} must be a multiple of 8 '
                                  'from 32 to 8192 (the network halves it three times)')
        low, high = self.scale
        if not 0.1 <= low <= high <= 10:
            raise ConfigError(f'augmentation: scale {list(self.scale)} must be two factors from '
                              '0.1 to 10, the smaller first')
        if not 0 <= self.balanced_crops <= 1:
            raise ConfigError(f'augmentation: balanced_crops {self.balanced_crops!r} must be a '
                              'share, 0 to 1')
        for name in ('brightness', 'contrast', 'saturation'):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f'augmentation: {name} {getattr(self, name)!r} must be at '
                                  'least 0 and below 1')

    def __call__(self, sample: Sample, random: np.random.Generator) -> Sample:
        """Return a view of ``crop`` size; what lies outside the picture is grey and void."""
        scale = np.exp(random.uniform(*np.log(self.scale)))
        rgb, target = self._crop(sample, scale, random)
        if random.random() < 0.5:
            rgb, target = rgb[:, ::-1], target[:, ::-1]
        return Sample(self._recolor(rgb, random), np.ascontiguousarray(target))

    def _crop(self, sample: Sample, scale: float,
              random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Cut the view's rectangle from the picture first, then resize only that."""
        height, width = sample.target.shape
        crop_h, crop_w = self.crop
        rooms = height * scale - crop_h, width * scale - crop_w
        pixel = None
        if random.random() < self.balanced_crops:
            pixel = _pixel_of_any_class(sample.target, random)
        if pixel is None:
            top, left = (_offset(room, random) for room in rooms)
        else:
            top, left = (_offset_around(scale * (at + 0.5), side, room, random) for at, side, room
                         in zip(pixel, self.crop, rooms, strict=True))
        matrix = np.array([[scale, 0, 0.5 * scale - 0.5 - left],
                           [0, scale, 0.5 * scale - 0.5 - top]])
        rgb = cv2.warpAffine(sample.rgb, matrix, (crop_w, crop_h), flags=cv2.INTER_LINEAR,
                             borderMode=cv2.BORDER_CONSTANT, borderValue=(128, 128, 128))
        target = cv2.warpAffine(sample.target, matrix, (crop_w, crop_h), flags=cv2.INTER_NEAREST,
                                borderMode=cv2.BORDER_CONSTANT, borderValue=UNKNOWN)
        return rgb, target

    def _recolor(self, rgb: np.ndarray, random: np.random.Generator) -> np.ndarray:
        brightness, contrast, saturation = (
            1 + random.uniform(-amount, amount)
            for amount in (self.brightness, self.contrast, self.saturation))
        grey = np.array([0.299, 0.587, 0.114])
        # One 3x4 colour matrix: towards grey, then gain around the mean, then brightness.
        matrix = (1 - saturation) * np.ones((3, 1)) * grey + saturation * np.eye(3)
        mean = rgb.mean(axis=(0, 1)) @ grey
        offset = np.full((3, 1), mean * (1 - contrast))
        return cv2.transform(rgb, brightness * np.hstack([contrast * matrix, offset]))


def _offset(room: float, random: np.random.Generator) -> float:
    """Place a crop: anywhere inside when there is room, anywhere around the picture when not."""
    return random.uniform(min(room, 0), max(room, 0))


def _offset_around(position: float, side: float, room: float,
                   random: np.random.Generator) -> float:
    """Place a crop as :func:`_offset` does, of those places that hold a position."""
    low, high = min(room, 0), max(room, 0)
    return random.uniform(max(low, position - side), min(high, position))


def _pixel_of_any_class(target: np.ndarray,
                        random: np.random.Generator) -> tuple[int, int] | None:
    """Row and column of a random pixel of a random class of the picture; None if all is void."""
    counts = np.bincount(target.reshape(-1), minlength=UNKNOWN + 1)[:UNKNOWN]
    present = np.flatnonzero(counts)
    if not len(present):
        return None
    of_class = np.flatnonzero(target == random.choice(present))
    row, column = divmod(int(random.choice(of_class)), target.shape[1])
    return row, column
