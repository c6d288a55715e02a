"""The model file that ships: what the README says of it."""

import numpy as np
import pytest

from seg_ros.drawn_scene import DrawnScene
from seg_ros.inference.engines import create_engine
from seg_ros.inference.segmenter import Segmenter
from seg_ros.labels import CAMVID
from seg_ros.model_file import DEFAULT_MODEL, load_model
from seg_ros.training.metrics import ConfusionMatrix

SEEDS = range(500, 512)  # training draws from 1,000,000 on, validation looks at 0 to 19


@pytest.fixture(scope='module')
def segmenter():
    model = load_model()
    return Segmenter(model, create_engine(model))


def test_it_is_small():
    model = load_model()
    assert sum(parameter.numel() for parameter in model.network.parameters()) < 1_000_000
    assert DEFAULT_MODEL.stat().st_size <= 4_000_000


def test_it_names_the_classes_of_camvid_and_where_it_comes_from():
    spec = load_model().spec
    assert spec.labels == CAMVID
    assert spec.training_size == (360, 480)
    assert {'data', 'recipe', 'epochs', 'commit', 'validation'} <= spec.provenance.keys()
    assert spec.provenance['validation']['val_miou'] >= 63


@pytest.mark.parametrize(('width', 'height'), [(480, 360), (640, 480)])
def test_drawn_scenes_that_training_never_saw_are_labelled_right(segmenter, width, height):
    confusion = ConfusionMatrix(len(CAMVID))
    for seed in SEEDS:
        rgb, truth = DrawnScene(seed, width, height).frame(3.0)
        confusion.add(truth, segmenter.segment([rgb])[0].labels)
    assert confusion.scores().miou >= 0.70


def test_engines_agree_on_it():
    model = load_model()
    rgb, _ = DrawnScene(3, 480, 360).frame(1.0)
    torch_labels, openvino_labels = (
        Segmenter(model, create_engine(model, engine)).segment([rgb])[0].labels
        for engine in ('torch', 'openvino'))
    assert np.mean(torch_labels == openvino_labels) >= 0.999
