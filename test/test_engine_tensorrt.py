"""What the engine of ONNX Runtime does on a GPU, on the CPU in the place of CUDA and TensorRT."""

import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from random_models import random_model

from seg_ros.drawn_scene import DrawnScene
from seg_ros.errors import EngineError
from seg_ros.inference import engine_onnx
from seg_ros.inference.engines import create_engine
from seg_ros.inference.onnx_graph import export_graph
from seg_ros.model_file import Model

CPU, CUDA, TENSORRT = (f'{name}ExecutionProvider' for name in ('CPU', 'CUDA', 'Tensorrt'))
MODEL = random_model()
EXPORTED = Model(None, MODEL.spec, Path('/models/m.onnx'), export_graph(MODEL))
SCENE = DrawnScene(5, 96, 64).frame(2.0)[0][None]
LARGER = DrawnScene(5, 128, 96).frame(2.0)[0][None]


class Machine:
    """A machine with one GPU: its sessions say that they use it, and run on the CPU.

    :ivar opened: the first provider of each session, and whether it was opened.
    :ivar graphs: that they were opened for.
    :ivar refuses: providers that fail.
    :ivar lacks: providers that a session leaves out, and says nothing.
    :ivar said: what the engine announced, by whether it is a warning.
    """

    def __init__(self) -> None:
        self.opened: list[tuple[str, bool]] = []
        self.graphs: list[bytes] = []
        self.refuses: set[str] = set()
        self.lacks: set[str] = set()
        self.said: dict[bool, list[str]] = {True: [], False: []}

    def announce(self, message: str, *, warning: bool = True) -> None:
        self.said[warning].append(message)

    def open(self, graph: bytes, providers, threads: int) -> 'Session':
        first, options = providers[0]
        self.graphs.append(graph)
        self.opened.append((first, first not in self.refuses))
        if first in self.refuses:
            raise RuntimeError('[ONNXRuntimeError] : 11 : EP_FAIL :\nTensorRT EP failed')
        if 'trt_engine_cache_path' in options:
            engine = Path(options['trt_engine_cache_path']) / 'graph.engine'
            if engine.exists() and engine.read_bytes() != graph:
                raise RuntimeError('the engine cannot be read')
            engine.write_bytes(graph)
        names = [name for name, _ in providers if name not in self.lacks]
        return Session(onnxruntime.InferenceSession(graph, providers=[CPU]), names)


class Session:
    def __init__(self, session: onnxruntime.InferenceSession, providers: list[str]) -> None:
        self.run, self.providers = session.run, providers

    def get_providers(self) -> list[str]:
        return self.providers


@pytest.fixture
def machine(monkeypatch, tmp_path):
    machine = Machine()
    monkeypatch.setattr(engine_onnx, 'gpu_names', lambda: ['NVIDIA H200'])
    monkeypatch.setattr(onnxruntime, 'get_available_providers', lambda: [TENSORRT, CUDA, CPU])
    monkeypatch.setattr(engine_onnx, 'tensorrt_version', lambda: 100900)
    monkeypatch.setattr(engine_onnx, 'open_session', machine.open)
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
    return machine


def open_engine(machine: Machine, model: Model = MODEL, precision: str = 'auto'):
    return create_engine(model, 'onnxruntime', 'cuda', precision, announce=machine.announce)


def element_type(graph: bytes) -> int:
    """Of the weights in a graph, most of which have it."""
    types = [tensor.data_type for tensor in onnx.ModelProto.FromString(graph).graph.initializer
             if len(tensor.dims) == 4]
    return max(set(types), key=types.count)


def expected(rgb: np.ndarray) -> np.ndarray:
    return create_engine(MODEL, 'torch', 'cpu', 'float32', announce=pytest.fail).infer(rgb)[0]


def test_an_engine_is_built_for_each_shape_announced_and_kept(machine, tmp_path):
    engine = open_engine(machine)
    for rgb in (SCENE, SCENE, LARGER, SCENE):
        assert (engine.infer(rgb)[0] == expected(rgb)).mean() >= 0.999
        assert engine.infer(rgb, confidence=False)[1] is None
    assert machine.opened == [(TENSORRT, True)] * 2
    assert engine.precision == 'float16'
    assert [said.partition(' on ')[0] for said in machine.said[True]] == [
        f'TensorRT builds an engine for 1 x {size}' for size in ('96x64', '128x96')]
    assert all('which takes minutes; it is kept' in said for said in machine.said[True])
    assert len(machine.said[False]) == 2
    assert all(re.fullmatch(r'TensorRT has built its engine in \d+ s', said)
               for said in machine.said[False])
    folders = list((tmp_path / 'seg_ros' / 'tensorrt').iterdir())
    assert len(folders) == 2
    assert all((folder / 'graph.engine').stat().st_size > 1000 for folder in folders)

    open_engine(machine).infer(SCENE)
    assert len(machine.said[True]) == 2, 'it was kept'


def test_kept_engine_that_cannot_be_used_is_built_anew(machine, tmp_path):
    open_engine(machine).infer(SCENE)
    kept, = (tmp_path / 'seg_ros' / 'tensorrt').glob('*/graph.engine')
    whole = kept.read_bytes()
    kept.write_bytes(b'damaged')
    machine.said[True].clear()
    open_engine(machine).infer(SCENE)
    cannot, builds = machine.said[True]
    assert cannot == f'{kept.parent}: this TensorRT engine cannot be used: ' \
        'the engine cannot be read'
    assert builds.startswith('TensorRT builds')
    assert kept.read_bytes() == whole


@pytest.mark.parametrize('model', [MODEL, EXPORTED], ids=['trained', 'exported'])
@pytest.mark.parametrize('fault', ['refuses', 'lacks'])
def test_cuda_goes_on_where_tensorrt_fails(machine, tmp_path, fault, model):
    getattr(machine, fault).add(TENSORRT)
    engine = open_engine(machine, model)
    for rgb in (SCENE, LARGER, SCENE):
        assert (engine.infer(rgb)[0] == expected(rgb)).mean() >= 0.98
    assert machine.opened == [(TENSORRT, fault == 'lacks'), (CUDA, True)]
    reason = 'EP_FAIL : TensorRT EP failed' if fault == 'refuses' else 'cannot be loaded'
    builds, failed = machine.said[True]
    assert failed.startswith('TensorRT failed; CUDA runs the network on NVIDIA H200')
    assert reason in failed and '\n' not in failed
    assert machine.said[False] == []
    assert list((tmp_path / 'seg_ros' / 'tensorrt').iterdir()) == []


def test_precision_that_is_told_is_that_of_the_graph_that_runs(machine):
    machine.refuses.add(TENSORRT)
    for model, precision, runs, held in (
            (MODEL, 'auto', 'float16', onnx.TensorProto.FLOAT16),
            (MODEL, 'float32', 'float32', onnx.TensorProto.FLOAT),
            (EXPORTED, 'float16', 'float32', onnx.TensorProto.FLOAT)):
        engine = open_engine(machine, model, precision)
        engine.infer(SCENE)
        assert engine.precision == runs and f'in {runs}' in machine.said[True][-1]
        assert element_type(machine.graphs[-1]) == held


def test_without_cuda_it_is_an_error(machine):
    machine.lacks |= {TENSORRT, CUDA}
    with pytest.raises(EngineError, match='its CUDA provider cannot be loaded'):
        open_engine(machine).infer(SCENE)


def test_auto_runs_an_exported_file_on_a_gpu_that_torch_finds_too(machine, monkeypatch):
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    engine = create_engine(EXPORTED, announce=machine.announce)
    assert (engine.name, engine.device) == ('onnxruntime', 'cuda:0')
    assert 'there is a CUDA GPU' in machine.said[False][0]
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    pytest.importorskip('openvino')
    assert create_engine(EXPORTED, announce=machine.announce).name == 'openvino'
