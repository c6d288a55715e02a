"""YAML files that people write: recipes, studies, label maps."""

import difflib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from seg_ros.errors import ConfigError
from seg_ros.files import read_start

MAX_BYTES = 100_000  # the longest that ships has 5,000; a megabyte takes seconds to be read


def read_yaml(path: Path, wanted: str) -> Any:
    """Read what a YAML file holds: plain values, never objects.

    :param wanted: what is to be given instead, for the message.
    :raises ConfigError: unreadable, too long, no YAML, or a key that occurs twice in a mapping.
    """
    try:
        data = read_start(path, MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f'{path.resolve()}: {error.strerror}; give {wanted}') from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f'{path.resolve()}: is longer than {MAX_BYTES} bytes; give {wanted}')
    try:
        text = data.decode('utf-8')
        _check_keys(yaml.compose(text, yaml.SafeLoader))
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # not UTF-8, no such date, ...
        raise ConfigError(f'{path.resolve()}: is no YAML: {error}') from error
    except ConfigError as error:
        raise ConfigError(f'{path.resolve()}: {error}') from error


def unknown_name(what: str, given: object, known: Collection[str], where: str = '') -> ConfigError:
    """Refuse a name with the nearest of those that are known.

    :param what: is named, such as 'key'.
    :param where: what stands before the name, such as the mapping that it is in.
    """
    name = str(given)[:60]
    near = nearest(name, known)
    return ConfigError(f'unknown {what} {where}{name}; did you mean {where}{near}? '
                       f'Known: {", ".join(known)}')


def nearest(name: str, known: Collection[str]) -> str:
    """Of the names that are known the one most like this one."""
    name = name[:200].lower()  # comparing takes the square of the length
    return max(known, key=lambda candidate: difflib.SequenceMatcher(
        None, candidate.lower(), name).ratio())


def _check_keys(root: yaml.Node | None) -> None:
    """Refuse a key that stands twice in one mapping: PyYAML would drop the first in silence."""
    ahead, seen = [root], set()
    while ahead:
        node = ahead.pop()
        if id(node) in seen:
            continue  # an alias
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            ahead += node.value
        elif isinstance(node, yaml.MappingNode):
            keys = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in keys:
                        raise ConfigError(f'line {key.start_mark.line + 1}: the key {key.value} '
                                          'stands there twice; leave one out')
                    keys.add(key.value)
                ahead += [key, value]
