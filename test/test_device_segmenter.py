"""The GPU's way of a frame, run on the CPU, against the CPU's own way."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import random_model

from seg_ros.drawn_scene import DrawnScene
from seg_ros.errors import EngineError
from seg_ros.inference.device_segmenter import (
    DeviceSegmenter,
    create_segmenter,
    resize_map,
    shrink,
)
from seg_ros.inference.engine_torch import TorchEngine
from seg_ros.inference.engines import create_engine
from seg_ros.inference.segmenter import Segmenter, resize_picture
from seg_ros.labels import LabelSet
from seg_ros.model_file import Model, ModelSpec

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a CUDA GPU')
DEVICES = ['cpu', pytest.param('cuda', marks=needs_gpu)]


def frame(seed: int, height: int, width: int) -> np.ndarray:
    return DrawnScene(seed, width, height).frame(2.0)[0]


@pytest.fixture(scope='module')
def model():
    network = random_model({})
    names = [f'class {index}' for index in range(11)]
    colors = [(20 * index, 255 - 20 * index, 7 * index) for index in range(11)]
    spec = network.spec
    labels = LabelSet(names=tuple(names), colors=tuple(colors), ids=tuple(range(5, 16)))
    return Model(network.network, ModelSpec(spec.architecture, spec.arguments, labels, spec.mean,
                                            spec.std, spec.training_size))


@pytest.fixture(scope='module', params=DEVICES)
def engine(request, model):
    engine = create_engine(model, 'torch', request.param, 'float32')
    yield engine
    engine.close()


@pytest.mark.parametrize('size', [(480, 640), (360, 480), (723, 961), (90, 120), (1080, 1920)])
def test_pictures_are_resized_as_on_the_cpu(size):
    rgb = frame(3, *size)
    expected = np.empty((240, 320, 3), np.uint8)
    resize_picture(rgb, expected)
    difference = np.abs(shrink(torch.from_numpy(rgb), (240, 320)).numpy().astype(int) - expected)
    assert difference.mean() < 1.5
    if size[0] % 2 == 0:  # of odd sides, OpenCV weighs the pixels that two areas share
        assert difference.max() <= 1


@pytest.mark.parametrize('size', [(24, 32), (48, 64), (25, 31), (36, 48), (10, 7)])
def test_maps_take_the_nearest_pixel(size):
    of_row, of_column = np.mgrid[:24, :32].astype(np.uint8)
    for values, was, axis in ((of_row, 24, 0), (of_column, 32, 1)):
        taken = resize_map(torch.from_numpy(values), size).numpy().take(0, axis=1 - axis)
        centres = (np.arange(size[axis]) + 0.5) * was / size[axis]
        nearest = np.abs(np.arange(was) + 0.5 - centres[:, None]).min(axis=1)
        assert np.abs(np.abs(taken + 0.5 - centres) - nearest).max() < 1e-9


@pytest.mark.parametrize('output_size', [None, (120, 960)])
@pytest.mark.parametrize('min_confidence', [0.0, 0.25])
def test_labels_and_pictures_are_those_of_the_cpu(model, engine, output_size, min_confidence):
    frames = [frame(5, 240, 320), frame(6, 480, 640), frame(7, 240, 320)]
    ways = [way(model, engine, (240, 320), output_size).segment(frames, min_confidence)
            for way in (DeviceSegmenter, Segmenter)]
    palette = model.spec.labels.palette
    seen = set()
    for ours, expected in zip(*ways, strict=True):
        assert ours.labels.shape == expected.labels.shape == ours.confidence.shape
        assert ours.labels.dtype == ours.confidence.dtype == np.uint8
        same = ours.labels == expected.labels
        assert same.mean() > 0.99
        assert np.abs(ours.confidence.astype(int) - expected.confidence).mean() < 1
        assert np.array_equal(ours.color(palette)[same], expected.color(palette)[same])
        overlay = ours.overlay(palette, 0.4).astype(int), expected.overlay(palette, 0.4)
        assert overlay[0].shape == overlay[1].shape
        assert np.abs(overlay[0] - overlay[1])[same].max() <= 1
        seen |= set(np.unique(ours.labels))
    assert len(seen) > 4, 'the comparison would say nothing'
    assert (255 in seen) == (min_confidence > 0)


def test_nothing_is_made_of_what_nobody_asked_for(model, engine):
    result, = DeviceSegmenter(model, engine).segment([frame(5, 64, 96)], confidence=False)
    assert result.confidence is None


def test_the_results_stay_when_the_next_frame_comes(model, engine):
    segmenter = DeviceSegmenter(model, engine, (64, 96))
    first, = segmenter.segment([frame(5, 64, 96)])
    again, = segmenter.segment([frame(5, 64, 96)])
    other, = segmenter.segment([frame(9, 64, 96)])
    assert np.array_equal(first.labels, again.labels)  # read only now
    expected, = Segmenter(model, engine, (64, 96)).segment([frame(9, 64, 96)])
    assert (other.labels == expected.labels).mean() > 0.99
    assert (other.labels != first.labels).mean() > 0.1, 'the frames differ'


class WatchedEngine(TorchEngine):
    """Notes what each attempt on the device made, and can fail at reading as a GPU does.

    A GPU is not waited for before something is downloaded.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model, 'cpu', 'float32', 0, pytest.fail)
        self.downloaded: list[tuple[int, ...]] = []
        self.fails = False

    def attempt(self, shape, work):
        result = super().attempt(shape, work)
        if isinstance(result, np.ndarray):
            if self.fails:
                raise EngineError('a kernel failed meanwhile')
            self.downloaded.append(result.shape)
        return result


def test_warm_up_does_all_that_a_frame_may_ask_for(model):
    engine = WatchedEngine(model)
    DeviceSegmenter(model, engine).warm_up(48, 64)
    maps, pictures = (48, 64), (48, 64, 3)
    assert engine.downloaded == [maps, maps, maps, pictures, pictures]  # one confidence


def test_what_fails_at_reading_shows_at_warm_up(model):
    engine = WatchedEngine(model)
    engine.fails = True
    with pytest.raises(EngineError, match='a kernel failed meanwhile'):
        DeviceSegmenter(model, engine).warm_up(48, 64)


def test_palettes_are_uploaded_once_and_told_apart(model, engine, monkeypatch):
    segmenter = DeviceSegmenter(model, engine)
    palette = model.spec.labels.palette
    shifted = np.ascontiguousarray(palette[:, ::-1])
    uploads = []
    from_numpy = torch.from_numpy
    monkeypatch.setattr(torch, 'from_numpy',
                        lambda array: uploads.append(array.shape) or from_numpy(array))
    for seed in (5, 6):
        result, = segmenter.segment([frame(seed, 64, 96)])
        plain = result.color(palette)
        result.overlay(palette, 0.5)
        assert np.array_equal(plain, palette[result.labels])
        assert np.array_equal(result.color(shifted), plain[..., ::-1])
    assert uploads.count(palette.shape) == 2


@pytest.mark.parametrize('ids', [range(11), range(5, 16)])
def test_labels_are_ids_whether_or_not_these_are_the_channels(model, engine, ids):
    labels = LabelSet(model.spec.labels.names, model.spec.labels.colors, tuple(ids))
    renamed = Model(model.network, replace(model.spec, labels=labels))
    picture = frame(5, 64, 96)
    result, = DeviceSegmenter(renamed, engine, (64, 96)).segment([picture])
    channels, _ = engine.infer(picture[None])
    assert np.array_equal(result.labels, channels[0] + ids[0])


def test_a_closed_engine_says_so(model):
    engine = create_engine(model, 'torch', 'cpu')
    segmenter = DeviceSegmenter(model, engine)
    segmenter.close()
    with pytest.raises(EngineError, match='closed'):
        segmenter.segment([frame(5, 64, 96)])


def test_the_cpu_keeps_its_own_way(model):
    assert type(create_segmenter(model, create_engine(model, 'torch', 'cpu'))) is Segmenter


@needs_gpu
def test_the_gpu_takes_its_own_way(model):
    assert type(create_segmenter(model, create_engine(model, 'torch', 'cuda'))) is DeviceSegmenter
