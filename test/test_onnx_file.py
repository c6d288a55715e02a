"""Exported model files: read back as written, run alike, and refused when they are not whole."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper
from random_models import random_model
from tiny_model import SPEC, refusal, tiny_network

from seg_ros.drawn_scene import DrawnScene
from seg_ros.errors import ModelFileError
from seg_ros.inference.deploy import DeployedNetwork
from seg_ros.inference.engines import create_engine
from seg_ros.inference.onnx_graph import export_graph, fixed_to, labels_only
from seg_ros.labels import CAMVID
from seg_ros.model_file import Model, load_model
from seg_ros.onnx_file import sign_onnx

GRAPH = export_graph(Model(tiny_network(), SPEC))
GOOD = sign_onnx(GRAPH, SPEC, 'float32')
STRIP = {'widths': [5, 16, 40], 'dilations2': [2], 'dilations3': [3], 'pooled': 4, 'hidden': 8}


def scenes(batch: int, height: int, width: int) -> np.ndarray:
    return np.stack([DrawnScene(5 + index, width, height).frame(2.0)[0] for index in range(batch)])


def by_onnxruntime(content: bytes, rgb: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(content, providers=['CPUExecutionProvider'])
    return session.run(None, {'rgb': rgb})


def by_openvino(content: bytes, rgb: np.ndarray) -> list[np.ndarray]:
    core = pytest.importorskip('openvino').Core()
    results = core.compile_model(core.read_model(content), 'CPU', {
        'INFERENCE_PRECISION_HINT': 'f32'})(rgb)
    return [results[index] for index in range(len(results))]


@pytest.mark.parametrize('architecture', ['asymmetric', 'strip'])
def test_one_exported_graph_labels_any_batch_and_size_like_torch(architecture):
    arguments = {} if architecture == 'asymmetric' else STRIP
    model = random_model(arguments, architecture=architecture)
    graph = export_graph(model)
    for shape in ((1, 120, 160), (3, 101, 75)):
        rgb = scenes(*shape)
        probability = DeployedNetwork(model)(torch.from_numpy(rgb))[1].numpy()
        logits = DeployedNetwork(model, torch.float64).logits(torch.from_numpy(rgb))
        (highest, second), expected = logits.topk(2, dim=1).values.unbind(1), logits.argmax(dim=1)
        clear = (highest - second > 1e-3).numpy()  # rounding decides on the others
        assert clear.mean() > 0.8 and len(np.unique(expected)) > 4, 'it would say nothing'
        for run in (by_onnxruntime, by_openvino):
            labels, confidence = run(graph, rgb)
            assert labels.dtype == confidence.dtype == np.uint8
            assert labels.shape == confidence.shape == shape
            assert (labels == expected.numpy())[clear].mean() >= 0.999
            assert np.abs(confidence.astype(int) - probability).max() <= 1


def test_graph_of_labels_alone_gives_the_same_labels():
    rgb = scenes(2, 64, 96)
    alone, = by_onnxruntime(labels_only(GOOD), rgb)
    assert np.array_equal(alone, by_onnxruntime(GOOD, rgb)[0])


def test_graph_fixed_to_a_shape_knows_all_shapes_and_labels_alike():
    fixed = fixed_to(GOOD, (2, 64, 96, 3))
    rgb = scenes(2, 64, 96)
    for one, other in zip(by_onnxruntime(fixed, rgb), by_onnxruntime(GOOD, rgb), strict=True):
        assert np.array_equal(one, other)
    shapes = {value.name: value.type.tensor_type.shape.dim for value in
              onnx.ModelProto.FromString(fixed).graph.value_info}
    maps = [node.output[0] for node in onnx.ModelProto.FromString(fixed).graph.node
            if node.op_type in ('Conv', 'Resize')]
    assert all(side.dim_value > 0 for name in maps for side in shapes[name])


def test_file_is_read_back_as_it_was_written(tmp_path):
    path = tmp_path / 'm.onnx'
    path.write_bytes(GOOD)
    model = load_model(path)
    assert (model.spec, model.precision, model.path) == (SPEC, 'float32', path.resolve())
    assert model.onnx == GOOD
    onnx.checker.check_model(str(path), full_check=True)


def test_exported_file_has_no_network_to_train_or_to_run_in_torch(tmp_path):
    path = tmp_path / 'm.onnx'
    path.write_bytes(GOOD)
    for use in (lambda model: model.network, export_graph,
                lambda model: create_engine(model, 'torch', 'cpu')):
        with pytest.raises(ModelFileError, match='holds an exported graph') as caught:
            use(load_model(path))
        assert str(path.resolve()) in str(caught.value)


def signed(graph: bytes, values: dict) -> bytes:
    """Content whose checksum is right, by the documented way, so that only `values` is wrong."""
    values = {key: value for key, value in values.items() if key != 'sha256'}
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode() + graph)
    text = json.dumps({**values, 'sha256': digest.hexdigest()})
    entry = onnx.StringStringEntryProto(key='seg_ros', value=text)
    return graph + onnx.ModelProto(metadata_props=[entry]).SerializeToString()


def metadata(content: bytes) -> dict:
    entry, = onnx.ModelProto.FromString(content).metadata_props
    assert entry.key == 'seg_ros'
    return json.loads(entry.value)


def refusal_of(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return refusal(path)


def test_signature_in_the_file_is_the_documented_one():
    assert signed(GRAPH, metadata(GOOD)) == GOOD
    assert metadata(GOOD)['labels']['names'] == ['Fahrbahn', 'Gehweg é', 'sky']
    assert metadata(GOOD)['precision'] == 'float32'


@pytest.mark.parametrize('version', [2, None, '1'])
def test_unknown_format_version_is_refused(tmp_path, version):
    content = signed(GRAPH, {**metadata(GOOD), 'format_version': version})
    assert f'format version {version!r}, this package reads 1; update' in refusal_of(
        tmp_path / 'm.onnx', content)


@pytest.mark.parametrize(('key', 'value'), [
    ('precision', 'int4'), ('precision', None), ('mean', [1, 2]), ('labels', None),
    ('unknown_id', 0)])
def test_metadata_of_the_wrong_kind_is_refused(tmp_path, key, value):
    refusal_of(tmp_path / 'm.onnx', signed(GRAPH, {**metadata(GOOD), key: value}))


def test_file_cut_anywhere_is_refused(tmp_path):
    for length in (*range(20), *range(20, len(GOOD), len(GOOD) // 97), len(GRAPH), len(GOOD) - 1):
        assert 'copy it again' in refusal_of(tmp_path / 'm.onnx', GOOD[:length]), length


def test_mutated_bytes_are_refused_or_change_nothing(tmp_path):
    random = np.random.default_rng(2024)
    path = tmp_path / 'm.onnx'
    refused = 0
    for trial in range(200):
        data = bytearray(GOOD)
        begin = len(GRAPH) if trial % 2 else 0  # every second one hits the metadata
        for position in random.integers(begin, len(data), 1 + trial % 3):
            data[position] ^= 1 << int(random.integers(8))
        path.write_bytes(data)
        try:
            assert load_model(path).spec == SPEC
        except ModelFileError as error:
            assert str(error).startswith(f'{path.resolve()}: ')
            refused += 1
    assert refused == 200


@pytest.mark.parametrize('content', [
    b'', b'\x89PNG\r\n\x1a\n' + bytes(100), b'text\n' * 99, bytes(1000), b'\xff' * 1000])
def test_other_files_are_refused(tmp_path, content):
    assert 'give a file that seg_export' in refusal_of(tmp_path / 'm.onnx', content)


def test_foreign_onnx_is_refused(tmp_path):
    assert 'not a model of this package' in refusal_of(tmp_path / 'm.onnx', GRAPH)


def test_longer_file_is_refused(tmp_path):
    more = onnx.ModelProto(doc_string='more').SerializeToString()
    assert 'checksum' in refusal_of(tmp_path / 'm.onnx', GOOD + more)


def graph_with(change) -> bytes:
    """Content with a changed graph and a right signature."""
    proto = onnx.ModelProto.FromString(GRAPH)
    change(proto)
    return signed(proto.SerializeToString(), metadata(GOOD))


def test_weights_in_other_files_are_never_opened(tmp_path):
    secret = tmp_path / 'secret'
    secret.write_bytes(bytes(4_000_000))

    def move_out(proto):
        tensor = proto.graph.initializer[0]
        tensor.ClearField('raw_data')
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key='location', value='secret')

    assert 'other files, which are never opened' in refusal_of(tmp_path / 'm.onnx',
                                                            graph_with(move_out))


def add_subgraph(proto):
    inner = helper.make_graph([], 'inner', [], [])
    proto.graph.node.append(helper.make_node('If', [], [], then_branch=inner, else_branch=inner))


@pytest.mark.parametrize(('change', 'said'), [
    (add_subgraph, 'subgraphs'),
    (lambda proto: proto.functions.append(helper.make_function('own', 'f', [], [], [], [])),
     'functions'),
    (lambda proto: proto.graph.node.append(
        helper.make_node('EPContext', [], [], domain='com.microsoft')), 'com.microsoft.EPContext'),
    (lambda proto: setattr(proto.graph.input[0], 'name', 'image'), r"takes ['image']"),
    (lambda proto: proto.graph.output.pop(), "gives ['labels']")])
def test_graph_that_is_none_of_ours_is_refused(tmp_path, change, said):
    assert said in refusal_of(tmp_path / 'm.onnx', graph_with(change))


def test_deep_nesting_is_refused(tmp_path):
    nest = '[' * 100_000 + ']' * 100_000
    entry = onnx.StringStringEntryProto(key='seg_ros', value=nest)
    content = GRAPH + onnx.ModelProto(metadata_props=[entry]).SerializeToString()
    refusal_of(tmp_path / 'm.onnx', content)


def test_endless_file_does_not_fill_the_memory(tmp_path):
    path = tmp_path / 'm.onnx'
    with open(path, 'wb') as file:
        file.truncate(10**12)  # takes no space on disk
    assert 'is larger than 256000000 bytes' in refusal(path)


def test_missing_file_says_what_to_give(tmp_path):
    assert 'that seg_export wrote' in refusal(tmp_path / 'none.onnx')


def test_missing_onnx_package_is_said(tmp_path, monkeypatch):
    (tmp_path / 'm.onnx').write_bytes(GOOD)
    monkeypatch.setitem(sys.modules, 'onnx', None)  # as if it were not installed
    assert 'install it with pip install onnx' in refusal(tmp_path / 'm.onnx')


def test_classes_of_the_metadata_are_those_of_the_model():
    assert metadata(sign_onnx(GRAPH, random_model().spec, 'int8'))['labels'] == CAMVID.to_dict()
