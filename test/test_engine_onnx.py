"""The engine of ONNX Runtime, and what it decides before it meets a GPU."""

import os
import resource
from pathlib import Path

import numpy as np
import pytest
import torch
from random_models import random_model

from seg_ros.drawn_scene import DrawnScene
from seg_ros.errors import ConfigError, EngineError
from seg_ros.inference.engines import create_engine
from seg_ros.inference.nvidia import gpu_names
from seg_ros.inference.onnx_graph import export_graph
from seg_ros.inference.onnx_providers import (
    choose_device,
    choose_precision,
    providers_for,
    tensorrt_for,
)
from seg_ros.inference.tensorrt_cache import BEGUN, EngineCache, cache_root, engine_name
from seg_ros.model_file import Model

CPU, CUDA, TENSORRT = (f'{name}ExecutionProvider' for name in ('CPU', 'CUDA', 'Tensorrt'))
MODEL = random_model()
EXPORTED = Model(None, MODEL.spec, Path('/models/m.onnx'), export_graph(MODEL))
INT8 = Model(None, MODEL.spec, Path('/models/m_int8.onnx'), EXPORTED.onnx, 'int8')
SCENE = DrawnScene(5, 96, 64).frame(2.0)[0][None]


@pytest.fixture(scope='module')
def engine():
    engine = create_engine(MODEL, 'onnxruntime', 'cpu', threads=1)
    yield engine
    engine.close()


def test_trained_model_and_its_exported_file_run_alike(engine):
    assert (engine.name, engine.device, engine.precision) == ('onnxruntime', 'cpu', 'float32')
    exported = create_engine(EXPORTED, 'onnxruntime', 'cpu')
    for one, other in zip(engine.infer(SCENE), exported.infer(SCENE),
                          strict=True):
        assert one.dtype == np.uint8 and one.shape == (1, 64, 96)
        assert np.array_equal(one, other)


def test_labels_alone_are_the_same_labels(engine):
    labels, confidence = engine.infer(SCENE, confidence=False)
    assert confidence is None
    assert np.array_equal(labels, engine.infer(SCENE)[0])


def test_results_are_the_callers_own(engine):
    labels, confidence = engine.infer(SCENE)
    kept = labels.copy()
    engine.infer(SCENE[:, ::-1].copy())
    assert np.array_equal(labels, kept)
    labels[:], confidence[:] = 1, 1


@pytest.mark.parametrize('shape', [(1, 64, 96, 4), (64, 96, 3), (1, 0, 96, 3)])
def test_a_failed_inference_is_an_engine_error_and_the_engine_goes_on(engine, shape):
    with pytest.raises(EngineError, match='onnxruntime on cpu') as caught:
        engine.infer(np.zeros(shape, np.uint8))
    assert str(shape) in str(caught.value) and '\n' not in str(caught.value)
    assert engine.infer(SCENE)[0].shape == (1, 64, 96)


def test_lack_of_memory_is_an_engine_error_and_the_engine_goes_on(engine):
    engine.infer(SCENE)
    huge = np.zeros((1, 4000, 4000, 3), np.uint8)
    pages = int(Path('/proc/self/statm').read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**28, hard))
    try:
        with pytest.raises(EngineError, match='set a smaller network_size'):
            engine.infer(huge)
        assert engine.infer(SCENE)[0].shape == (1, 64, 96)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_a_closed_engine_says_so():
    engine = create_engine(EXPORTED, 'onnxruntime', 'cpu')
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match='closed'):
        engine.infer(SCENE)


def test_float16_graph_labels_most_pixels_alike(engine):
    half = Model(None, MODEL.spec, onnx=export_graph(MODEL, torch.float16))
    labels, _ = create_engine(half, 'onnxruntime', 'cpu').infer(SCENE)
    assert (labels == engine.infer(SCENE)[0]).mean() >= 0.98


@pytest.mark.parametrize(('device', 'providers', 'gpus', 'chosen'), [
    ('auto', [CPU], 0, 'cpu'), ('auto', [CPU], 1, 'cpu'), ('auto', [CUDA, CPU], 0, 'cpu'),
    ('auto', [TENSORRT, CUDA, CPU], 2, 'cuda:0'), ('cpu', [CUDA, CPU], 1, 'cpu'),
    ('cuda', [CUDA, CPU], 2, 'cuda:0'), ('cuda:1', [CUDA, CPU], 2, 'cuda:1')])
def test_device_needs_a_gpu_and_a_provider_for_it(device, providers, gpus, chosen):
    assert choose_device(device, providers, gpus) == chosen


@pytest.mark.parametrize(('device', 'providers', 'gpus', 'said'), [
    ('cuda', [CPU], 0, 'finds cpu and no CUDA GPU'),
    ('cuda', [CPU], 1, 'finds cpu; for the GPU install onnxruntime-gpu'),
    ('cuda:2', [CUDA, CPU], 2, 'finds cpu, cuda, cuda:0, cuda:1'),
    ('gpu', [CUDA, CPU], 1, "device 'gpu'")])
def test_device_that_is_not_there_is_refused(device, providers, gpus, said):
    with pytest.raises(ConfigError, match=said):
        choose_device(device, providers, gpus)


@pytest.mark.parametrize(('model', 'device', 'tensorrt', 'asked', 'chosen'), [
    (MODEL, 'cpu', False, 'auto', 'float32'), (INT8, 'cpu', False, 'auto', 'int8'),
    (INT8, 'cpu', False, 'int8', 'int8'), (MODEL, 'cuda:0', False, 'auto', 'float16'),
    (MODEL, 'cuda:0', True, 'float32', 'float32'), (EXPORTED, 'cuda:0', True, 'auto', 'float16'),
    (EXPORTED, 'cuda:0', False, 'auto', 'float32')])
def test_precision_follows_model_and_device(model, device, tensorrt, asked, chosen):
    assert choose_precision(model, device, tensorrt, asked) == chosen


@pytest.mark.parametrize(('model', 'device', 'tensorrt', 'asked', 'said'), [
    (MODEL, 'cpu', False, 'float16', "'float16': the onnxruntime engine has float32"),
    (INT8, 'cpu', False, 'float32', "'float32': the onnxruntime engine has int8"),
    (EXPORTED, 'cuda:0', False, 'float16', "'float16': the onnxruntime engine has float32"),
    (INT8, 'cuda:0', True, 'int8', '/models/m_int8.onnx: is quantised for CPUs')])
def test_precision_that_is_not_there_is_refused(model, device, tensorrt, asked, said):
    with pytest.raises(ConfigError, match=said):
        choose_precision(model, device, tensorrt, asked)


def test_int8_file_runs_on_the_cpu_wherever_it_is():
    assert create_engine(INT8, 'onnxruntime').device == 'cpu'


def test_providers_come_from_the_fastest_to_the_one_that_runs_all():
    assert providers_for('cpu') == [(CPU, {})]
    assert providers_for('cuda:1') == [(CUDA, {'device_id': 1}), (CPU, {})]
    assert tensorrt_for('cuda:1', True, Path('/c')) == [
        (TENSORRT, {'device_id': 1, 'trt_fp16_enable': True, 'trt_engine_cache_enable': True,
                    'trt_engine_cache_path': '/c'}),
        (CUDA, {'device_id': 1}), (CPU, {})]
    options = dict(tensorrt_for('cuda:0', False, None))[TENSORRT]
    assert options == {'device_id': 0, 'trt_fp16_enable': False}


@pytest.mark.parametrize(('environment', 'expected'), [
    ({'HOME': '/home/r'}, '/home/r/.cache/seg_ros/tensorrt'),
    ({'HOME': '/home/r', 'XDG_CACHE_HOME': '/big'}, '/big/seg_ros/tensorrt'),
    ({'HOME': '/home/r', 'XDG_CACHE_HOME': 'not/absolute'}, '/home/r/.cache/seg_ros/tensorrt'),
    ({'HOME': '/home/r', 'XDG_CACHE_HOME': ''}, '/home/r/.cache/seg_ros/tensorrt'),
    ({}, None)])
def test_engines_are_kept_in_the_users_cache_folder(environment, expected):
    assert cache_root(environment) == (Path(expected) if expected else None)


def test_engine_is_named_by_all_that_it_depends_on():
    given = {'graph': b'a', 'precision': 'float16', 'gpu': 'NVIDIA Orin (nvgpu)',
             'onnxruntime': '1.32.0', 'tensorrt': 100900}
    name = engine_name(**given)
    assert name.endswith('_float16_NVIDIA-Orin-nvgpu_onnxruntime-1.32.0_tensorrt-100900')
    others = {engine_name(**{**given, key: value}) for key, value in {
        'graph': b'b', 'precision': 'float32', 'gpu': 'NVIDIA H200', 'onnxruntime': '1.33.0',
        'tensorrt': 101000}.items()}
    assert len({name, *others}) == 6


def write_engine(cache: EngineCache, name: str, content: bytes) -> None:
    with cache.build(name) as folder:
        (folder / 'graph.engine').write_bytes(content)


def test_engine_gets_its_name_when_it_is_whole(tmp_path):
    cache = EngineCache(tmp_path / 'a' / 'b', pytest.fail, room=1)
    assert cache.find('x') is None
    with cache.build('x') as folder:
        assert list(folder.iterdir()) == []
        (folder / 'graph.engine').write_bytes(b'half')
        assert cache.find('x') is None
        (folder / 'graph.engine').write_bytes(b'whole')
    assert cache.find('x') == tmp_path / 'a' / 'b' / 'x' and cache.find('y') is None
    assert (cache.find('x') / 'graph.engine').read_bytes() == b'whole'
    assert os.listdir(tmp_path / 'a' / 'b') == ['x']


def test_nothing_is_kept_of_a_build_that_failed_or_wrote_nothing(tmp_path):
    cache = EngineCache(tmp_path, pytest.fail, room=1)
    with pytest.raises(RuntimeError, match='no'), cache.build('x') as folder:
        (folder / 'graph.engine').write_bytes(b'half')
        raise RuntimeError('no')
    with cache.build('x') as folder:
        (folder / 'a.profile').touch()
    assert os.listdir(tmp_path) == []


def test_two_nodes_that_build_at_once_leave_each_other_alone(tmp_path):
    one, other = (EngineCache(tmp_path, pytest.fail, room=1) for _ in range(2))
    with one.build('x') as folder:
        (folder / 'graph.engine').write_bytes(b'first begun')
        write_engine(other, 'x', b'first whole')
        assert (folder / 'graph.engine').read_bytes() == b'first begun'
    assert (one.find('x') / 'graph.engine').read_bytes() == b'first whole'
    assert os.listdir(tmp_path) == ['x']


def test_engine_that_cannot_be_used_makes_room_for_a_new_one(tmp_path):
    cache = EngineCache(tmp_path, pytest.fail, room=1)
    write_engine(cache, 'x', b'damaged')
    damaged = cache.find('x')
    with pytest.raises(RuntimeError), cache.build('x', instead_of=damaged):
        raise RuntimeError('no memory')
    assert (cache.find('x') / 'graph.engine').read_bytes() == b'damaged'
    with cache.build('x', instead_of=damaged) as folder:
        (folder / 'graph.engine').write_bytes(b'good')
    assert (cache.find('x') / 'graph.engine').read_bytes() == b'good'


def test_what_killed_processes_left_is_removed_and_what_others_build_is_not(tmp_path):
    old, young = tmp_path / f'{BEGUN}old', tmp_path / f'{BEGUN}young'
    for folder in (old, young):
        folder.mkdir()
        (folder / 'graph.engine').touch()
    os.utime(old, (0, 0))
    write_engine(EngineCache(tmp_path, pytest.fail, room=1), 'x', b'')
    assert sorted(os.listdir(tmp_path)) == [young.name, 'x']


@pytest.mark.parametrize(('root', 'room', 'reason'), [
    ('file/below', 1, 'Not a directory'),  # as a read-only folder, which root may write to
    ('here', 10**18, 'MB left, 1000000000000 are wanted'), (None, 1, 'neither XDG_CACHE_HOME')])
def test_cache_that_cannot_be_written_is_told_of_once(tmp_path, root, room, reason):
    (tmp_path / 'file').touch()
    told: list[str] = []
    cache = EngineCache(tmp_path / root if root else None, told.append, room)
    for name in 'xy':
        with cache.build(name) as folder:
            assert folder is None
    assert cache.find('x') is None
    assert len(told) == 1 and reason in told[0] and 'set XDG_CACHE_HOME' in told[0]


def test_engine_that_was_kept_is_found_in_a_cache_that_has_become_full(tmp_path):
    folder = tmp_path / 'x'
    folder.mkdir()
    (folder / 'graph.engine').touch()
    assert EngineCache(tmp_path, pytest.fail, room=10**18).find('x') == folder


def test_gpus_are_counted_as_by_torch():
    if torch.cuda.is_available():
        assert len(gpu_names()) == torch.cuda.device_count()
    elif not Path('/dev/nvidia0').exists():
        assert gpu_names() == []
