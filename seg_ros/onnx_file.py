"""Exported model files: one ``.onnx`` with the deployed graph and all that is needed to use it.

The graph takes ``rgb`` and gives ``labels`` and ``confidence``, as
``seg_ros.inference.deploy.DeployedNetwork`` does, for any batch, height and width. The last field
of the file is one entry of ``metadata_props``, ``seg_ros``: JSON with what the header of a
``.safetensors`` model file holds, the precision, and a SHA-256 over these and all bytes before.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from seg_ros.errors import ModelFileError
from seg_ros.model_spec import (
    METADATA_KEY,
    ModelSpec,
    begin_digest,
    read_spec,
    read_values,
    to_values,
)

if TYPE_CHECKING:
    import onnx

PRECISIONS = ('float32', 'int8')
INPUTS, OUTPUTS = ['rgb'], ['labels', 'confidence']
REMEDY = 'give a file that seg_export or seg_quantize wrote, or copy it again'


def sign_onnx(graph: bytes, spec: ModelSpec, precision: str) -> bytes:
    """Content of an exported model file.

    :param graph: a serialised ONNX model without this metadata.
    :param precision: that it computes in, one of ``PRECISIONS``.
    """
    values = {**to_values(spec), 'precision': precision}
    values['sha256'] = _digest(values, graph)
    # Messages that follow one another are one message with the fields of both.
    return graph + _entry(json.dumps(values))


def read_onnx(data: bytes) -> tuple[ModelSpec, str]:
    """Specification and precision of an exported model file.

    :param data: its content. It is taken apart, never run.
    :raises ModelFileError: truncated, changed, or no such file; the message does not name it.
    """
    model = _parse(data)
    texts = [each.value for each in model.metadata_props if each.key == METADATA_KEY]
    if not texts:
        raise ModelFileError(f'has no "{METADATA_KEY}" metadata: not a model of this package or '
                             f'not a whole one; {REMEDY}')
    values = read_values(texts[-1])
    entry = _entry(texts[-1])
    if not data.endswith(entry) or (
            _digest(values, data[:-len(entry)]) != values.get('sha256')):
        raise ModelFileError('its content does not match the checksum in its metadata: the bytes '
                             'were changed; copy it again')
    _expect_plain(model.graph, bool(model.functions))
    precision = values.get('precision')
    if precision not in PRECISIONS:
        raise ModelFileError(f'is of precision {precision!r}, known are {", ".join(PRECISIONS)}; '
                             'update seg_ros or export it again')
    return read_spec(values), precision


def _parse(data: bytes) -> 'onnx.ModelProto':
    # Imported on demand: who runs .safetensors files does without it.
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise ModelFileError('is an ONNX file, and the onnx package is not installed; install it '
                             'with pip install onnx, or give a .safetensors file') from error
    try:
        return onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise ModelFileError(f'is not a whole ONNX file ({error}); {REMEDY}') from error


def _expect_plain(graph: 'onnx.GraphProto', has_functions: bool) -> None:
    """Refuse what no exported file holds, above all weights in other files."""
    names = [[each.name for each in values] for values in (graph.input, graph.output)]
    if names != [INPUTS, OUTPUTS]:
        raise ModelFileError(f'its graph takes {names[0]} and gives {names[1]}, expected '
                             f'{INPUTS} and {OUTPUTS}; {REMEDY}')
    for node in graph.node:
        if node.domain not in ('', 'ai.onnx'):  # some of those name files to be opened
            raise ModelFileError(f'its graph holds {node.domain}.{node.op_type}, expected only '
                                 f'operators of ONNX itself; {REMEDY}')
    if has_functions or graph.sparse_initializer or any(
            attribute.HasField('g') or attribute.graphs or attribute.HasField('sparse_tensor')
            or attribute.sparse_tensors for node in graph.node for attribute in node.attribute):
        raise ModelFileError('its graph holds functions, subgraphs or sparse tensors, expected '
                             f'none; {REMEDY}')
    if any(tensor.data_location or tensor.external_data for tensor in _tensors(graph)):
        raise ModelFileError(f'its weights lie in other files, which are never opened; {REMEDY}')


def _tensors(graph: 'onnx.GraphProto') -> Iterator['onnx.TensorProto']:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield attribute.t
            yield from attribute.tensors


def _entry(text: str) -> bytes:
    """Serialised metadata, as a field of its own."""
    import onnx
    entry = onnx.StringStringEntryProto(key=METADATA_KEY, value=text)
    return onnx.ModelProto(metadata_props=[entry]).SerializeToString()


def _digest(values: dict[str, Any], graph: bytes) -> str:
    digest = begin_digest(values)
    digest.update(graph)
    return digest.hexdigest()
