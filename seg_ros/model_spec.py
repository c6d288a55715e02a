"""What a network is and how its input and output are to be read: the header of a model file."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import nn

from seg_ros.errors import ConfigError, ModelFileError
from seg_ros.labels import UNKNOWN, LabelSet
from seg_ros.networks import build_network

FORMAT_VERSION = 1
METADATA_KEY = 'seg_ros'


@dataclass(frozen=True)
class ModelSpec:
    """What a network is and how its input and output are to be read.

    :param architecture: a key of ``seg_ros.networks.NETWORKS``.
    :param arguments: its constructor's arguments without ``classes``.
    :param labels: classes in the order of the output channels.
    :param mean: of the training pictures' R, G, B, 0..255; subtracted from the input.
    :param std: standard deviation of R, G, B; divides the input.
    :param training_size: height and width of the pictures that the network was trained for.
    :param provenance: data, recipe, epochs, commit, validation scores; JSON values.
    """

    architecture: str
    arguments: Mapping[str, Any]
    labels: LabelSet
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    training_size: tuple[int, int]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ('mean', 'std'):
            values = getattr(self, name)
            if len(values) != 3 or not all(
                    isinstance(value, int | float) and type(value) is not bool
                    and 0 <= value <= 255 for value in values):
                raise ConfigError(f'{name} {values!r}: expected three numbers, 0 to 255')
        if not all(value > 0 for value in self.std):
            raise ConfigError(f'std {self.std!r}: must be above 0')
        if len(self.training_size) != 2 or not all(
                type(side) is int and 32 <= side <= 8192 for side in self.training_size):
            raise ConfigError(f'training size {self.training_size!r}: expected height and width, '
                              '32 to 8192')
        if 'classes' in self.arguments:
            raise ConfigError('arguments: "classes" is the number of labels; leave it out')

    def build(self) -> nn.Module:
        """Build the network, untrained."""
        return build_network(self.architecture, {**self.arguments, 'classes': len(self.labels)})


def to_values(spec: ModelSpec) -> dict[str, Any]:
    """Values of a header, as JSON reads them back: its checksum is over that."""
    values = asdict(spec)
    values['labels'] = spec.labels.to_dict()
    values.update(format_version=FORMAT_VERSION, unknown_id=UNKNOWN)
    return json.loads(json.dumps(values))


def read_values(text: str) -> dict[str, Any]:
    """Values of a header of this version.

    :raises ModelFileError: the text is none; the message does not name the file.
    """
    try:
        values = json.loads(text)
    except (ValueError, TypeError) as error:
        raise ModelFileError('its metadata is no JSON; copy it again') from error
    version = values.get('format_version') if isinstance(values, dict) else None
    if type(version) is not int or version != FORMAT_VERSION:
        raise ModelFileError(f'has format version {version!r}, this package reads '
                             f'{FORMAT_VERSION}; update seg_ros or make the file again')
    return values


def read_spec(values: Mapping[str, Any]) -> ModelSpec:
    """Read what :func:`to_values` wrote.

    :raises ModelFileError: a value is missing or cannot be used.
    """
    try:
        if values['unknown_id'] != UNKNOWN:
            raise ConfigError(f'unknown id {values["unknown_id"]!r}: expected {UNKNOWN}')
        return ModelSpec(values['architecture'], dict(values['arguments']),
                         LabelSet.from_dict(values['labels']),
                         tuple(values['mean']), tuple(values['std']),
                         tuple(values['training_size']), dict(values['provenance']))
    except (KeyError, TypeError, ValueError, ConfigError) as error:
        raise ModelFileError(f'its metadata cannot be used ({type(error).__name__}: {error}); '
                             'copy it again or make it again') from error


def begin_digest(values: Mapping[str, Any]) -> Any:
    """SHA-256 over all of a header but itself; the content is to be added."""
    covered = {key: value for key, value in values.items() if key != 'sha256'}
    return hashlib.sha256(json.dumps(covered, sort_keys=True).encode())


def input_size(spec: ModelSpec, height: int, width: int) -> tuple[int, int]:
    """Size at which a picture of this size is best given to the network.

    It keeps the picture's aspect ratio at about the area that the network was trained for, in
    multiples of 8, 32 at least. A picture so narrow that this would more than double the area
    is squeezed lengthwise instead.
    """
    area = math.prod(spec.training_size)
    scale = math.sqrt(area / (height * width))
    longest = 2 * area // 32 // 8 * 8
    return (min(max(32, 8 * round(height * scale / 8)), longest),
            min(max(32, 8 * round(width * scale / 8)), longest))
