"""From frames at the camera's size to labels at the camera's size."""

import numpy as np
import pytest
from random_models import TINY, random_model

from seg_ros.drawn_scene import DrawnScene
from seg_ros.errors import ConfigError, ImageError
from seg_ros.inference.engines import create_engine
from seg_ros.inference.segmenter import Segmenter, resize_picture
from seg_ros.label_map import LabelMap
from seg_ros.labels import CAMVID, LabelSet
from seg_ros.model_file import ModelSpec
from seg_ros.model_spec import input_size


class ValueEngine:
    """Labels each pixel by its red value alone, so that where it lies can be told.

    Channel = red // 16, confidence = green.
    """

    name, device, precision = 'value', 'cpu', 'float32'

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def infer(self, rgb: np.ndarray,
              confidence: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        assert rgb.dtype == np.uint8 and rgb.flags.c_contiguous
        self.shapes.append(rgb.shape)
        return rgb[..., 0] // 16, rgb[..., 1].copy() if confidence else None

    def close(self) -> None:
        pass


@pytest.fixture(scope='module')
def model():
    return random_model()


@pytest.fixture
def engine():
    return ValueEngine()


@pytest.fixture(scope='module')
def torch_engine(model):
    return create_engine(model, 'torch', 'cpu')


def channels(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 11, (height, width), np.uint8)


def as_frame(labels: np.ndarray) -> np.ndarray:
    """A picture that the engine above labels so, with full confidence."""
    return np.dstack([labels * 16 + 8, np.full_like(labels, 255), labels])


@pytest.mark.parametrize('factor', [1, 2, 4])
def test_labels_lie_where_the_pixels_are(model, engine, factor):
    labels = channels(40, 56).repeat(factor, axis=0).repeat(factor, axis=1)
    segmenter = Segmenter(model, engine, network_size=(40, 56))
    segmentation, = segmenter.segment([as_frame(labels)])
    assert np.array_equal(segmentation.labels, labels)
    assert (segmentation.confidence == 255).all()


@pytest.mark.parametrize('camera', [(100, 150), (77, 131), (211, 333), (35, 40)])
def test_edges_do_not_move_on_the_way_to_the_network_and_back(model, engine, camera):
    height, width = camera
    segmenter = Segmenter(model, engine, network_size=(48, 64))
    moved = []
    for edge in range(5, width - 5):
        labels = np.zeros(camera, np.uint8)
        labels[:, edge:] = 10
        found = segmenter.segment([as_frame(labels)])[0].labels
        # Half-way between 0 and 10, that is at 5 or more: where the edge now lies.
        moved.append((found < 5).sum(axis=1).mean() - edge)
    network_pixel = width / 64
    assert abs(np.mean(moved)) < 0.06 * network_pixel
    assert np.abs(moved).max() <= 0.5 * network_pixel + 0.5


def test_a_mirrored_frame_has_mirrored_labels(model, engine):
    frame = as_frame(channels(90, 120))
    segmenter = Segmenter(model, engine, network_size=(45, 60))
    straight, mirrored = segmenter.segment([frame, frame[::-1, ::-1]])
    assert np.array_equal(mirrored.labels, straight.labels[::-1, ::-1])


def test_shrinking_averages_instead_of_skipping_pixels():
    frame = np.zeros((400, 600, 3), np.uint8)
    frame[::2] = 200  # lines of one pixel: on average 100
    small = np.empty((90, 140, 3), np.uint8)
    resize_picture(frame, small)
    assert np.abs(small.astype(int) - 100).max() <= 2


def test_frames_of_one_size_go_as_one_batch_and_come_back_in_order(model, engine):
    sizes = [(64, 96), (90, 80), (64, 96), (96, 64), (90, 80)]
    frames = [np.full((*size, 3), 16 * index, np.uint8) for index, size in enumerate(sizes)]
    segmentations = Segmenter(model, engine).segment(frames)
    assert [shape[0] for shape in engine.shapes] == [2, 2, 1]
    assert [each.labels.shape for each in segmentations] == sizes
    assert [int(each.labels[5, 5]) for each in segmentations] == [0, 1, 2, 3, 4]


def test_a_batch_is_labelled_like_its_frames_one_by_one(model, torch_engine):
    scene = DrawnScene(4, 200, 150)
    frames = [scene.frame(float(second))[0] for second in range(3)]
    segmenter = Segmenter(model, torch_engine)
    for frame, together in zip(frames, segmenter.segment(frames), strict=True):
        alone, = segmenter.segment([frame])
        assert (alone.labels == together.labels).mean() >= 0.999
        assert np.abs(alone.confidence.astype(int) - together.confidence).max() <= 1


def test_no_frames_have_no_segmentations(model, engine):
    assert Segmenter(model, engine).segment([]) == []


def test_pixels_below_the_confidence_asked_for_become_unknown(model, engine):
    frame = np.dstack([np.full((32, 256), 40), np.tile(np.arange(256), (32, 1)),
                       np.zeros((32, 256))]).astype(np.uint8)
    segmenter = Segmenter(model, engine, network_size=(32, 256))
    labels = segmenter.segment([frame], min_confidence=0.6)[0].labels
    assert (labels[:, :153] == 255).all()  # 0.6 * 255 = 153
    assert (labels[:, 153:] == 2).all()
    assert (segmenter.segment([frame])[0].labels == 2).all()
    confidence = segmenter.segment([frame], min_confidence=1.0)[0].confidence
    assert np.array_equal(confidence, frame[..., 1])


def test_channels_become_the_ids_of_the_classes(engine):
    labels = LabelSet(('a', 'b', 'c'), ((1, 1, 1), (2, 2, 2), (3, 3, 3)), (7, 0, 254))
    segmenter = Segmenter(random_model(labels=labels), engine, network_size=(32, 96))
    frame = as_frame(np.arange(3, dtype=np.uint8).repeat(32)[None].repeat(32, axis=0))
    found = segmenter.segment([frame], min_confidence=0.5)[0].labels
    assert found[0, ::32].tolist() == [7, 0, 254]


def test_output_size_is_the_size_of_labels_and_confidence(model, engine):
    small = channels(20, 30)
    frame = as_frame(small.repeat(4, axis=0).repeat(4, axis=1))
    segmenter = Segmenter(model, engine, network_size=(80, 120), output_size=(20, 30))
    segmentation, = segmenter.segment([frame])
    assert np.array_equal(segmentation.labels, small)
    assert segmentation.confidence.shape == (20, 30)


@pytest.mark.parametrize('size', [(1, 1), (1, 7), (3, 1), (2, 900), (31, 33)])
def test_frames_of_any_size_are_labelled(model, torch_engine, size):
    frame = np.full((*size, 3), 90, np.uint8)
    segmentation, = Segmenter(model, torch_engine).segment([frame])
    assert segmentation.labels.shape == segmentation.confidence.shape == size


@pytest.mark.parametrize(('camera', 'expected'), [
    ((360, 480), (360, 480)), ((480, 640), (360, 480)),
    ((2, 4000), (32, 10800)),  # 8 x 18590 at the training area; 2 * 360 * 480 / 32 = 10800
    ((4000, 2), (10800, 32)), ((1, 60_000_000), (32, 10800)),
    ((1, 1), (416, 416))])     # sqrt(360 * 480) = 415.7
def test_the_network_never_sees_more_than_twice_its_training_area(camera, expected):
    spec = ModelSpec('asymmetric', TINY, CAMVID, (1.0, 1, 1), (1.0, 1, 1), (360, 480))
    assert input_size(spec, *camera) == expected


def test_warm_up_shows_the_engine_the_size_to_come(model, engine):
    segmenter = Segmenter(model, engine)
    segmenter.warm_up(480, 640)
    segmenter.segment([np.zeros((480, 640, 3), np.uint8)])
    assert engine.shapes[0] == engine.shapes[1] == (1, 64, 88, 3)  # 67.9 x 90.5 rounded to eights


@pytest.mark.parametrize('frame', [
    np.zeros((48, 64), np.uint8), np.zeros((48, 64, 4), np.uint8),
    np.zeros((48, 64, 3), np.float32), np.zeros((0, 64, 3), np.uint8)])
def test_what_is_no_frame_is_refused(model, engine, frame):
    with pytest.raises(ImageError, match=r'expected uint8 of shape \(height, width, 3\)'):
        Segmenter(model, engine).segment([frame])


@pytest.mark.parametrize(('sizes', 'message'), [
    ({'network_size': (31, 64)}, r'network size \(31, 64\): expected height and width, 32 to'),
    ({'network_size': (64.0, 64)}, 'network size'), ({'network_size': (64, 9000)}, '8192'),
    ({'output_size': (0, 5)}, r'output size \(0, 5\): expected height and width, 1 to 8192')])
def test_sizes_out_of_range_are_refused(model, engine, sizes, message):
    with pytest.raises(ConfigError, match=message):
        Segmenter(model, engine, **sizes)


def test_rows_that_are_not_contiguous_are_read_right(model, engine):
    wide = as_frame(channels(40, 112))
    segmenter = Segmenter(model, engine, network_size=(40, 56))
    straight, = segmenter.segment([np.ascontiguousarray(wide[:, 20:76])])
    strided, = segmenter.segment([wide[:, 20:76]])
    assert np.array_equal(straight.labels, strided.labels)


def test_confidence_that_nobody_wants_is_not_made(model, engine):
    frame = as_frame(channels(48, 64))
    frame[:24, :, 1] = 100
    plain, = Segmenter(model, engine).segment([frame], confidence=False)
    assert plain.confidence is None
    # A threshold needs it all the same.
    unsure, = Segmenter(model, engine).segment([frame], min_confidence=0.5, confidence=False)
    assert unsure.confidence is None
    assert (unsure.labels[:24] == 255).all() and (unsure.labels[24:] != 255).all()
    assert (unsure.labels[24:] == plain.labels[24:]).all()


def test_label_map_gives_classes_other_ids_and_merges_them(model, engine):
    labels = LabelSet(('flat', 'thing'), ((1, 2, 3), (4, 5, 6)), (40, 7))
    lookup = np.full(256, 255, np.uint8)
    lookup[[3, 4]], lookup[8] = 40, 7        # two of the model's classes are one now
    segmenter = Segmenter(model, engine, label_map=LabelMap(labels, lookup, ()))
    assert segmenter.labels == labels
    channels_seen = channels(48, 64)
    result, = segmenter.segment([as_frame(channels_seen)])
    at_network = result.labels.shape == channels_seen.shape
    assert at_network and set(np.unique(result.labels)) == {7, 40, 255}
    plain, = Segmenter(model, engine).segment([as_frame(channels_seen)])
    assert np.array_equal(result.labels, lookup[plain.labels])
