"""Several runs that are compared: variants of a recipe, or sequences left out in turn."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from seg_ros.errors import ConfigError
from seg_ros.files import write_json, written_whole
from seg_ros.model_file import Model
from seg_ros.training.dataset import (
    VALIDATION_SPLIT,
    DataFolder,
    join,
    open_data,
    sequence_of,
)
from seg_ros.training.recipe import Recipe, load_recipe, with_changes
from seg_ros.training.run import Computing, RunData, open_run_data, train_run
from seg_ros.training.run_folder import RunFolder
from seg_ros.yaml_files import read_yaml, unknown_name

VARIANTS_KEYS = ('shared', 'seeds', 'variants')


@dataclass(frozen=True)
class Experiment:
    """One run of several.

    :param group: what it is a run of, such as a variant; a row of the table.
    :param repeat: which run of the group, such as a seed.
    """

    group: str
    repeat: str
    recipe: Recipe
    data: RunData

    @property
    def folder(self) -> str:
        """Name of its folder inside that of the comparison."""
        name = f'{self.group} {self.repeat}'.strip().lower()
        return ''.join(c if c.isalnum() or c in '.-' else '_' for c in name)


def read_variants(path: Path, recipe: Recipe, root: Path) -> list[Experiment]:
    """Read a file of variants: ``shared`` changes of the recipe, ``seeds``, and ``variants``,
    each a name with its own changes.

    :raises ConfigError: unreadable, or changes that the recipe does not take.
    """
    values = read_yaml(path, 'a file of variants, e.g. config/study_class_terms.yaml')
    if not isinstance(values, Mapping):
        raise ConfigError(f'{path.resolve()}: expected {", ".join(VARIANTS_KEYS)}, got {values!r}')
    for key in values:
        if key not in VARIANTS_KEYS:
            raise ConfigError(f'{path.resolve()}: {unknown_name("key", key, VARIANTS_KEYS)}')
    seeds, variants = values.get('seeds', [recipe.seed]), values.get('variants')
    if not isinstance(seeds, list) or not seeds:
        raise ConfigError(f'{path.resolve()}: seeds: expected a list of numbers, got {seeds!r}')
    if not isinstance(variants, Mapping) or not variants:
        raise ConfigError(f'{path.resolve()}: variants: expected names, each with its changes of '
                          f'the recipe, got {variants!r}')
    shared = with_changes(recipe, values.get('shared', {}), f'{path.resolve()}: shared')
    seeded = [with_changes(shared, {'seed': seed}, f'{path.resolve()}: seeds') for seed in seeds]
    experiments = []
    for name, changes in variants.items():
        for base in seeded:
            changed = with_changes(base, changes, f'{path.resolve()}: {name}')
            data = open_run_data(root, changed)
            if data.validation is None:
                raise ConfigError(f'{path.resolve()}: {name}: with val among splits nothing is '
                                  'left to compare the variants on; leave it out')
            experiments.append(Experiment(str(name), f'seed {changed.seed}', changed, data))
    return experiments


def leave_sequences_out(recipe: Recipe, root: Path, count: int) -> list[Experiment]:
    """Folds over train and val: each leaves some sequences out and is scored on them.

    Sequences (see ``dataset.sequence_of``) are never torn apart. The longest go first, each to
    the fold that holds the fewest pictures by then.

    :param count: of folds, at least 2; no more are made than there are sequences.
    :raises ConfigError: all pictures are of one sequence.
    """
    data = join(open_data(root, 'train'), open_data(root, VALIDATION_SPLIT))
    lengths: dict[str, int] = {}
    for picture, _ in data.pairs:
        lengths[sequence_of(picture)] = lengths.get(sequence_of(picture), 0) + 1
    if len(lengths) < 2:
        raise ConfigError(f'{data.root.resolve()}: all pictures are of one sequence, '
                          f'{", ".join(lengths)}: none can be left out. A sequence is what stands '
                          'before the first _ in the name of a picture')
    folds: list[list[str]] = [[] for _ in range(min(count, len(lengths)))]
    for name in sorted(lengths, key=lambda name: (-lengths[name], name)):
        min(folds, key=lambda fold: sum(lengths[other] for other in fold)).append(name)
    return [_fold(recipe, data, fold) for fold in folds]


def _fold(recipe: Recipe, data: DataFolder, left_out: Sequence[str]) -> Experiment:
    name = ', '.join(sorted(left_out))
    if len(name) > 40:
        name = f'{sorted(left_out)[0]} and {len(left_out) - 1} more'
    return Experiment(f'without {name}', '', recipe, RunData(
        data.only(lambda picture: sequence_of(picture) not in left_out, f'all but {name}'),
        data.only(lambda picture: sequence_of(picture) in left_out, name)))


def run_experiments(experiments: Sequence[Experiment], out: Path, computing: Computing,
                    start: Model | None) -> list[dict[str, Any]]:
    """Do one run after another, each in its folder below ``out``; those done before stay.

    :return: metrics of the last epoch of each.
    :raises TrainingError: one stopped; the next call goes on with it.
    """
    names = [experiment.folder for experiment in experiments]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(f'{", ".join(sorted(twice))}: several runs would have this folder; '
                          'give them other names')
    results = []
    for experiment in experiments:
        folder = RunFolder(out / experiment.folder)
        begun, finished = computing.group.share(partial(_stage, folder, experiment.recipe))
        if not finished:
            train_run(experiment.recipe, experiment.data, folder.path, computing,
                      None if begun else start, resume=begun)
        results.append(computing.group.share(lambda of=folder: of.lines()[-1]))  # type: ignore[misc]
    return results


def _stage(folder: RunFolder, recipe: Recipe) -> tuple[bool, bool]:
    """Whether a run was begun, and whether it has come to its end.

    :raises ConfigError: it was begun with another recipe.
    """
    if not folder.checkpoint.exists():
        return False, False
    if load_recipe(folder.recipe) != recipe:
        raise ConfigError(f'{folder.path.resolve()}: holds a run of another recipe; remove it, or '
                          'give another --out')
    return True, folder.finished(recipe.epochs)


def write_table(experiments: Sequence[Experiment], results: Sequence[Mapping[str, Any]],
                out: Path) -> str:
    """Put the scores side by side, in ``out/table.md`` and, as JSON, in ``out/results.json``.

    :return: the table, Markdown.
    """
    table = '\n'.join(_rows(experiments, results))
    with written_whole(out / 'table.md') as beside:
        beside.write_text(table + '\n', encoding='utf-8')
    write_json(out / 'results.json', [
        {'group': experiment.group, 'repeat': experiment.repeat, **result}
        for experiment, result in zip(experiments, results, strict=True)])
    return table


def _rows(experiments: Sequence[Experiment],
          results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    scores: dict[str, list[float]] = {}
    for experiment, result in zip(experiments, results, strict=True):
        scores.setdefault(experiment.group, []).append(result['val_miou'])
    count = max(map(len, scores.values()))
    seeds = list(dict.fromkeys(experiment.repeat for experiment in experiments))[:count]
    yield ' | '.join(['| run', *(seeds if count > 1 else []), 'mIoU |'])
    yield '|---' + '|---:' * (count + 1 if count > 1 else 1) + '|'
    for group, values in scores.items():
        each = [f'{value:.1f}' for value in values] if count > 1 else []
        yield ' | '.join([f'| {group}', *each, f'{statistics.mean(values):.1f} |'])
    if seeds == ['']:  # folds
        means = [value for values in scores.values() for value in values]
        yield (f'| mean, standard deviation | {statistics.mean(means):.1f}, '
               f'{statistics.stdev(means) if len(means) > 1 else 0:.1f} |')
