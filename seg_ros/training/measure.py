"""What the pictures and labels of a data set are like, on average."""

from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from seg_ros.errors import DataError
from seg_ros.training.dataset import DataFolder

Rgb = tuple[float, float, float]


@dataclass(frozen=True)
class Measurements:
    """Of all pictures of a data set.

    :param frequencies: (classes,) share of each class among labelled pixels, sum 1.
    :param mean: of R, G, B, 0..255.
    :param std: standard deviation of R, G, B.
    :param size: height and width of the first picture.
    """

    frequencies: np.ndarray
    mean: Rgb
    std: Rgb
    size: tuple[int, int]


def measure(data: DataFolder) -> Measurements:
    """Read all pictures once.

    :raises DataError: a file cannot be read, or all pixels are void.
    """
    counts = np.zeros(len(data.labels))
    sums, squares, pixels = np.zeros(3), np.zeros(3), 0
    size: tuple[int, int] | None = None
    for index in tqdm(range(len(data)), desc='measuring the data', unit='picture', leave=False):
        sample = data[index]
        counts += np.bincount(sample.target.reshape(-1), minlength=256)[:len(counts)]
        rgb = sample.rgb.reshape(-1, 3).astype(np.float64)
        sums += rgb.sum(axis=0)
        squares += (rgb ** 2).sum(axis=0)
        pixels += len(rgb)
        height, width = sample.target.shape
        size = size or (height, width)
    if size is None or not counts.any():
        raise DataError(f'{data.root.resolve()}: all pixels of its {data.split} split are void, '
                        'there is nothing to learn; check the ids in the label files')
    mean = sums / pixels
    std = np.sqrt(np.maximum(squares / pixels - mean ** 2, 1.0))
    return Measurements(counts / counts.sum(), _rounded(mean), _rounded(std), size)


def _rounded(rgb: np.ndarray) -> Rgb:
    red, green, blue = np.round(rgb, 2).tolist()
    return red, green, blue
