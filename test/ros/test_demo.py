"""The demo from its command line to its files, with the real node and the model that ships."""

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
from command_run import CommandRun

from seg_ros.drawn_scene import DrawnScene
from seg_ros.labels import CAMVID

KEYS = ['frames_in', 'labelled', 'dropped', 'latency_ms', 'age_ms', 'fps', 'engine', 'device',
        'precision']


class Demo(CommandRun):
    def __init__(self, folder: Path, *arguments: str) -> None:
        super().__init__(folder, 'seg_ros.demo', *arguments)

    def summary(self) -> dict:
        return json.loads((self.folder / 'demo_output' / 'summary.json').read_text())

    def picture(self, name: str) -> np.ndarray:
        picture = cv2.imread(str(self.folder / 'demo_output' / name), cv2.IMREAD_UNCHANGED)
        assert picture is not None, name
        return picture


@pytest.fixture
def demo(tmp_path: Path) -> Iterator:
    runs = []

    def start(*arguments: str) -> Demo:
        runs.append(Demo(tmp_path, *arguments))
        return runs[-1]

    yield start
    for run in runs:
        run.close()


def test_drawn_scene_is_labelled_shown_and_scored(demo, tmp_path):
    (tmp_path / 'demo_output').mkdir()
    (tmp_path / 'demo_output' / 'mine.txt').write_text('stays')
    run = demo('--seconds', '3')
    assert run.wait() == 0, run.out + run.err
    assert not run.left_behind()

    summary = run.summary()
    assert list(summary) == [*KEYS, 'miou']
    assert summary['labelled'] >= 1
    assert summary['frames_in'] == summary['labelled'] + summary['dropped']
    assert 0 < summary['latency_ms']['p50'] <= summary['latency_ms']['p95']
    assert 0 < summary['age_ms']['p50'] <= summary['age_ms']['p95']
    assert summary['engine'] in ('torch', 'openvino')
    assert summary['precision'] in ('float32', 'float16', 'bfloat16')
    assert 30 < summary['miou'] <= 100  # a network that learned nothing has less than 10
    assert summary['miou'] == round(summary['miou'], 2)
    assert f'{summary["miou"]:.2f} %' in run.out

    named = {Path(name) for name in re.findall(r'^wrote (\S+)$', run.out, re.MULTILINE)}
    there = {path.relative_to(tmp_path) for path in (tmp_path / 'demo_output').iterdir()}
    assert there - named == {Path('demo_output') / name
                             for name in ('mine.txt', 'node.log', 'image_source.log')}
    assert named <= there
    assert re.search(r'in \d+  labelled \d+  dropped \d+  latency p50 \d+ p95 \d+ ms', run.out)

    labels, color, overlay = (run.picture(f'{kind}_1.png')
                              for kind in ('labels', 'color', 'overlay'))
    assert labels.shape == (480, 640) and labels.dtype == np.uint8
    assert labels.max() < len(CAMVID)
    assert np.array_equal(color[..., ::-1], np.array(CAMVID.colors, np.uint8)[labels])
    assert overlay.shape == color.shape
    capture = cv2.VideoCapture(str(tmp_path / 'demo_output' / 'overlay.mp4'))
    frames = 0
    while (frame := capture.read()[1]) is not None:
        assert frame.shape == (480, 640, 3)
        frames += 1
    assert 1 <= frames <= summary['labelled']


def test_pictures_of_a_folder_are_labelled_at_their_sizes_without_a_score(demo, tmp_path):
    (tmp_path / 'pictures').mkdir()
    for name, (width, height) in {'a.png': (320, 240), 'b.jpg': (200, 260)}.items():
        rgb, _ = DrawnScene(2, width, height).frame(3.0)
        cv2.imwrite(str(tmp_path / 'pictures' / name), rgb[..., ::-1])
    run = demo('--seconds', '3', '--images', 'pictures')
    assert run.wait() == 0, run.out + run.err
    assert list(run.summary()) == KEYS
    assert 'mIoU' not in run.out
    shapes = {run.picture(path.name).shape for path in tmp_path.glob('demo_output/labels_*.png')}
    assert shapes and shapes <= {(240, 320), (260, 200)}


def test_kept_running_on_a_video_it_says_how_to_connect_and_ends_well_on_ctrl_c(demo, tmp_path):
    writer = cv2.VideoWriter(str(tmp_path / 'v.avi'), cv2.VideoWriter.fourcc(*'MJPG'), 10.0,
                             (320, 240))
    for number in range(5):
        writer.write(DrawnScene(2, 320, 240).frame(number / 10)[0][..., ::-1])
    writer.release()
    run = demo('--seconds', '0.5', '--keep', '--video', 'v.avi')
    run.wait_for('   2 s  in ')
    domain = os.environ['ROS_DOMAIN_ID']
    assert f'ROS_DOMAIN_ID={domain}' in run.out and 'segmentation/overlay' in run.out
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 0, run.out + run.err
    assert 'Traceback' not in run.err
    assert run.picture('overlay_1.png').shape == (240, 320, 3)
    assert list(run.summary()) == KEYS
    assert not run.left_behind()


@pytest.mark.parametrize('moment', ['starting the node', '1 s  in '])
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_ends_its_processes(demo, number, moment):
    run = demo()
    run.wait_for(moment)
    assert len(run.left_behind()) >= 3  # libraries start short-lived ones while they load
    run.process.send_signal(number)
    assert run.wait() == 130
    assert run.err.splitlines() == ['demo: interrupted']
    assert not run.left_behind()


def test_model_that_cannot_be_loaded_is_told_with_the_words_of_the_node(demo, tmp_path):
    (tmp_path / 'broken.safetensors').write_bytes(b'no model')
    run = demo('--model', 'broken.safetensors')
    assert run.wait() == 1
    assert run.err.startswith('demo: error: the segmentation node could not start; the end of '
                              'the log demo_output/node.log:')
    assert 'broken.safetensors: is not a whole safetensors file' in run.err
    assert not (tmp_path / 'demo_output' / 'summary.json').exists()
    assert not run.left_behind()


def test_wrong_option_is_one_line_before_anything_starts(demo, tmp_path):
    run = demo('--images', 'nowhere')
    assert run.wait() == 2
    assert run.err.splitlines() == [f'demo: error: {tmp_path}/nowhere: no such folder; give one '
                                    'that holds pictures']
    assert run.out == '' and not (tmp_path / 'demo_output').exists()
