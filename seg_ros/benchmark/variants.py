"""What is measured: a network, how it runs, and on which pictures."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from seg_ros.errors import ConfigError
from seg_ros.inference.deploy import FOLDS
from seg_ros.inference.engines import ENGINES, PRECISIONS
from seg_ros.model_file import find_model
from seg_ros.sizes import EXPECTED, read_size

DABNET = 'dabnet'
PLAIN = 'plain'
TUTORIALS_QUEUE = 10  # what the tutorials of ROS give to a subscription
OUTPUTS = ('labels', 'overlay', 'confidence')
ALL_FOLDS = list(FOLDS)[-1]


@dataclass(frozen=True)
class Variant:
    """One way to label pictures.

    :param model: file, name of one that ships ('' is the default), or ``DABNET``.
    :param engine: as in ``seg_ros.inference.engines``, like device and precision.
    :param threads: of the network on the CPU; 0 is the engine's choice.
    :param batch: pictures labelled at once.
    :param size: height and width of the pictures.
    :param network_size: at which the network sees them; None is what a node would choose.
    :param outputs: that somebody listens to, of ``OUTPUTS``.
    :param folds: the last of ``seg_ros.inference.deploy.FOLDS`` that the network gets, or 'none'.
    :param plain: pictures that wait for the plain node (``seg_ros.benchmark.plain_node``), which
        then runs instead of ours; 0 is ours.
    """

    model: str = ''
    engine: str = 'auto'
    device: str = 'auto'
    precision: str = 'auto'
    threads: int = 0
    batch: int = 1
    size: tuple[int, int] = (480, 640)
    network_size: tuple[int, int] | None = None
    outputs: tuple[str, ...] = ('labels',)
    folds: str = ALL_FOLDS
    plain: int = 0

    @property
    def name(self) -> str:
        """What it is called in results; without what all else says."""
        name = self.model if self.model == DABNET else find_model(self.model).stem
        return f'{PLAIN} node, queue of {self.plain}, {name}' if self.plain else name


@dataclass(frozen=True)
class Setting:
    """Something that variants may differ in: an option, and a key of ``--compare``.

    :param name: of the field of ``Variant``.
    :param read: text to the field's value; raises ConfigError that says what was expected.
    :param show: the field's value to text.
    """

    name: str
    metavar: str
    description: str
    read: Callable[[str], Any] = str
    show: Callable[[Any], str] = str

    @property
    def option(self) -> str:
        return '--' + self.name.replace('_', '-')

    @property
    def default(self) -> Any:
        return next(field.default for field in fields(Variant) if field.name == self.name)


def parse_size(text: str) -> tuple[int, int]:
    """Read ``WIDTHxHEIGHT`` as (height, width).

    :raises ConfigError: it is not one, or out of range.
    """
    size = read_size(text)
    if size is None:
        raise ConfigError(f'expected {EXPECTED}')
    return size


def show_size(size: tuple[int, int] | None) -> str:
    """(height, width) as ``WIDTHxHEIGHT``; None is the node's own choice."""
    return 'auto' if size is None else f'{size[1]}x{size[0]}'


def _number(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise ConfigError(f'expected a whole number from {low} to {high}')
        return int(text)
    return read


def _one_of(choices: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ConfigError(f'expected one of {", ".join(choices)}')
        return text
    return read


def _parse_outputs(text: str) -> tuple[str, ...]:
    names = text.split('+')
    if len(set(names)) != len(names) or not set(names) <= set(OUTPUTS):
        raise ConfigError(f'expected some of {", ".join(OUTPUTS)}, joined by +')
    return tuple(name for name in OUTPUTS if name in names)


def _parse_model(text: str) -> str:
    if text != DABNET and not find_model(text).is_file():
        raise ConfigError(f'no such model file; give one that seg_train wrote, the name of one '
                          f'that ships, or {DABNET}')
    return text


SETTINGS = {setting.name: setting for setting in (
    Setting('model', 'F', 'model files, or names of those that ship; dabnet: the comparison '
            'network, with random weights', _parse_model),
    Setting('engine', 'E', f'engines: {", ".join(ENGINES)}', _one_of(ENGINES)),
    Setting('device', 'D', 'auto, cpu, cuda, cuda:1, ...'),
    Setting('precision', 'P', f'arithmetic: {", ".join(PRECISIONS)}', _one_of(PRECISIONS)),
    Setting('threads', 'N', "CPU threads of the network; 0: the engine's choice",
            _number(0, 1024)),
    Setting('batch', 'N', 'pictures labelled at once', _number(1, 1024)),
    Setting('size', 'WxH', 'sizes of the pictures', parse_size, show_size),
    Setting('network_size', 'WxH', "sizes at which the network sees them (default: the node's "
            'choice)', parse_size, show_size),
    Setting('outputs', 'NAMES', 'outputs that are listened to, joined by +: '
            f'{", ".join(OUTPUTS)}', _parse_outputs, '+'.join),
    Setting('folds', 'LAST', 'what is folded into the weights before the network runs, up to: '
            f'none, {", ".join(FOLDS)}', _one_of(('none', *FOLDS))))}


def cross(values: Mapping[str, Sequence[Any]]) -> list[Variant]:
    """All combinations.

    :param values: of fields of ``Variant``; those of the last field change fastest.
    """
    return [Variant(**dict(zip(values, combination, strict=True)))
            for combination in itertools.product(*values.values())]


def parse_variant(text: str, defaults: Variant) -> Variant:
    """Read a variant of ``--compare``: ``model=dabnet,threads=1``, or with ``plain``, alone or as
    ``plain=1`` with the length of its queue.

    :param defaults: what is not said.
    :raises ConfigError: an unknown key, one given twice, or a value that cannot be used.
    """
    changes: dict[str, Any] = {}
    for part in text.split(','):
        key, equals, value = part.partition('=')
        if key in changes:
            raise ConfigError(f'--compare {text}: {key} is given twice')
        if key == PLAIN:
            changes[PLAIN] = (_read(_number(1, 1000), value, f'--compare {text}: {PLAIN}')
                              if equals else TUTORIALS_QUEUE)
        elif equals and key in SETTINGS:
            changes[key] = _read(SETTINGS[key].read, value, f'--compare {text}: {key}')
        else:
            raise ConfigError(f'--compare {text}: {part!r} is neither {PLAIN} nor KEY=VALUE with '
                              f'a KEY of {", ".join(SETTINGS)}')
    return replace(defaults, **changes)


def read_setting(setting: Setting, text: str) -> Any:
    """Read a value of an option.

    :raises ConfigError: it cannot be used.
    """
    return _read(setting.read, text, setting.option)


def _read(read: Callable[[str], Any], text: str, where: str) -> Any:
    try:
        return read(text)
    except ConfigError as error:
        raise ConfigError(f'{where} {text!r}: {error}') from error
