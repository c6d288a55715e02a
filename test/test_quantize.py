"""Quantised models, and seg_quantize, run as from the command line."""

import sys
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
import torch
import yaml
from onnx import TensorProto
from random_models import random_model

from seg_ros.drawn_scene import DrawnScene
from seg_ros.errors import ConfigError
from seg_ros.inference.deploy import DeployedNetwork
from seg_ros.inference.engines import create_engine
from seg_ros.inference.int8 import for_precision
from seg_ros.inference.onnx_graph import export_graph
from seg_ros.inference.quantize import quantise
from seg_ros.labels import CAMVID
from seg_ros.model_file import Model, load_model, save_model
from seg_ros.onnx_file import sign_onnx
from seg_ros.training import quantize

MODEL = random_model()
SCENE = DrawnScene(3, 96, 64)
PICTURES = [SCENE.frame(time_s)[0] for time_s in (0.0, 2.0, 4.0)]
CONTENT = quantise(MODEL, PICTURES)


@pytest.fixture
def files(tmp_path):
    """Folder with a model file, its int8 file beside it, and a folder of pictures."""
    save_model(tmp_path / 'tiny.safetensors', MODEL.network, MODEL.spec)
    (tmp_path / 'tiny_int8.onnx').write_bytes(CONTENT)
    (tmp_path / 'pictures').mkdir()
    for index, rgb in enumerate(PICTURES):
        cv2.imwrite(str(tmp_path / 'pictures' / f'{index}.png'), rgb[..., ::-1])
    return tmp_path


def quantised_model(files) -> Model:
    return load_model(files / 'tiny_int8.onnx')


def test_quantised_file_says_so_and_is_of_the_same_model(files):
    model = quantised_model(files)
    assert (model.precision, model.spec) == ('int8', MODEL.spec)
    onnx.checker.check_model(str(model.path), full_check=True)


@pytest.mark.parametrize('engine', ['onnxruntime', 'openvino'])
def test_int8_labels_alike_where_one_class_is_clearly_ahead(files, engine):
    pytest.importorskip(engine)
    unseen = SCENE.frame(3.0)[0][None]
    logits = DeployedNetwork(MODEL).logits(torch.from_numpy(unseen))
    highest, second = logits.topk(2, dim=1).values.unbind(1)
    clear = (highest - second > 0.1).numpy()  # random weights leave most classes close together
    assert clear.mean() > 0.2, 'the comparison would say nothing'
    running = create_engine(quantised_model(files), engine, 'cpu')
    assert (running.name, running.precision) == (engine, 'int8')
    labels, _ = running.infer(unseen)
    assert (labels == logits.argmax(dim=1).numpy())[clear].mean() >= 0.95


def test_convolutions_of_maps_are_quantised_and_what_int8_harms_is_not():
    graph = onnx.ModelProto.FromString(CONTENT).graph
    made_by = {output: node for node in graph.node for output in node.output}
    kinds = {tensor.name: tensor.data_type for tensor in graph.initializer}
    quantised, in_float = set(), set()
    for node in graph.node:
        if node.op_type == 'Conv':
            weight = made_by.get(node.input[1])
            is_int8 = (weight is not None and weight.op_type == 'DequantizeLinear'
                       and kinds[weight.input[0]] == TensorProto.INT8)
            (quantised if is_int8 else in_float).add(node.name.rpartition('/network/')[2])
    assert {'stem/stem.0/stem.0.0/Conv', 'classify/Conv',
            'stage3/stage3.0/reduce/reduce.0/Conv'} <= quantised
    assert {'stage3/stage3.0/attention/squeeze/Conv', 'stage3/stage3.0/attention/excite/Conv',
            'fuse1/attention/Conv'} <= in_float
    assert len(quantised) > len(in_float)
    assert not {'TopK', 'Exp'} & {user.op_type for node in graph.node for user in graph.node
                                  if node.op_type == 'DequantizeLinear'
                                  and node.output[0] in user.input}


def test_same_pictures_give_the_same_file_by_the_model_or_its_exported_file():
    exported = Model(None, MODEL.spec, onnx=sign_onnx(export_graph(MODEL), MODEL.spec, 'float32'))
    assert quantise(exported, PICTURES) == CONTENT


def test_quantised_model_is_not_quantised_again(files):
    with pytest.raises(ConfigError, match='is quantised already'):
        quantise(quantised_model(files), PICTURES)


def test_precision_int8_takes_the_file_beside_the_model(files):
    model = load_model(files / 'tiny.safetensors')
    assert for_precision(model, 'int8').path == files / 'tiny_int8.onnx'
    for precision in ('auto', 'float32', 'bfloat16'):
        assert for_precision(model, precision) is model
    quantised = quantised_model(files)
    for precision in ('auto', 'int8'):
        assert for_precision(quantised, precision) is quantised


def test_precision_int8_without_its_file_names_the_command(files):
    (files / 'tiny_int8.onnx').unlink()
    with pytest.raises(ConfigError, match='is not there; make it with: seg_quantize') as caught:
        for_precision(load_model(files / 'tiny.safetensors'), 'int8')
    assert f'--model {files}/tiny.safetensors --out {files}/tiny_int8.onnx' in str(caught.value)
    with pytest.raises(ConfigError, match='has not been quantised'):
        for_precision(MODEL, 'int8')


def test_int8_file_of_another_model_is_refused(files):
    save_model(files / 'tiny.safetensors', MODEL.network,
               random_model(training_size=(96, 128)).spec)
    with pytest.raises(ConfigError, match='was not made of .*tiny.safetensors as it is now'):
        for_precision(load_model(files / 'tiny.safetensors'), 'int8')


def test_float32_of_an_int8_file_is_refused(files):
    with pytest.raises(ConfigError, match='is quantised to int8; leave the precision at auto'):
        for_precision(quantised_model(files), 'float32')


def test_pictures_are_taken_evenly_from_the_first_to_the_last():
    files = [Path(str(index)) for index in range(10)]
    assert [int(str(file)) for file in quantize.spread(files, 4)] == [0, 3, 6, 9]
    assert quantize.spread(files, 10) == quantize.spread(files, 99) == files


@pytest.fixture
def run(files, monkeypatch):
    """Run the command; return its exit code."""
    def run(*arguments, out='new.onnx') -> int:
        monkeypatch.setattr(sys, 'argv', [
            'seg_quantize', '--model', str(files / 'tiny.safetensors'), '--out', str(files / out),
            *map(str, arguments)])
        return quantize.main()
    return run


def test_command_writes_the_file_of_the_pictures(run, files, capsys):
    assert run(files / 'pictures') == 0
    assert (files / 'new.onnx').read_bytes() == CONTENT
    assert f'{files}/new.onnx: int8, by 3 pictures' in capsys.readouterr().out


def write_data(root: Path, names=CAMVID.names) -> Path:
    """Labelled pictures, whose labels are what the model says of them."""
    for kind in ('images', 'labels'):
        (root / kind / 'val').mkdir(parents=True)
    labels, _ = DeployedNetwork(MODEL)(torch.from_numpy(np.stack(PICTURES)))
    for index, rgb in enumerate(PICTURES):
        cv2.imwrite(str(root / 'images' / 'val' / f'{index}.png'), rgb[..., ::-1])
        cv2.imwrite(str(root / 'labels' / 'val' / f'{index}.png'), labels[index].numpy())
    (root / 'classes.yaml').write_text(yaml.safe_dump({
        'names': list(names), 'colors': [[0, 0, 0]] * len(names)}))
    return root


@pytest.mark.parametrize(('most', 'code'), [(100.0, 0), (-100.0, 1)])
def test_both_models_are_compared_in_every_engine(run, files, monkeypatch, capsys, most, code):
    pytest.importorskip('openvino')
    monkeypatch.setattr(quantize, 'MAX_COST', most)
    assert run(files / 'pictures', '--data', write_data(files / 'data')) == code
    said = capsys.readouterr()
    assert ('int8 costs more than' in said.err) == bool(code)
    rows = {line.split()[0]: line.split() for line in said.out.splitlines()[-2:]}
    assert list(rows) == ['openvino', 'onnxruntime']
    for row in rows.values():
        miou, miou_int8, cost, alike = map(float, row[1:5])
        assert miou >= 99.5  # the labels are its own
        assert cost == pytest.approx(miou - miou_int8, abs=0.011)
        assert 50 <= alike < 100


def test_data_of_other_classes_is_refused_before_the_work(run, files, capsys):
    data = write_data(files / 'data', CAMVID.names[::-1])
    assert run(files / 'pictures', '--data', data) == 2
    assert 'the model tells Sky, Building' in capsys.readouterr().err
    assert not (files / 'new.onnx').exists()


@pytest.mark.parametrize(('arguments', 'said'), [
    (['pictures/9.png'], '9.png: cannot be read: No such file'),
    (['tiny.safetensors'], 'tiny.safetensors: cannot be read as a picture'),
    (['empty'], 'empty: no picture in this folder'),
    (['pictures', '--data', 'none'], 'none: no such folder')])
def test_pictures_that_cannot_be_used_are_refused(run, files, monkeypatch, capsys, arguments,
                                                  said):
    monkeypatch.chdir(files)
    (files / 'empty').mkdir()
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert said in error and not (files / 'new.onnx').exists()


def test_another_suffix_is_wrong_use(run, files, capsys):
    assert run(files / 'pictures', out='new.bin') == 2
    assert 'expected a name that ends in .onnx' in capsys.readouterr().err


def test_missing_package_is_said(run, files, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, 'seg_ros.inference.quantize')
    monkeypatch.setitem(sys.modules, 'onnxruntime.quantization', None)  # as if not installed
    assert run(files / 'pictures') == 2
    assert 'is not installed; install it with pip install' in capsys.readouterr().err
