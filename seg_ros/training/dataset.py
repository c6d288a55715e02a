"""A data set whose pictures and labels stay on disk."""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

from seg_ros.errors import DataError, ImageError
from seg_ros.jpeg_png import decode_picture
from seg_ros.labels import UNKNOWN, LabelSet
from seg_ros.training.data_files import read_file
from seg_ros.training.label_files import read_ids
from seg_ros.training.layouts import find_split

VALIDATION_SPLIT = 'val'
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
    """Pairs of files, read when they are asked for.

    :param split: name of this choice of pictures, for messages.
    :param pairs: files of each picture and its labels.
    :param labels: the classes.
    :param void_ids: ids in the label files that belong to no class; 255 besides.
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
        rgb, ids = read_rgb(picture), read_ids(annotation)
        expect_same_size(rgb, ids, annotation)
        return Sample(rgb, self.to_target(ids, annotation))

    def to_target(self, ids: np.ndarray, annotation: Path) -> np.ndarray:
        """Class index of each pixel, as (H, W) uint8; 255 is void.

        :param ids: (H, W) uint8, as the file has them.
        :param annotation: the file, for the message.
        :raises DataError: an id belongs to no class and is not void.
        """
        target = cv2.LUT(ids, self.index_of_id)
        if (target == INVALID).any():
            wrong = np.unique(ids[target == INVALID]).tolist()
            raise DataError(f'{annotation.resolve()}: class ids {wrong} are neither a class '
                            f'({list(self.labels.ids)}) nor void '
                            f'({sorted({*self.void_ids, UNKNOWN})}); correct the file or the '
                            'list of classes')
        return target.astype(np.uint8)

    def digest_of_names(self) -> str:
        """SHA-256 of the pictures' paths below the root, which may itself move."""
        names = [picture.relative_to(self.root).as_posix() for picture, _ in self.pairs]
        return hashlib.sha256(json.dumps(names).encode()).hexdigest()

    def only(self, keep: Callable[[Path], bool], split: str) -> 'DataFolder':
        """Leave out pictures.

        :param keep: whether a picture stays, by its file.
        :param split: name of the choice.
        :raises DataError: none stays.
        """
        pairs = tuple(pair for pair in self.pairs if keep(pair[0]))
        if not pairs:
            raise DataError(f'{self.root.resolve()}: {split} holds none of the {len(self)} '
                            f'pictures of {self.split}')
        return dataclasses.replace(self, split=split, pairs=pairs)


def expect_same_size(rgb: np.ndarray, ids: np.ndarray, annotation: Path) -> None:
    """Raise a DataError unless a picture and its labels have the same height and width."""
    if ids.shape != rgb.shape[:2]:
        raise DataError(f'{annotation.resolve()}: {ids.shape[1]}x{ids.shape[0]} pixels, its '
                        f'picture has {rgb.shape[1]}x{rgb.shape[0]}; they must be equal')


def join(first: DataFolder, second: DataFolder) -> DataFolder:
    """Put two splits of one data set together."""
    return dataclasses.replace(first, split=f'{first.split} + {second.split}',
                               pairs=first.pairs + second.pairs)


def sequence_of(picture: Path) -> str:
    """Name of the drive or place that a picture was taken from: its name up to the first ``_``.

    ``0001TP_006690.png`` is of 0001TP (CamVid), ``aachen_000000_000019_leftImg8bit.png`` of
    aachen (Cityscapes). A name without ``_`` says nothing of its neighbours: such a picture is a
    sequence by itself.
    """
    return picture.stem.partition('_')[0] or picture.stem


def open_data(root: Path, split: str) -> DataFolder:
    """Find the pictures of one split, in whichever layout the folder has (see ``layouts``).

    :raises DataError: no such folder or split, or pictures without labels.
    """
    files = find_split(root, split)
    if files.unlabelled:
        total = len(files.pairs) + len(files.unlabelled)
        raise DataError(f'{files.unlabelled[0][1].resolve()}: missing (of {total} label files '
                        f'{len(files.unlabelled)} are); {files.remedy}')
    return DataFolder(root, split, files.pairs, files.labels, files.void_ids)


def read_rgb(path: Path) -> np.ndarray:
    """Read a picture as (H, W, 3) uint8 RGB.

    :raises DataError: the file is not there or cannot be read as a picture.
    """
    try:
        return decode_picture(read_file(path))
    except ImageError as error:
        raise DataError(f'{path.resolve()}: cannot be read as a picture ({error}); restore or '
                        'remove it') from error
