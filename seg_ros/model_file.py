"""Model files: one ``.safetensors`` with weights and all that is needed to use them.

The header's metadata holds one key, ``seg_ros``: JSON with format version, architecture and its
arguments, classes, input statistics, training size, provenance and a SHA-256 over all of these
and the tensors.
What crosses from training to the node is this file, so names, colours and normalisation cannot
drift apart. Nothing is ever unpickled.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from seg_ros.errors import ConfigError, ModelFileError
from seg_ros.files import written_whole
from seg_ros.labels import UNKNOWN, LabelSet
from seg_ros.networks import build_network

FORMAT_VERSION = 1
METADATA_KEY = 'seg_ros'
MAX_HEADER_BYTES = 1_000_000
MAX_FILE_BYTES = 256_000_000  # a recording given by mistake must not fill the memory
WEIGHTS = Path(__file__).parent / 'weights'
DEFAULT_MODEL = WEIGHTS / 'asymmetric_camvid.safetensors'


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


@dataclass(frozen=True)
class Model:
    """A trained network, in evaluation mode, float32 on the CPU, with its specification."""

    network: nn.Module
    spec: ModelSpec
    path: Path | None = None


def save_model(path: Path, network: nn.Module, spec: ModelSpec) -> None:
    """Write a model file: whole or not at all.

    :raises ModelFileError: the folder does not exist or cannot be written.
    """
    tensors = {name: tensor.detach().cpu().contiguous()
               for name, tensor in network.state_dict().items()}
    values = asdict(spec)
    values['labels'] = spec.labels.to_dict()
    values.update(format_version=FORMAT_VERSION, unknown_id=UNKNOWN)
    values = json.loads(json.dumps(values))  # as they will be read: the checksum is over that
    values['sha256'] = _digest(values, tensors)
    try:
        with written_whole(path) as beside:
            beside.write_bytes(save_tensors(tensors, {METADATA_KEY: json.dumps(values)}))
    except OSError as error:
        raise ModelFileError(f'{path.resolve()}: cannot be written: {error.strerror}; '
                             'give another folder or free some space') from error


def shipped_models() -> dict[str, Path]:
    """Model files that ship, by their names."""
    return {file.stem: file for file in sorted(WEIGHTS.glob('*.safetensors'))}


def find_model(path: Path | str) -> Path:
    """File of a model: ``path``, unless it is '' or the name of one that ships."""
    return shipped_models().get(str(path), Path(path)) if str(path) else DEFAULT_MODEL


def load_model(path: Path | str = '') -> Model:
    """Read a model file.

    :param path: of the file, or the name of one that ships, without suffix; '' is the default.
    :raises ModelFileError: missing, truncated, changed, or not a model file of this package.
    """
    path = find_model(path)
    try:
        return _load(path)
    except ModelFileError as error:
        raise ModelFileError(f'{path.resolve()}: {error}') from error
    except RecursionError as error:
        raise ModelFileError(f'{path.resolve()}: its metadata is nested too deeply; give a file '
                             'that seg_train wrote') from error


def _load(path: Path) -> Model:
    try:
        with open(path, 'rb') as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise ModelFileError('no such model file; give the path of a .safetensors file that '
                             'seg_train wrote, or the name of one that ships: '
                             f'{", ".join(shipped_models())}') from error
    except OSError as error:
        raise ModelFileError(f'cannot be read: {error.strerror}; give a readable file') from error
    if len(data) > MAX_FILE_BYTES:
        raise ModelFileError(f'is larger than {MAX_FILE_BYTES} bytes: not a model of this '
                             'package; give a file that seg_train wrote')
    values = _read_metadata(data)
    try:
        tensors = load_tensors(data)
    except (SafetensorError, ValueError, KeyError, TypeError, ArithmeticError,
            RuntimeError) as error:
        reason = str(error).partition('\n')[0]  # torch adds its call stack
        raise ModelFileError(f'is truncated or damaged ({reason}); copy it again') from error
    if _digest(values, tensors) != values.get('sha256'):
        raise ModelFileError('its content does not match the checksum in its header: the bytes '
                             'were changed; copy it again')
    spec = _read_spec(values)
    return Model(_fill(spec, tensors), spec, path.resolve())


def _read_metadata(data: bytes) -> dict[str, Any]:
    size = int.from_bytes(data[:8], 'little')
    if len(data) < 8 or not 2 <= size <= min(MAX_HEADER_BYTES, len(data) - 8):
        raise ModelFileError(f'is not a whole safetensors file ({len(data)} bytes); give a file '
                             'that seg_train wrote, or copy it again')
    try:
        header = json.loads(data[8:8 + size])
        text = header['__metadata__'][METADATA_KEY]
    except ValueError as error:
        raise ModelFileError('is not a safetensors file: its header is no JSON; give a file '
                             'that seg_train wrote, or copy it again') from error
    except (KeyError, TypeError) as error:
        raise ModelFileError(f'has no "{METADATA_KEY}" metadata: not a model of this package; '
                             'give a file that seg_train wrote') from error
    try:
        values = json.loads(text)
    except (ValueError, TypeError) as error:
        raise ModelFileError('its metadata is no JSON; copy it again') from error
    version = values.get('format_version') if isinstance(values, dict) else None
    if type(version) is not int or version != FORMAT_VERSION:
        raise ModelFileError(f'has format version {version!r}, this package reads '
                             f'{FORMAT_VERSION}; update seg_ros or train again')
    return values


def _read_spec(values: dict[str, Any]) -> ModelSpec:
    try:
        if values['unknown_id'] != UNKNOWN:
            raise ConfigError(f'unknown id {values["unknown_id"]!r}: expected {UNKNOWN}')
        return ModelSpec(values['architecture'], dict(values['arguments']),
                         LabelSet.from_dict(values['labels']),
                         tuple(values['mean']), tuple(values['std']),
                         tuple(values['training_size']), dict(values['provenance']))
    except (KeyError, TypeError, ValueError, ConfigError) as error:
        raise ModelFileError(f'its metadata cannot be used ({type(error).__name__}: {error}); '
                             'copy it again or train again') from error


def _fill(spec: ModelSpec, tensors: dict[str, Tensor]) -> nn.Module:
    """Build the network with the file's tensors, after comparing names and shapes."""
    try:
        with torch.device('meta'):  # shapes only: what a header claims is never allocated
            expected = {name: (tuple(tensor.shape), tensor.dtype)
                        for name, tensor in spec.build().state_dict().items()}
    except ConfigError as error:
        raise ModelFileError(f'{error}; update seg_ros or train again') from error
    for name, (shape, dtype) in expected.items():
        if name not in tensors:
            raise ModelFileError(f'tensor {name} is missing; copy it again or train again')
        if tuple(tensors[name].shape) != shape:
            raise ModelFileError(f'tensor {name} has shape {tuple(tensors[name].shape)}, the '
                                 f'{spec.architecture} network needs {shape}; train again')
        if tensors[name].dtype != dtype:
            raise ModelFileError(f'tensor {name} is of type {tensors[name].dtype}, the '
                                 f'{spec.architecture} network needs {dtype}; train again')
    if surplus := sorted(tensors.keys() - expected.keys()):
        raise ModelFileError(f'tensor {surplus[0]} is no part of the {spec.architecture} '
                             'network; train again')
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise ModelFileError(f'tensor {name} holds NaN or infinity; train again')
    network = spec.build()
    network.load_state_dict(tensors)
    return network.eval()


def _digest(values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over all metadata but itself, and name, type, shape and bytes of every tensor."""
    covered = {key: value for key, value in values.items() if key != 'sha256'}
    digest = hashlib.sha256(json.dumps(covered, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f'{name} {tensor.dtype} {tuple(tensor.shape)}\n'.encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


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
