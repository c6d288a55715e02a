"""Pictures and their labels on disk.

Two folder layouts are read:

- CamVid: ``DIR/<split>/*.png`` beside ``DIR/<split>annot/*.png``, ids 0..10, 11 is void;
- plain: ``DIR/images/<split>/*`` beside ``DIR/labels/<split>/<same stem>.png`` and
  ``DIR/classes.yaml`` with ``names``, ``colors`` and, if wanted, ``ids`` and ``void``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import yaml

from seg_ros.errors import ConfigError, DataError
from seg_ros.labels import CAMVID, UNKNOWN, LabelSet

PICTURE_SUFFIXES = ('.png', '.jpg', '.jpeg', '.bmp', '.webp', '.tif', '.tiff')
INVALID = -1  # marks, inside this file, an id that no class and no void id explains


@dataclass(frozen=True)
class Sample:
    """One picture and its labels.

    :param rgb: (H, W, 3) uint8.
    :param target: (H, W) uint8, the index of each pixel's class in the label set; 255 is void.
    """

    rgb: np.ndarray
    target: np.ndarray


@dataclass(frozen=True)
class DataFolder:
    """A data set whose pictures stay on disk.

    :param pairs: files of each picture and its labels, sorted by name.
    :param labels: the classes.
    :param void_ids: ids in the label files that belong to no class.
    """

    root: Path
    split: str
    pairs: tuple[tuple[Path, Path], ...]
    labels: LabelSet
    void_ids: frozenset[int]
    index_of_id: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        table = np.full(256, INVALID, np.int16)
        table[list(self.labels.ids)] = np.arange(len(self.labels))
        table[[*self.void_ids, UNKNOWN]] = UNKNOWN
        object.__setattr__(self, 'index_of_id', table)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> Sample:
        """Read one pair.

        :raises DataError: a file cannot be read, sizes differ, or an id belongs to no class.
        """
        picture, annotation = self.pairs[index]
        rgb = read_rgb(picture)
        ids = _imread(annotation, cv2.IMREAD_UNCHANGED)
        if ids is None or ids.dtype != np.uint8 or ids.ndim != 2:
            what = 'cannot be read' if ids is None else f'is {ids.dtype} of shape {ids.shape}'
            raise DataError(f'{annotation.resolve()}: {what}; expected a PNG with one 8-bit class '
                            'id per pixel; restore or convert the file')
        if ids.shape != rgb.shape[:2]:
            raise DataError(f'{annotation.resolve()}: {ids.shape[1]}x{ids.shape[0]} pixels, its '
                            f'picture has {rgb.shape[1]}x{rgb.shape[0]}; they must be equal')
        target = cv2.LUT(ids, self.index_of_id)
        if (target == INVALID).any():
            wrong = sorted(set(np.unique(ids[target == INVALID]).tolist()))
            raise DataError(f'{annotation.resolve()}: class ids {wrong} are neither a class '
                            f'({list(self.labels.ids)}) nor void ({sorted(self.void_ids)}); '
                            'correct the file or the list of classes')
        return Sample(rgb, target.astype(np.uint8))


def read_rgb(path: Path) -> np.ndarray:
    """Read a picture as (H, W, 3) uint8 RGB.

    :raises DataError: the file cannot be read as a picture.
    """
    bgr = _imread(path, cv2.IMREAD_COLOR)
    if bgr is None:
        raise DataError(f'{path.resolve()}: cannot be read as a picture; restore or remove it')
    return cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)


def _imread(path: Path, flags: int) -> np.ndarray | None:
    try:
        return cv2.imread(str(path), flags)
    except cv2.error:  # a size that OpenCV refuses: damaged, too
        return None


def open_data(root: Path, split: str) -> DataFolder:
    """Find the pictures of one split, in whichever layout the folder has.

    :raises DataError: no such folder or split, or pictures without labels.
    """
    if not root.is_dir():
        raise DataError(f'{root.resolve()}: no such folder; give the data set with --data')
    if (root / 'images').is_dir():
        return _open_plain(root, split)
    if (root / split).is_dir() and (root / f'{split}annot').is_dir():
        pairs = _pair(root / split, root / f'{split}annot')
        return DataFolder(root, split, pairs, CAMVID, frozenset({11}))
    raise DataError(f'{root.resolve()}: has neither {split}/ with {split}annot/ (CamVid layout) '
                    f'nor images/{split}/ with labels/{split}/ (plain layout); '
                    'check --data and --split')


def _open_plain(root: Path, split: str) -> DataFolder:
    classes = root / 'classes.yaml'
    try:
        values = yaml.safe_load(classes.read_text(encoding='utf-8'))
        if not isinstance(values, Mapping):
            raise ConfigError('expected a mapping with "names" and "colors"')
        labels = LabelSet.from_dict(values)
        void_ids = _void_ids(values.get('void', []), labels)
    except OSError as error:
        raise DataError(f'{classes.resolve()}: {error.strerror}; the plain layout needs it: write '
                        '"names", "colors" and, if wanted, "ids" and "void" into it') from error
    except (yaml.YAMLError, ConfigError, ValueError) as error:
        raise DataError(f'{classes.resolve()}: {error}') from error
    for folder in (root / 'images' / split, root / 'labels' / split):
        if not folder.is_dir():
            raise DataError(f'{folder.resolve()}: no such folder; check --data and --split')
    return DataFolder(root, split, _pair(root / 'images' / split, root / 'labels' / split),
                      labels, void_ids)


def _void_ids(ids: Any, labels: LabelSet) -> frozenset[int]:
    if not isinstance(ids, list) or any(
            type(id_) is not int or not 0 <= id_ <= 255 for id_ in ids):
        raise ConfigError(f'void {ids!r}: expected a list of ids, 0 to 255')
    if both := set(ids) & set(labels.ids):
        raise ConfigError(f'void {ids!r}: {sorted(both)} are ids of classes too; remove them')
    return frozenset(ids)


def _pair(pictures: Path, annotations: Path) -> tuple[tuple[Path, Path], ...]:
    files = sorted(p for p in pictures.iterdir() if p.suffix.lower() in PICTURE_SUFFIXES)
    if not files:
        raise DataError(f'{pictures.resolve()}: holds no picture ({", ".join(PICTURE_SUFFIXES)})')
    pairs = tuple((p, annotations / f'{p.stem}.png') for p in files)
    missing = [annotation for _, annotation in pairs if not annotation.is_file()]
    if missing:
        raise DataError(f'{missing[0].resolve()}: missing (of {len(pairs)} label files '
                        f'{len(missing)} are); each picture needs a label file of its name: add '
                        'them or remove the pictures')
    return pairs
