"""The engines behind their one interface."""

import os
import subprocess
import sys
from functools import lru_cache

import numpy as np
import pytest
import torch
from random_models import random_model

from seg_ros.drawn_scene import DrawnScene
from seg_ros.errors import ConfigError, EngineError
from seg_ros.inference.deploy import DeployedNetwork
from seg_ros.inference.engines import create_engine
from seg_ros.inference.kept import MOST
from seg_ros.inference.threads import use_threads

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a CUDA GPU')


def needs(engine: str) -> None:
    if engine != 'torch':
        pytest.importorskip(engine)


@pytest.fixture(scope='module')
def model():
    return random_model({})


@pytest.fixture(params=['torch', 'openvino', 'onnxruntime'], scope='module')
def engine(request, model):
    needs(request.param)
    engine = create_engine(model, request.param, 'cpu', 'float32')
    yield engine
    engine.close()


@lru_cache
def scene(seed: int, height: int, width: int) -> np.ndarray:
    return DrawnScene(seed, width, height).frame(2.0)[0]


def reference(model, rgb: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    labels, confidence = DeployedNetwork(model)(torch.from_numpy(rgb))
    return labels.numpy(), confidence.numpy()


def test_engines_agree_on_a_drawn_scene(model, engine):
    rgb = scene(5, 240, 320)[None]
    labels, confidence = engine.infer(rgb)
    expected, expected_confidence = reference(model, rgb)
    assert labels.dtype == confidence.dtype == np.uint8
    assert labels.shape == confidence.shape == (1, 240, 320)
    assert len(np.unique(expected)) > 5, 'the comparison would say nothing'
    assert (labels == expected).mean() >= 0.999
    assert np.abs(confidence.astype(int) - expected_confidence).max() <= 1
    assert (engine.device, engine.precision) == ('cpu', 'float32')


def test_pictures_of_a_batch_do_not_touch_each_other(engine):
    pair = np.stack([scene(5, 64, 96), scene(6, 64, 96)])
    labels, _ = engine.infer(pair)
    for index in range(2):
        alone, _ = engine.infer(pair[index:index + 1])
        assert (labels[index] == alone[0]).mean() >= 0.999


def test_one_engine_takes_many_sizes_in_turn(model, engine):
    large = scene(5, 240, 320)
    sizes = [(32 + 9 * step, 45) for step in range(MOST + 2)]  # more than are kept compiled
    for height, width in [*sizes, sizes[0]]:
        rgb = np.ascontiguousarray(large[None, 100:100 + height, 100:100 + width])
        labels, _ = engine.infer(rgb)
        assert labels.shape == (1, height, width)
        assert (labels == reference(model, rgb)[0]).mean() >= 0.999


def test_results_are_not_overwritten_by_the_next_inference(engine):
    first, second = scene(5, 64, 96)[None], scene(8, 64, 96)[None]
    labels, confidence = engine.infer(first)
    kept = labels.copy(), confidence.copy()
    others, _ = engine.infer(second)
    assert (others != labels).any()
    assert np.array_equal(labels, kept[0]) and np.array_equal(confidence, kept[1])
    labels[:] = 1  # the caller's own


@pytest.mark.parametrize('pictures', [
    np.zeros((1, 64, 96, 4), np.uint8), np.zeros((64, 96, 3), np.uint8),
    np.zeros((1, 0, 96, 3), np.uint8)])
def test_a_failed_inference_is_an_engine_error_and_the_engine_goes_on(engine, pictures):
    with pytest.raises(EngineError, match=engine.name) as caught:
        engine.infer(pictures)
    assert str(pictures.shape) in str(caught.value)
    assert caught.value.__cause__ is not None
    assert engine.infer(scene(5, 64, 96)[None])[0].shape == (1, 64, 96)


@pytest.mark.parametrize('name', ['torch', 'openvino'])
def test_a_closed_engine_says_so(name):
    needs(name)
    engine = create_engine(random_model(), name, 'cpu')
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match='closed'):
        engine.infer(scene(5, 64, 96)[None])


def test_openvino_takes_bfloat16_by_itself_where_the_cpu_has_it():
    openvino = pytest.importorskip('openvino')
    has_it = 'BF16' in openvino.Core().get_property('CPU', 'OPTIMIZATION_CAPABILITIES')
    engine = create_engine(random_model(), 'openvino', 'cpu')
    assert engine.precision == ('bfloat16' if has_it else 'float32')
    assert create_engine(random_model(), 'torch', 'cpu').precision == 'float32'


@pytest.mark.parametrize('name', ['torch', 'openvino'])
def test_bfloat16_labels_most_pixels_alike(name):
    needs(name)
    model, rgb = random_model(), scene(5, 120, 160)[None]
    try:
        engine = create_engine(model, name, 'cpu', 'bfloat16')
    except ConfigError as error:
        pytest.skip(str(error))
    assert engine.precision == 'bfloat16'
    assert (engine.infer(rgb)[0] == reference(model, rgb)[0]).mean() >= 0.93


def test_auto_is_openvino_where_there_is_no_gpu(monkeypatch):
    pytest.importorskip('openvino')
    model = random_model()
    assert create_engine(model, device='cpu').name == 'openvino'
    monkeypatch.setitem(sys.modules, 'openvino', None)  # as if it were not installed
    assert create_engine(model, device='cpu').name == 'torch'
    with pytest.raises(ConfigError, match='not installed; use torch'):
        create_engine(model, 'openvino')


@pytest.mark.parametrize(('arguments', 'message'), [
    (('tensorrt',), "engine 'tensorrt': known are auto, torch, openvino"),
    (('torch', 'cpu', 'int8'), "'int8': the torch engine has float32, float16 and bfloat16"),
    (('torch', 'cuda:99'), "device 'cuda:99': the torch engine finds cpu"),
    (('torch', 'tpu'), "device 'tpu': the torch engine finds cpu"),
    (('openvino', 'cuda'), "device 'cuda': the openvino engine finds .*cpu"),
    (('torch', 'cpu', 'float16'), "'float16': the torch engine has float32 and bfloat16"),
    (('torch', 'cpu', 'auto', -1), 'threads -1: expected 0'),
])
def test_what_is_not_there_is_refused_and_what_is_there_named(arguments, message):
    needs(arguments[0])
    with pytest.raises(ConfigError, match=message):
        create_engine(random_model(), *arguments)


def test_threads_are_heeded():
    pytest.importorskip('openvino')
    try:
        create_engine(random_model(), 'torch', 'cpu', threads=1)
        assert torch.get_num_threads() == 1
    finally:
        use_threads(0)
    engine = create_engine(random_model(), 'openvino', 'cpu', threads=1)
    assert engine.infer(scene(5, 64, 96)[None])[0].shape == (1, 64, 96)


def test_openvino_is_not_imported_before_it_is_asked_for():
    code = 'import sys, seg_ros.inference.segmenter; sys.exit("openvino" in sys.modules)'
    assert subprocess.run([sys.executable, '-c', code], timeout=120).returncode == 0


def test_openvino_tells_nobody_of_its_use(tmp_path):
    """Before it would, it puts the number of the user that it counts into the home folder."""
    pytest.importorskip('openvino')
    code = ('from seg_ros.inference.engines import create_engine\n'
            'from seg_ros.model_file import load_model\n'
            "create_engine(load_model(''), 'openvino', 'cpu')")
    environment = {name: value for name, value in os.environ.items()
                   if name not in ('CI', 'TF_BUILD', 'JENKINS_URL')}  # where it never does
    subprocess.run([sys.executable, '-c', code], check=True, timeout=120,
                   env={**environment, 'HOME': str(tmp_path)})
    assert not list(tmp_path.iterdir())


def test_openvino_takes_models_in_turn():
    """What it keeps of one is not taken for another's."""
    pytest.importorskip('openvino')
    first, second = random_model(), random_model()
    with torch.no_grad():
        second.network.classify.bias[3] += 1000  # all is class 3
    rgb = scene(5, 64, 96)[None]
    for model in (first, second, first):
        labels, _ = create_engine(model, 'openvino', 'cpu', 'float32').infer(rgb)
        assert (labels == reference(model, rgb)[0]).mean() >= 0.999
        assert (labels == 3).all() == (model is second)


@needs_gpu
def test_gpu_labels_most_pixels_like_the_cpu(model):
    rgb = np.stack([scene(5, 240, 320), scene(6, 240, 320)])
    engine = create_engine(model)
    assert (engine.name, engine.device, engine.precision) == ('torch', 'cuda:0', 'float16')
    assert (engine.infer(rgb)[0] == reference(model, rgb)[0]).mean() >= 0.98
    exact = create_engine(model, 'torch', 'cuda', 'float32')
    assert (exact.infer(rgb)[0] == reference(model, rgb)[0]).mean() >= 0.995


def test_probabilities_are_left_out_on_request(engine):
    rgb = scene(5, 64, 96)[None]
    labels, probabilities = engine.infer(rgb, confidence=False)
    assert probabilities is None
    assert np.array_equal(labels, engine.infer(rgb)[0])


@pytest.mark.skipif(torch.cuda.is_available(), reason='where there is a GPU, capturing works')
def test_capturing_that_fails_is_told_once_and_gone_without(model):
    said = []
    engine = create_engine(model, 'torch', 'cpu', announce=said.append)
    engine._captures = True  # as on a GPU; here there is none, so that it fails
    rgb = scene(5, 64, 96)[None]
    expected = reference(model, rgb)[0]
    for _ in range(2):
        assert np.array_equal(engine.infer(rgb)[0], expected)
    assert len(said) == 1 and 'without CUDA graphs' in said[0]


def test_what_auto_chose_is_told_with_its_reason(model):
    said = []

    def announce(message: str, *, warning: bool = True) -> None:
        assert not warning
        said.append(message)

    engine = create_engine(model, announce=announce)
    assert len(said) == 1
    assert said[0].startswith(f'engine: {engine.name}, as ')
    if not torch.cuda.is_available():
        assert 'no CUDA GPU' in said[0]
    create_engine(model, 'torch', 'cpu', announce=announce)
    assert len(said) == 1, 'it was asked for'
