"""seg_export, run as from the command line."""

import resource
import sys

import numpy as np
import pytest
from random_models import random_model

from seg_ros.cli import export
from seg_ros.drawn_scene import DrawnScene
from seg_ros.inference.engines import create_engine
from seg_ros.model_file import load_model

MODEL = random_model()


@pytest.fixture
def run(model_file, monkeypatch):
    """Run the command; return its exit code."""
    def run(out, model=model_file) -> int:
        monkeypatch.setattr(sys, 'argv', ['seg_export', str(out), '--model', str(model)])
        return export.main()
    return run


def test_exported_file_runs_like_the_model_and_keeps_what_is_known_of_it(run, tmp_path, capsys):
    out = tmp_path / 'm.onnx'
    out.write_bytes(b'older')
    assert run(out) == 0
    exported = load_model(out)
    assert (exported.spec, exported.precision) == (MODEL.spec, 'float32')
    rgb = DrawnScene(5, 96, 64).frame(2.0)[0][None]
    assert np.array_equal(create_engine(exported, 'onnxruntime', 'cpu').infer(rgb)[0],
                          create_engine(MODEL, 'onnxruntime', 'cpu').infer(rgb)[0])
    said = capsys.readouterr().out
    assert f'{out.resolve()}: asymmetric, 11 classes' in said and f'-p model:={out}' in said
    assert [path.name for path in tmp_path.iterdir()] == ['m.onnx']


@pytest.mark.parametrize(('out', 'said'), [
    ('m.pt', 'expected a name that ends in .onnx'), ('m', 'expected a name that ends in .onnx'),
    ('none/m.onnx', 'none: no such folder; make it first'),
    ('folder.onnx', 'folder.onnx: is a folder')])
def test_place_that_cannot_be_written_is_said_before_the_work(run, tmp_path, capsys, out, said):
    (tmp_path / 'folder.onnx').mkdir()
    assert run(tmp_path / out, model=tmp_path / 'no model') == 2
    error = capsys.readouterr().err
    assert said in error and error.count('\n') == 1


def test_exported_file_cannot_be_exported_again(run, tmp_path, capsys):
    assert run(tmp_path / 'm.onnx') == 0
    assert run(tmp_path / 'n.onnx', model=tmp_path / 'm.onnx') == 2
    assert 'give the .safetensors file that it was exported from' in capsys.readouterr().err
    assert not (tmp_path / 'n.onnx').exists()


def test_full_disk_leaves_the_older_file(run, tmp_path, capsys):
    out = tmp_path / 'm.onnx'
    out.write_bytes(b'older')
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))  # as a full disk does
    try:
        assert run(out) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert 'File too large' in capsys.readouterr().err
    assert out.read_bytes() == b'older' and len(list(tmp_path.iterdir())) == 1


def test_missing_package_is_said(run, tmp_path, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, 'seg_ros.inference.onnx_graph')
    monkeypatch.setitem(sys.modules, 'onnx', None)  # as if it were not installed
    assert run(tmp_path / 'm.onnx') == 2
    assert 'onnx is not installed; install it with pip install onnx' in capsys.readouterr().err
