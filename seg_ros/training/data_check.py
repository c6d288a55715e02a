"""What a data set holds and what is wrong with it, told before a network is trained on it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

import numpy as np
from tqdm import tqdm

from seg_ros.errors import ConfigError
from seg_ros.files import write_png
from seg_ros.labels import UNKNOWN
from seg_ros.picture_sources import PICTURE_SUFFIXES
from seg_ros.training.batches import AugmentedData
from seg_ros.training.contact_sheet import draw_contact_sheet
from seg_ros.training.dataset import (
    VALIDATION_SPLIT,
    DataFolder,
    Sample,
    expect_same_size,
    join,
    read_rgb,
)
from seg_ros.training.label_files import read_ids
from seg_ros.training.layouts import SplitFiles, expect_root, find_split
from seg_ros.training.losses import class_weights
from seg_ros.training.problems import Problems
from seg_ros.training.recipe import Recipe

SIZES_SHOWN = 5
SHEET_SAMPLES = 10


@dataclass
class Survey:
    """What one split holds.

    :param data: its pairs that can be trained on; what follows is counted over these.
    :param pixels: (classes,) pixels of each class.
    :param pictures: (classes,) pictures that each class occurs in.
    :param void: pixels of no class.
    :param sizes: number of pictures of each width and height.
    """

    data: DataFolder
    pixels: np.ndarray
    pictures: np.ndarray
    void: int = 0
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)

    def add(self, target: np.ndarray) -> None:
        counts = np.bincount(target.reshape(-1), minlength=UNKNOWN + 1)
        self.pixels += counts[:len(self.pixels)]
        self.pictures += counts[:len(self.pixels)] > 0
        self.void += int(counts[UNKNOWN])
        self.sizes[target.shape[1], target.shape[0]] += 1


def check_data(root: Path, recipe: Recipe, out: Path) -> int:
    """Read the splits that a recipe trains on, and the validation split; print their problems and
    classes; write ``OUT/contact_sheet.png``.

    :param out: folder of the sheet; made if need be.
    :return: number of problems.
    :raises DataError: no such folder.
    :raises ConfigError: ``out`` cannot be made.
    """
    expect_root(root)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f'{out.resolve()}: cannot be made: {error.strerror}; give another '
                          '--out') from error
    problems = Problems()
    surveys: dict[str, Survey] = {}
    for split in dict.fromkeys((*recipe.splits, VALIDATION_SPLIT)):
        with problems.noted('splits that cannot be read'):
            surveys[split] = survey(root, split, problems)
    for read in surveys.values():
        try:
            recipe.expect_classes(read.data.labels)
        except ConfigError as error:
            problems.add('the recipe does not fit', str(error))
    for line in [*problems.lines(), *_notes(surveys), *_table(surveys, recipe)]:
        print(line)
    trained_on = [surveys[split].data for split in recipe.splits if split in surveys]
    if any(trained_on):
        print(_write_sheet(reduce(join, trained_on), recipe, out / 'contact_sheet.png'))
    print(f'{len(problems)} problem{"s" * (len(problems) != 1)} found'
          + ('; correct the data before training on it' if problems else ''))
    return len(problems)


def survey(root: Path, split: str, problems: Problems) -> Survey:
    """Read all files of one split.

    :param problems: takes what is wrong with them.
    :raises DataError: the split cannot be opened.
    """
    files = find_split(root, split)
    _look_at_names(split, files, problems)
    data = DataFolder(root, split, files.pairs, files.labels, files.void_ids)
    found = Survey(data, *np.zeros((2, len(data.labels)), np.int64))
    good = []
    for pair in tqdm(data.pairs, desc=f'reading {split}', unit='picture', leave=False):
        target = _read_pair(data, pair, problems)
        if target is not None:
            found.add(target)
            good.append(pair)
    found.data = replace(data, pairs=tuple(good))
    if good and not found.pixels.any():
        problems.add(f'{split}, nothing is labelled',
                     f'{root.resolve()}: all pixels of its {split} split are void; check the ids '
                     'in the label files')
    return found


def _look_at_names(split: str, files: SplitFiles, problems: Problems) -> None:
    """Take note of files that have no partner, too many, or lie where none is read."""
    for _, missing in files.unlabelled:
        problems.add(f'{split}, pictures without labels ({files.remedy})',
                     f'{missing.resolve()}: missing')
    for path in files.unpictured:
        problems.add(f'{split}, labels without a picture (add it or remove them)',
                     f'{path.resolve()}: has no picture')
    of_labels: dict[Path, list[str]] = {}
    for picture, labels in files.pairs:
        of_labels.setdefault(labels, []).append(picture.name)
    for labels, names in of_labels.items():
        if len(names) > 1:
            problems.add(f'{split}, labels of several pictures (keep one, or give each its own)',
                         f'{labels.resolve()}: of {", ".join(names)}')
    for folder in sorted({picture.parent for picture, _ in (*files.pairs, *files.unlabelled)}):
        for below in sorted(folder.iterdir()):
            if not below.is_dir() or below.name.startswith('.'):
                continue
            count = sum(path.suffix.lower() in PICTURE_SUFFIXES and not path.name.startswith('.')
                        for path in below.rglob('*'))
            if count:
                problems.add(f'{split}, folders that are not read (move their pictures up)',
                             f'{below.resolve()}: pictures in it: {count}')


def _read_pair(data: DataFolder, pair: tuple[Path, Path],
               problems: Problems) -> np.ndarray | None:
    """Read a pair and take note of all that is wrong with it.

    :return: (H, W) uint8 class indices; None if something is wrong.
    """
    picture, annotation = pair
    rgb = ids = target = None
    fits = False
    with problems.noted(f'{data.split}, files that cannot be read'):
        rgb = read_rgb(picture)
    with problems.noted(f'{data.split}, files that cannot be read'):
        ids = read_ids(annotation)
    if ids is not None:
        with problems.noted(f'{data.split}, labels with ids of no class'):
            target = data.to_target(ids, annotation)
    if rgb is not None and ids is not None:
        with problems.noted(f'{data.split}, labels of another size than their picture'):
            expect_same_size(rgb, ids, annotation)
            fits = True
    return target if fits else None


def _notes(surveys: dict[str, Survey]) -> Iterator[str]:
    """Tell what is no fault, but good to know."""
    for split, found in surveys.items():
        sizes = [f'{width}x{height} ({count})'
                 for (width, height), count in found.sizes.most_common(SIZES_SHOWN)]
        if len(found.sizes) > SIZES_SHOWN:
            sizes.append(f'{len(found.sizes) - SIZES_SHOWN} more sizes')
        several = 'note: pictures of several sizes: ' if len(sizes) > 1 else ''
        yield f'{split}: {several}{", ".join(sizes) or "no pair that can be used"}'
        absent = [name for name, pixels in zip(found.data.labels.names, found.pixels, strict=True)
                  if not pixels]
        if absent and found.data.pairs:
            yield f'{split}: note: no pixel of {", ".join(absent)}'


def _table(surveys: dict[str, Survey], recipe: Recipe) -> Iterator[str]:
    """Yield the lines of a table of the classes; none if no split could be read."""
    if not surveys:
        return
    columns: list[tuple[str, Sequence[str]]] = []
    for split, found in surveys.items():
        shares = [*found.pixels / max(found.pixels.sum(), 1),
                  found.void / max(found.pixels.sum() + found.void, 1)]
        columns.append((f'{split} %', [f'{100 * share:.2f}' for share in shares]))
        columns.append((f'{split} pictures', [str(count) for count in found.pictures]))
    pixels = sum(surveys[split].pixels for split in recipe.splits if split in surveys)
    if np.any(pixels):
        weights = class_weights(pixels / np.sum(pixels), recipe.class_balance)
        columns.append(('weight', [f'{weight:.3f}' for weight in weights.tolist()]))
    names = [*next(iter(surveys.values())).data.labels.names, 'void']
    wide = max(12, *map(len, names))
    yield f'{"class":{wide}}' + ''.join(f'  {title:>8}' for title, _ in columns)
    for row, name in enumerate(names):
        yield (f'{name:{wide}}' + ''.join(
            f'  {cells[row] if row < len(cells) else "":>{max(8, len(title))}}'
            for title, cells in columns)).rstrip()
    yield ('%: of the labelled pixels (void: of all pixels); pictures: in which the class occurs; '
           f'weight: in the cross-entropy, by class_balance {recipe.class_balance:g}')


def _write_sheet(data: DataFolder, recipe: Recipe, path: Path) -> str:
    """Write views of pictures from all over a data set, as the first epoch sees them.

    :return: what was written, for the user.
    """
    augmented = AugmentedData(data, recipe)
    count = min(SHEET_SAMPLES, len(data))
    indices = np.linspace(0, len(data) - 1, count).round().astype(int).tolist()
    samples = [(data.pairs[index][0].name, Sample(*augmented[0, index])) for index in indices]
    write_png(path, draw_contact_sheet(samples, data.labels))
    return f'{count} augmented samples with their labels: {path}'
