"""The model files that ship: what the README says of them."""

import numpy as np
import pytest

from seg_ros.drawn_scene import DrawnScene
from seg_ros.errors import ModelFileError
from seg_ros.inference.engines import create_engine
from seg_ros.inference.int8 import for_precision
from seg_ros.inference.segmenter import Segmenter
from seg_ros.labels import CAMVID
from seg_ros.model_file import DEFAULT_MODEL, WEIGHTS, load_model
from seg_ros.training.metrics import ConfusionMatrix

SEEDS = range(500, 512)  # training draws from 1,000,000 on, validation looks at 0 to 19
LEAST = {'asymmetric_camvid': (None, 0.70), 'asymmetric_camvid_train': (69, 0.70),
         'strip_camvid': (69, 0.68)}
"""mIoU that each has at least: percent on validation, None where that was trained on; share on
drawn scenes."""


@pytest.fixture(scope='module', params=LEAST)
def name(request):
    return request.param


@pytest.fixture(scope='module')
def model(name):
    return load_model(name)


def test_all_files_are_looked_at_here():
    assert {path.name for path in WEIGHTS.iterdir()} == {
        'asymmetric_camvid_int8.onnx', *(f'{name}.safetensors' for name in LEAST)}


def test_int8_file_is_of_the_default():
    assert for_precision(load_model(), 'int8').precision == 'int8'


def test_it_is_small(model):
    assert sum(parameter.numel() for parameter in model.network.parameters()) < 1_000_000
    assert model.path.stat().st_size <= 4_000_000


def test_default_is_the_asymmetric_network():
    assert load_model().path == load_model('asymmetric_camvid').path == DEFAULT_MODEL.resolve()
    assert load_model().spec.architecture == 'asymmetric'


def test_unknown_name_is_refused_with_those_that_ship():
    with pytest.raises(ModelFileError, match='strip_camvit: no such model file.*ships: '
                                             'asymmetric_camvid, asymmetric_camvid_train, '
                                             'strip_camvid'):
        load_model('strip_camvit')


def test_it_names_the_classes_of_camvid_and_where_it_comes_from(model, name):
    spec = model.spec
    assert spec.labels == CAMVID
    assert spec.training_size == (360, 480)
    assert {'data', 'recipe', 'epochs', 'commit'} <= spec.provenance.keys()
    if LEAST[name][0] is None:
        assert 'val_miou' not in spec.provenance.get('validation', {})
        assert spec.provenance['recipe']['splits'] == ['train', 'val']
    else:
        assert spec.provenance['recipe']['splits'] == ['train']
        assert spec.provenance['validation']['val_miou'] >= LEAST[name][0]


@pytest.mark.parametrize(('width', 'height'), [(480, 360), (640, 480)])
def test_drawn_scenes_that_training_never_saw_are_labelled_right(model, name, width, height):
    segmenter = Segmenter(model, create_engine(model))
    confusion = ConfusionMatrix(len(CAMVID))
    for seed in SEEDS:
        rgb, truth = DrawnScene(seed, width, height).frame(3.0)
        confusion.add(truth, segmenter.segment([rgb])[0].labels)
    assert confusion.scores().miou >= LEAST[name][1]


def test_engines_agree_on_it(model):
    rgb, _ = DrawnScene(3, 480, 360).frame(1.0)
    torch_labels, openvino_labels = (
        Segmenter(model, create_engine(model, engine, precision='float32')
                  ).segment([rgb])[0].labels for engine in ('torch', 'openvino'))
    assert np.mean(torch_labels == openvino_labels) >= 0.999
