"""What the demo is told, and what it refuses before anything is started."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from seg_ros.demo.options import Options, make_parser, read_options
from seg_ros.errors import ConfigError


def read(*arguments: str) -> Options:
    return read_options(make_parser().parse_args(arguments))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    cv2.imwrite(str(tmp_path / 'a.png'), np.zeros((4, 4, 3), np.uint8))
    return tmp_path


def test_drawn_scene_with_its_truth_for_twenty_seconds_unless_told_otherwise():
    options = read()
    assert (options.seconds, options.keep, options.drawn) == (20.0, False, True)
    assert options.source_parameters == {
        'source': 'drawn', 'width': 640, 'height': 480, 'truth': True}
    assert options.node_parameters == {}


def test_size_is_width_then_height():
    options = read('--size', '96x64', '--seconds', '1.5')
    assert options.drawn and options.seconds == 1.5
    assert (options.source_parameters['width'], options.source_parameters['height']) == (96, 64)


def test_folder_is_passed_on_by_its_absolute_path(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    options = read('--images', folder.name)
    assert not options.drawn
    assert options.source_parameters == {'source': 'images', 'path': str(folder)}


def test_model_engine_and_device_go_to_the_node(folder):
    options = read('--model', str(folder / 'a.png'), '--engine', 'torch', '--device', 'cpu')
    assert options.node_parameters == {
        'model': str(folder / 'a.png'), 'engine': 'torch', 'device': 'cpu'}


@pytest.mark.parametrize(('arguments', 'message'), [
    (('--seconds', '0'), '--seconds 0: expected more than 0'),
    (('--seconds', '-3'), '--seconds -3'),
    (('--seconds', 'nan'), '--seconds nan'),
    (('--seconds', 'inf'), '--seconds inf'),
    (('--images', '/no/such'), '/no/such: no such folder'),
    (('--video', '/no/such.mp4'), '/no/such.mp4: no such file'),
    (('--video', __file__), 'cannot be read as a video'),
    (('--camera', '61'), 'camera 61 cannot be opened'),
    (('--images', '/a', '--video', '/b'), '--images and --video exclude each other'),
    (('--camera', '0', '--size', '64x64'), '--camera and --size exclude each other'),
    (('--size', 'large'), "--size 'large': expected width x height such as 640x480"),
    (('--size', '8x8'), 'width 8: expected 32 to 8192'),
    (('--model', '/no/model'), '--model /no/model: no such file'),
    (('--engine', 'steam'), '--engine steam: expected one of auto, torch, openvino'),
])
def test_unusable_option_is_refused(arguments, message):
    with pytest.raises(ConfigError) as refusal:
        read(*arguments)
    assert message in str(refusal.value) and '\n' not in str(refusal.value)


def test_folder_without_pictures_is_refused(tmp_path):
    with pytest.raises(ConfigError, match='no pictures in this folder'):
        read('--images', str(tmp_path))
