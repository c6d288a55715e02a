"""Model files: one ``.safetensors`` with weights and all that is needed to use them.

The header's metadata holds one key, ``seg_ros``: JSON with format version, architecture and its
arguments, classes, input statistics, training size, provenance and a SHA-256 over all of these
and the tensors.
What crosses from training to the node is this file, so names, colours and normalisation cannot
drift apart. Nothing is ever unpickled. An exported file (``onnx_file``) is read by the same
function and can be run, but not trained further.
"""

import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from seg_ros.errors import ConfigError, ModelFileError
from seg_ros.files import read_start, written_whole
from seg_ros.model_spec import (
    METADATA_KEY,
    ModelSpec,
    begin_digest,
    read_spec,
    read_values,
    to_values,
)
from seg_ros.onnx_file import read_onnx

MAX_HEADER_BYTES = 1_000_000
LONGEST_REFUSAL = 1000  # characters
MAX_FILE_BYTES = 256_000_000  # a recording given by mistake must not fill the memory
WEIGHTS = Path(__file__).parent / 'weights'
DEFAULT_MODEL = WEIGHTS / 'asymmetric_camvid.safetensors'


@dataclass(frozen=True)
class Model:
    """A trained network with its specification.

    :param trained: the network, in evaluation mode, float32 on the CPU; None where the file
        holds its exported graph instead.
    :param onnx: such a file's content.
    :param precision: 'int8' where such a graph is quantised.
    """

    trained: nn.Module | None
    spec: ModelSpec
    path: Path | None = None
    onnx: bytes | None = None
    precision: str = 'float32'

    @property
    def network(self) -> nn.Module:
        """The trained network.

        :raises ModelFileError: the file holds only the exported graph.
        """
        if self.trained is None:
            raise ModelFileError(f'{self.path}: holds an exported graph, which only the engines '
                                 'openvino and onnxruntime run; give the .safetensors file that '
                                 'it was exported from')
        return self.trained


def save_model(path: Path, network: nn.Module, spec: ModelSpec) -> None:
    """Write a model file: whole or not at all.

    :raises ModelFileError: the folder does not exist or cannot be written.
    """
    tensors = {name: tensor.detach().cpu().contiguous()
               for name, tensor in network.state_dict().items()}
    values = to_values(spec)
    values['sha256'] = digest(values, tensors)
    try:
        with written_whole(path) as beside:
            beside.write_bytes(save_tensors(tensors, {METADATA_KEY: json.dumps(values)}))
    except OSError as error:
        raise ModelFileError(f'{path.resolve()}: cannot be written: {error.strerror}; '
                             'give another folder or free some space') from error


def shipped_models() -> dict[str, Path]:
    """Model files that ship, by their names."""
    return {file.stem: file for file in sorted(WEIGHTS.glob('*.safetensors'))}


def model_help() -> str:
    """What a command's option for a model takes."""
    default, *others = shipped_models()
    return (f'model file, or the name of one that ships: {default} (default), '
            f'{", ".join(others)}')


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
        said = textwrap.shorten(str(error), LONGEST_REFUSAL)  # it may quote a whole header
        raise ModelFileError(f'{path.resolve()}: {said}') from error
    except RecursionError as error:
        raise ModelFileError(f'{path.resolve()}: its metadata is nested too deeply; give a file '
                             'that seg_train wrote') from error


def _load(path: Path) -> Model:
    data = _read_bytes(path)
    if path.suffix.lower() == '.onnx':
        spec, precision = read_onnx(data)
        return Model(None, spec, path.resolve(), data, precision)
    values = _read_metadata(data)
    try:
        tensors = load_tensors(data)
    except (SafetensorError, ValueError, KeyError, TypeError, ArithmeticError,
            RuntimeError) as error:
        reason = str(error).partition('\n')[0]  # torch adds its call stack
        raise ModelFileError(f'is truncated or damaged ({reason}); copy it again') from error
    if digest(values, tensors) != values.get('sha256'):
        raise ModelFileError('its content does not match the checksum in its header: the bytes '
                             'were changed; copy it again')
    spec = read_spec(values)
    return Model(_fill(spec, tensors), spec, path.resolve())


def _read_bytes(path: Path) -> bytes:
    try:
        data = read_start(path, MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise ModelFileError('no such model file; give the path of a .safetensors file that '
                             'seg_train wrote, of an .onnx file that seg_export wrote, or the '
                             f'name of one that ships: {", ".join(shipped_models())}') from error
    except OSError as error:
        raise ModelFileError(f'cannot be read: {error.strerror}; give a readable file') from error
    if len(data) > MAX_FILE_BYTES:
        raise ModelFileError(f'is larger than {MAX_FILE_BYTES} bytes: not a model of this '
                             'package; give a file that seg_train or seg_export wrote')
    return data


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
    return read_values(text)


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


def digest(values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over all metadata but itself, and name, type, shape and bytes of every tensor."""
    total = begin_digest(values)
    for name in sorted(tensors):
        tensor = tensors[name]
        total.update(f'{name} {tensor.dtype} {tuple(tensor.shape)}\n'.encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()
