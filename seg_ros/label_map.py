"""Label maps: files by which a model's classes are published under other ids, names and colours.

A file has one entry for each class that is published::

    classes:
      - name: VEHICLE           # as it is published
        id: 7                   # 0 to 254
        color: [64, 0, 128]     # red, green, blue; left out: that of the first class in "from"
        from: [Car, Truck]      # classes of the model; left out: the one called as "name" says

Several classes of a model become one by standing in one entry; one that stands in none becomes
unknown (255).
"""

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seg_ros.errors import ConfigError
from seg_ros.labels import UNKNOWN, LabelSet
from seg_ros.yaml_files import read_yaml, unknown_name

ENTRY_KEYS = ('name', 'id', 'color', 'from')


@dataclass(frozen=True, eq=False)
class LabelMap:
    """What becomes of the classes of one model.

    :param labels: the classes that are published, in the order of the file.
    :param lookup: (256,) uint8, the published id of each id of the model; 255 for all others.
    :param unmapped: names of the model's classes that became unknown.
    """

    labels: LabelSet
    lookup: np.ndarray
    unmapped: tuple[str, ...]


@dataclass(frozen=True)
class _Entry:
    name: str
    id: int
    color: tuple[int, int, int]
    sources: tuple[str, ...]


def find_label_map(path: Path | str | None, labels: LabelSet,
                   tell: Callable[[str], object]) -> LabelMap | None:
    """Read the label map that a user may have named.

    :param path: None or '' for none.
    :param labels: the model's classes.
    :param tell: is told, in a line, which of them become unknown.
    :raises ConfigError: as of :func:`load_label_map`.
    """
    if not path:
        return None
    label_map = load_label_map(Path(path), labels)
    if label_map.unmapped:
        tell(f'{path}: of the classes of the model, {", ".join(label_map.unmapped)} become '
             'unknown')
    return label_map


def load_label_map(path: Path, labels: LabelSet) -> LabelMap:
    """Read a label map for a model.

    :param labels: the model's classes.
    :raises ConfigError: unreadable, an entry is not as described above, a class that the model
        does not have, or a class, id or name that stands in two entries.
    """
    values = read_yaml(path, 'the path of a label map, e.g. config/autoware.yaml')
    try:
        entries = [_read_entry(value, f'entry {number}', labels)
                   for number, value in enumerate(_read_list(values), 1)]
        _check_sources(entries)
        published = LabelSet(tuple(entry.name for entry in entries),
                             tuple(entry.color for entry in entries),
                             tuple(entry.id for entry in entries))
    except ConfigError as error:
        raise ConfigError(f'{path.resolve()}: {error}') from error
    except ValueError as error:  # a number too long to be written into a message
        raise ConfigError(f'{path.resolve()}: a number is too long: {error}') from error
    id_of = dict(zip(labels.names, labels.ids, strict=True))
    lookup = np.full(256, UNKNOWN, np.uint8)
    for entry in entries:
        lookup[[id_of[source] for source in entry.sources]] = entry.id
    mapped = {source for entry in entries for source in entry.sources}
    return LabelMap(published, lookup, tuple(name for name in labels.names if name not in mapped))


def _read_list(values: Any) -> list:
    if not isinstance(values, Mapping) or not isinstance(values.get('classes'), list):
        raise ConfigError(f'expected "classes:" and a list of entries, got {_short(values)}')
    for key in values:
        if key != 'classes':
            raise unknown_name('key', key, ('classes',))
    if not 2 <= len(values['classes']) <= UNKNOWN:
        raise ConfigError(f'{len(values["classes"])} entries: expected 2 to {UNKNOWN}')
    return values['classes']


def _read_entry(values: Any, where: str, labels: LabelSet) -> _Entry:
    if not isinstance(values, Mapping):
        raise ConfigError(f'{where}: expected {", ".join(ENTRY_KEYS)}, got {_short(values)}')
    for key in values:
        if key not in ENTRY_KEYS:
            raise ConfigError(f'{where}: {unknown_name("key", key, ENTRY_KEYS)}')
    name, id_ = values.get('name'), values.get('id')
    if type(name) is not str or not name:
        raise ConfigError(f'{where}: name {_short(name)}: expected text; set it in quotes if it '
                          'is a number or a word such as yes')
    if type(id_) is not int or not 0 <= id_ < UNKNOWN:
        raise ConfigError(f'{where} ({name[:60]}): id {_short(id_)}: expected a whole number from '
                          '0 to 254')
    sources = _read_sources(values.get('from', [name]), f'{where} ({name[:60]})', labels)
    color = values.get('color')
    if color is None:
        color = labels.colors[labels.names.index(sources[0])]
    elif type(color) is not list or len(color) != 3 or not all(
            type(part) is int and 0 <= part <= 255 for part in color):
        raise ConfigError(f'{where} ({name[:60]}): color {_short(color)}: expected [red, green, '
                          'blue], each 0 to 255')
    red, green, blue = color
    return _Entry(name, id_, (red, green, blue), sources)


def _read_sources(values: Any, where: str, labels: LabelSet) -> tuple[str, ...]:
    if not isinstance(values, list) or not values:
        raise ConfigError(f'{where}: from {_short(values)}: expected a list of classes of the '
                          f'model, such as [{labels.names[0]}]')
    for source in values:
        if source not in labels.names:
            shown = source if type(source) is str else _short(source)
            raise ConfigError(f'{where}: {unknown_name("class", shown, labels.names)}')
    return tuple(values)


def _check_sources(entries: list[_Entry]) -> None:
    seen: dict[str, str] = {}
    for entry in entries:
        for source in entry.sources:
            if source in seen:
                raise ConfigError(f'the class {source} goes to {seen[source]} and to '
                                  f'{entry.name}: leave one out')
            seen[source] = entry.name


def _short(value: Any) -> str:
    # YAML's aliases can nest lists so that they would never end when written out.
    return reprlib.repr(value)[:100]
