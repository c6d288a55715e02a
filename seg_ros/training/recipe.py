"""The recipe of a training run: one YAML file, checked when it is loaded."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from seg_ros.errors import ConfigError
from seg_ros.labels import CAMVID, LabelSet
from seg_ros.networks import NETWORKS, build_network, default_arguments
from seg_ros.training.augment import Augmentation
from seg_ros.yaml_files import read_yaml, unknown_name

CLASS_TERMS = ('none', 'literal', 'conditioned')
PRECISIONS = ('float32', 'bfloat16', 'float16')


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what a run computes, but for the data.

    :param architecture: name of the network.
    :param arguments: its constructor's arguments without ``classes``; those left out get their
        defaults, so that a run and its files keep them when the defaults change.
    :param epochs: how often every picture is seen.
    :param batch: pictures a step.
    :param learning_rate: highest rate; falls as (1 - progress) ** 0.9 after the warm-up.
    :param weight_decay: of AdamW, on convolution kernels only.
    :param warmup_steps: steps in which the rate rises from 0.
    :param ema: decay per step of the averaged weights that are validated and kept.
    :param class_balance: power of the classes' weights in the cross-entropy: the larger, the more
        of the rare classes is found, and the more where they are not.
    :param hard_share: of the pixels of a batch, those with the highest cross-entropy times the
        weight of their class, that count (online hard example mining); 1 counts all.
    :param lovasz_weight: of the Lovasz-softmax loss added to the cross-entropy, which counts
        classes by their IoU and not by their pixels.
    :param splits: of the data set that are trained on; with ``val`` among them nothing is left to
        validate on.
    :param drawn_share: drawn road scenes a picture, e.g. 0.08; only for the CamVid classes.
    :param class_terms: what is added to the cross-entropy, one of ``CLASS_TERMS``.
    :param intra_weight: of the term that draws the pixels of a class together.
    :param inter_weight: of the term that drives the classes apart.
    :param margin: distance that two conditioned centres are to have; that of two classes which
        are always told apart is sqrt(2).
    :param terms_warmup_steps: steps in which both weights rise from 0.
    :param precision: of the network's arithmetic, one of ``PRECISIONS``; weights and losses are
        float32 always.
    :param validate_every: epochs between validations; the last epoch always is.
    :param seed: of initial weights, order and augmentation.
    :param augmentation: the random views.
    """

    architecture: str = 'asymmetric'
    arguments: Mapping[str, Any] = field(default_factory=dict)
    epochs: int = 100
    batch: int = 8
    learning_rate: float = 2e-3
    weight_decay: float = 0.02
    warmup_steps: int = 200
    ema: float = 0.995
    class_balance: float = 0.5
    hard_share: float = 1.0
    lovasz_weight: float = 0.0
    splits: tuple[str, ...] = ('train',)
    drawn_share: float = 0.0
    class_terms: str = 'none'
    intra_weight: float = 0.01
    inter_weight: float = 0.01
    margin: float = 1.0
    terms_warmup_steps: int = 500
    precision: str = 'float32'
    validate_every: int = 1
    seed: int = 0
    augmentation: Augmentation = field(default_factory=Augmentation)

    def __post_init__(self) -> None:
        limits = {'epochs': (1, 100_000), 'batch': (1, 4096), 'learning_rate': (0, 10),
                  'weight_decay': (0, 1), 'warmup_steps': (0, 1_000_000),
                  'ema': (0, 0.99999), 'class_balance': (0, 2),
                  'drawn_share': (0, 10), 'validate_every': (1, 100_000), 'seed': (0, 2**31),
                  'hard_share': (0.001, 1), 'lovasz_weight': (0, 100), 'intra_weight': (0, 100),
                  'inter_weight': (0, 100), 'margin': (0, 1.4142),
                  'terms_warmup_steps': (0, 1_000_000)}
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not low <= value <= high:
                raise ConfigError(f'{name} {value!r}: expected {low} to {high}')
        if not self.splits or not all(type(split) is str for split in self.splits):
            raise ConfigError(f'splits {list(self.splits)!r}: expected names of splits, such as '
                              '[train] or [train, val]')
        for name, known in (('class_terms', CLASS_TERMS), ('precision', PRECISIONS)):
            if getattr(self, name) not in known:
                raise ConfigError(f'{name} {getattr(self, name)!r}: expected {", ".join(known)}')
        self._complete_arguments()

    def _complete_arguments(self) -> None:
        if self.architecture not in NETWORKS:
            raise unknown_name('architecture', self.architecture, NETWORKS)
        defaults = default_arguments(self.architecture)
        for name in self.arguments:
            if name == 'classes':
                raise ConfigError('arguments.classes: is the number of labels; leave it out')
            if name not in defaults:
                raise unknown_name('key', name, defaults, 'arguments.')
        object.__setattr__(self, 'arguments', {**defaults, **self.arguments})
        try:
            with torch.device('meta'):  # shapes only: nothing is allocated
                build_network(self.architecture, {**self.arguments, 'classes': 2})
        except ConfigError as error:
            raise ConfigError(f'arguments: {error}') from error

    def expect_classes(self, labels: LabelSet) -> None:
        """Refuse what this recipe cannot do with the classes of a data set.

        :raises ConfigError: drawn scenes with other classes than theirs.
        """
        if self.drawn_share and labels != CAMVID:
            raise ConfigError('drawn_share: drawn scenes have the CamVid classes, this data set '
                              f'has {", ".join(labels.names)}; set drawn_share to 0')


def load_recipe(path: Path) -> Recipe:
    """Read a recipe.

    :raises ConfigError: unreadable, not a mapping, an unknown key, or a value out of range.
    """
    values = read_yaml(path, 'the path of a recipe, e.g. config/train_camvid.yaml')
    try:
        return _from_mapping(Recipe, values, '')
    except ConfigError as error:
        raise ConfigError(f'{path.resolve()}: {error}') from error
    except (ValueError, RecursionError) as error:  # a value too large to be written into a message
        raise ConfigError(f'{path.resolve()}: is no YAML: {error}') from error


def _from_mapping(cls: type, values: Any, where: str) -> Any:
    if not isinstance(values, Mapping):
        raise ConfigError(f'{where.rstrip(".") or "the file"}: expected "key: value" lines, '
                          f'got {values!r}')
    fields = {f.name: f for f in dataclasses.fields(cls)}
    arguments = {}
    for key, value in values.items():
        if key not in fields:
            raise unknown_name('key', key, fields, where)
        arguments[key] = _convert(fields[key], value, f'{where}{key}')
    return cls(**arguments)


def _convert(target: dataclasses.Field, value: Any, where: str) -> Any:
    if target.name == 'augmentation':
        return _from_mapping(Augmentation, value, f'{where}.')
    if target.type is float and type(value) is int:
        return float(value)
    for expected in (int, float, str):
        if target.type is expected and type(value) is not expected:
            raise ConfigError(f'{where}: expected {expected.__name__}, got {value!r}')
    if target.name == 'arguments' and not isinstance(value, Mapping):
        raise ConfigError(f'{where}: expected a mapping of arguments, got {value!r}')
    if target.name == 'splits':
        if not isinstance(value, list):
            raise ConfigError(f'{where}: expected a list of names, got {value!r}')
        return tuple(value)
    if target.name in ('crop', 'scale'):
        if not isinstance(value, list) or len(value) != 2 or not all(
                type(number) in (int, float) for number in value):
            raise ConfigError(f'{where}: expected a list of two numbers, got {value!r}')
        return tuple(value)
    return value


def to_mapping(recipe: Recipe) -> dict[str, Any]:
    """Plain values for YAML and JSON; reading them back gives the same recipe."""
    values = dataclasses.asdict(recipe)
    values['splits'] = list(values['splits'])
    for name in ('crop', 'scale'):
        values['augmentation'][name] = list(values['augmentation'][name])
    return values


def with_changes(recipe: Recipe, changes: Any, where: str) -> Recipe:
    """Replace some values of a recipe; those of a nested mapping one by one, too.

    With another architecture those arguments stay that both networks have.

    :param where: what the changes are called in messages.
    :raises ConfigError: an unknown key, or a value out of range.
    """
    if not isinstance(changes, Mapping):
        raise ConfigError(f'{where}: expected "key: value" lines, got {changes!r}')
    values = to_mapping(recipe)
    architecture = changes.get('architecture', recipe.architecture)
    if architecture != recipe.architecture and architecture in [*NETWORKS]:
        values['arguments'] = {name: value for name, value in recipe.arguments.items()
                               if name in default_arguments(architecture)}
    try:
        return _from_mapping(Recipe, _merged(values, changes), '')
    except ConfigError as error:
        raise ConfigError(f'{where}: {error}') from error


def _merged(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(values)
    for key, change in changes.items():
        both = isinstance(change, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merged(merged[key], change) if both else change
    return merged
