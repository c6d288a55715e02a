"""Where a data set's pictures and their labels lie. Three layouts are read:

- CamVid: ``DIR/<split>/*`` beside ``DIR/<split>annot/<same stem>.png``, ids 0..10, 11 is void;
- Cityscapes: ``DIR/leftImg8bit/<split>/<city>/*_leftImg8bit.png`` beside
  ``DIR/gtFine/<split>/<city>/*_gtFine_labelTrainIds.png``, ids 0..18;
- plain: ``DIR/images/<split>/*`` beside ``DIR/labels/<split>/<same stem>.png``, and
  ``DIR/classes.yaml`` with ``names``, ``colors`` and, if wanted, ``ids`` and ``void``.

255 is void in each of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from seg_ros.errors import ConfigError, DataError
from seg_ros.labels import CAMVID, CITYSCAPES, LabelSet
from seg_ros.picture_sources import PICTURE_SUFFIXES

ADD_LABELS = 'each picture needs a label file of its name: add them or remove the pictures'
MAKE_TRAIN_IDS = ('of Cityscapes only labelTrainIds are read, not labelIds; make them: pip '
                  'install cityscapesscripts, then CITYSCAPES_DATASET={root} '
                  'csCreateTrainIdLabelImgs')


@dataclass(frozen=True)
class SplitFiles:
    """The files of one split.

    :param pairs: each picture that has labels, with them; in the order of names.
    :param unlabelled: each picture without labels, with the label file that it lacks.
    :param unpictured: label files whose picture is not there.
    :param labels: the classes.
    :param void_ids: ids in the label files that belong to no class; 255 besides.
    :param remedy: what to do about missing labels.
    """

    pairs: tuple[tuple[Path, Path], ...]
    unlabelled: tuple[tuple[Path, Path], ...]
    unpictured: tuple[Path, ...]
    labels: LabelSet
    void_ids: frozenset[int]
    remedy: str


def expect_root(root: Path) -> None:
    """Raise a DataError unless there is such a folder."""
    if not root.is_dir():
        raise DataError(f'{root.resolve()}: no such folder; give the data set with --data')


def find_split(root: Path, split: str) -> SplitFiles:
    """List the files of one split, in whichever layout the folder has.

    :raises DataError: no such folder or split, no picture in it, or its list of classes is
        missing or wrong.
    """
    expect_root(root)
    if (root / 'images').is_dir():
        return _plain(root, split)
    if (root / 'leftImg8bit').is_dir():
        return _cityscapes(root, split)
    if (root / split).is_dir() and (root / f'{split}annot').is_dir():
        return _camvid(root, split)
    raise DataError(f'{root.resolve()}: has neither {split}/ with {split}annot/ (CamVid layout) '
                    f'nor leftImg8bit/{split}/ with gtFine/{split}/ (Cityscapes layout) nor '
                    f'images/{split}/ with labels/{split}/ (plain layout); check --data and '
                    '--split')


def _camvid(root: Path, split: str) -> SplitFiles:
    wanted, found = _same_stems(root / split, root / f'{split}annot')
    return _matched(wanted, found, CAMVID, frozenset({11}), ADD_LABELS)


def _cityscapes(root: Path, split: str) -> SplitFiles:
    pictures, annotations = root / 'leftImg8bit' / split, root / 'gtFine' / split
    _expect_folders(pictures, annotations)
    ending, label_ending = '_leftImg8bit.png', '_gtFine_labelTrainIds.png'
    wanted = {path: annotations / path.parent.name / path.name.replace(ending, label_ending)
              for path in sorted(pictures.glob(f'*/*{ending}'))}
    if not wanted:
        raise DataError(f'{pictures.resolve()}: holds no picture (<city>/*{ending})')
    return _matched(wanted, annotations.glob(f'*/*{label_ending}'), CITYSCAPES, frozenset(),
                    MAKE_TRAIN_IDS.format(root=root.resolve()))


def _plain(root: Path, split: str) -> SplitFiles:
    labels, void_ids = _read_classes(root / 'classes.yaml')
    wanted, found = _same_stems(root / 'images' / split, root / 'labels' / split)
    return _matched(wanted, found, labels, void_ids, ADD_LABELS)


def _same_stems(pictures: Path, annotations: Path) -> tuple[dict[Path, Path], list[Path]]:
    """Find pictures whose label files are named as they are.

    :return: label file that each picture is to have; label files that are there.
    """
    _expect_folders(pictures, annotations)
    files = _visible(pictures, PICTURE_SUFFIXES)
    if not files:
        raise DataError(f'{pictures.resolve()}: holds no picture ({", ".join(PICTURE_SUFFIXES)})')
    found = {path.stem: path for path in _visible(annotations, ('.png',))}
    wanted = {path: found.get(path.stem, annotations / f'{path.stem}.png') for path in files}
    return wanted, list(found.values())


def _expect_folders(*folders: Path) -> None:
    for folder in folders:
        if not folder.is_dir():
            raise DataError(f'{folder.resolve()}: no such folder; check --data and --split')


def _visible(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Files of these suffixes; not the hidden ones, as macOS leaves beside each file it copies."""
    return sorted(path for path in folder.iterdir()
                  if path.suffix.lower() in suffixes and not path.name.startswith('.'))


def _matched(wanted: Mapping[Path, Path], found: Iterable[Path], labels: LabelSet,
             void_ids: frozenset[int], remedy: str) -> SplitFiles:
    there = set(found)
    return SplitFiles(tuple(pair for pair in wanted.items() if pair[1] in there),
                      tuple(pair for pair in wanted.items() if pair[1] not in there),
                      tuple(sorted(there - set(wanted.values()))), labels, void_ids, remedy)


def _read_classes(path: Path) -> tuple[LabelSet, frozenset[int]]:
    """Read the classes and void ids of the plain layout.

    :raises DataError: missing, unreadable, or not what is expected.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding='utf-8'))
        if not isinstance(values, Mapping):
            raise ConfigError('expected a mapping with "names" and "colors"')
        labels = LabelSet.from_dict(values)
        return labels, _void_ids(values.get('void', []), labels)
    except OSError as error:
        raise DataError(f'{path.resolve()}: {error.strerror}; the plain layout needs it: write '
                        '"names", "colors" and, if wanted, "ids" and "void" into it') from error
    except (yaml.YAMLError, ConfigError, ValueError) as error:
        raise DataError(f'{path.resolve()}: {error}') from error


def _void_ids(ids: Any, labels: LabelSet) -> frozenset[int]:
    if not isinstance(ids, list) or any(
            type(id_) is not int or not 0 <= id_ <= 255 for id_ in ids):
        raise ConfigError(f'void {ids!r}: expected a list of ids, 0 to 255')
    if both := set(ids) & set(labels.ids):
        raise ConfigError(f'void {ids!r}: {sorted(both)} are ids of classes too; remove them')
    return frozenset(ids)
