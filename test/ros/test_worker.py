"""The worker with real cameras and a real network in this process; frames are put in by hand."""

import numpy as np
import pytest
from random_models import random_model
from robot import make_image, wait_until
from sensor_msgs.msg import Image
from test_node_faults import malformed

from seg_ros.drawn_scene import DrawnScene
from seg_ros.errors import EngineError
from seg_ros.inference.engines import create_engine
from seg_ros.inference.segmenter import Segmenter
from seg_ros.ros.camera_stream import CameraStream
from seg_ros.ros.config import declare_parameters
from seg_ros.ros.frame_slots import FrameSlots
from seg_ros.ros.worker import Worker

NAMES = ('front', 'left', 'right', 'rear')


class WatchedEngine:
    """A real engine; keeps what it was asked, and can be made to have no room for several."""

    def __init__(self, engine) -> None:
        self.engine = engine
        self.name, self.device, self.precision = engine.name, engine.device, engine.precision
        self.asked: list[tuple[int, bool]] = []
        self.most = 4

    def infer(self, rgb: np.ndarray, confidence: bool = True):
        self.asked.append((len(rgb), confidence))
        if len(rgb) > self.most:
            raise EngineError('out of memory')
        return self.engine.infer(rgb, confidence)

    def close(self) -> None:
        self.engine.close()


class Rig:
    """Four cameras, whose labels are heard, and their worker."""

    def __init__(self, robot) -> None:
        model = random_model()
        self.engine = WatchedEngine(create_engine(model, 'torch', 'cpu'))
        self.segmenter = Segmenter(model, self.engine)
        declare_parameters(robot.node)
        self.worker = Worker(robot.node, self.segmenter, (1, 2, 4))
        self.cameras = {
            name: CameraStream(robot.node, name, model.spec.labels, False, 'auto', '')
            for name in NAMES}
        self.labels = {name: robot.listen(f'/{name}/segmentation/labels') for name in NAMES}

    def label(self, images: dict[str, Image]) -> None:
        """Let the images wait together; label them."""
        slots = FrameSlots()
        for camera in self.cameras.values():
            camera.start(slots)
            wait_until(lambda camera=camera: camera.listening, 'the listener')
        for name, image in images.items():
            slots.put(self.cameras[name], image)
        self.worker.start(slots)
        wait_until(lambda: sum(self.count(name, 'processed', 'refused', 'failed')
                               for name in images) == len(images), 'all to be labelled')
        self.stop()

    def count(self, name: str, *fates: str) -> int:
        values = self.cameras[name].statistics.values()
        return sum(int(values[fate]) for fate in fates)

    def stop(self) -> None:
        for camera in self.cameras.values():
            camera.stop()
        self.worker.stop()


@pytest.fixture
def rig(robot):
    rig = Rig(robot)
    yield rig
    rig.stop()
    for camera in rig.cameras.values():
        camera.destroy()
    rig.segmenter.close()


def picture(name: str, width: int = 96, height: int = 64) -> np.ndarray:
    return DrawnScene(NAMES.index(name), width, height).frame(0.0)[0]


def assert_labelled(rig: Rig, *names: str) -> None:
    """Each of these cameras has its own labels, such as the network gives its picture alone."""
    for name in names:
        wait_until(lambda name=name: rig.labels[name], f'labels of {name}')
        message, = rig.labels[name]
        assert message.header.frame_id == name
        expected, = rig.segmenter.segment([picture(name)])
        labels = np.array(message.data, np.uint8).reshape(64, 96)
        assert (labels == expected.labels).mean() > 0.999  # a batch may round otherwise


def images(*names: str) -> dict[str, Image]:
    return {name: make_image(picture(name), frame_id=name) for name in names}


def test_frames_that_wait_together_go_through_the_network_at_once(rig):
    rig.label(images(*NAMES))
    assert rig.engine.asked == [(4, False)]
    assert_labelled(rig, *NAMES)


def test_frames_of_another_size_do_not_go_with_them(rig):
    rig.label({**images('front', 'rear'),
               'left': make_image(picture('left', 64, 64), frame_id='left')})
    assert [count for count, _ in rig.engine.asked] == [2, 1]
    assert_labelled(rig, 'front', 'rear')


@pytest.mark.parametrize('kind', ['zero size', 'data too short', 'too many pixels'])
def test_malformed_frame_costs_its_companions_nothing(rig, kind):
    bad = malformed(kind)
    if kind == 'data too short':  # found only when it is converted, among its companions
        bad = make_image(picture('left'))
        bad.data = bad.data[:-1]
    rig.label({**images('front'), 'left': bad, **images('right', 'rear')})
    assert_labelled(rig, 'front', 'right', 'rear')
    assert rig.count('left', 'refused') == 1
    assert not rig.labels['left']
    assert [rig.count(name, 'refused', 'failed') for name in ('front', 'right', 'rear')] == [0] * 3


def test_frames_go_one_by_one_once_the_engine_has_failed_on_several(rig):
    rig.engine.most = 1
    rig.label(images(*NAMES))
    assert_labelled(rig, *NAMES)
    rig.engine.most = 4
    rig.label(images(*NAMES))
    assert [count for count, _ in rig.engine.asked] == [4] + 8 * [1] + 4 * [1]  # 4 are ours
    assert all(rig.count(name, 'failed') == 0 for name in NAMES)


def test_engine_that_fails_on_every_frame_is_told_of_each_camera(rig):
    rig.engine.most = 0
    rig.label(images(*NAMES))
    for name in NAMES:
        assert rig.count(name, 'failed') == 1
        assert rig.cameras[name].statistics.failing
        assert 'out of memory' in rig.cameras[name].statistics.values()['last_error']


def test_confidence_is_asked_of_the_network_only_for_a_listener(rig, robot):
    rig.label(images('front', 'left'))
    assert rig.engine.asked.pop() == (2, False)
    heard = robot.listen('/left/segmentation/confidence')
    wait_until(lambda: rig.cameras['left'].wants_confidence, 'the listener')
    rig.label(images('front', 'left'))
    assert rig.engine.asked.pop() == (2, True)
    wait_until(lambda: heard, 'the confidence')
    rig.label(images('front', 'rear'))
    assert rig.engine.asked.pop() == (2, False)


def test_listener_that_came_too_late_for_the_confidence_of_a_frame_gets_that_of_the_next(
        rig, robot):
    rig.label(images('front'))
    wait_until(lambda: rig.labels['front'], 'the labels')
    heard = robot.listen('/front/segmentation/confidence')
    camera = rig.cameras['front']
    wait_until(lambda: camera.wants_confidence, 'the listener')
    for number, confidence in ((2, False), (3, True)):
        segmentation, = rig.segmenter.segment([picture('front')], confidence=confidence)
        camera.publish(segmentation, make_image(picture('front'), float(number)).header)
        wait_until(lambda n=number: len(rig.labels['front']) == n, 'the labels')
    wait_until(lambda: heard, 'the confidence')
    assert [message.header.stamp.sec for message in heard] == [3]


def test_stages_of_a_frame_add_up_to_its_latency(rig):
    rig.label(images(*NAMES))
    for name in NAMES:
        values = rig.cameras[name].statistics.values()
        stages = [float(values[f'{stage}_p50_ms'])
                  for stage in ('wait', 'convert', 'segment', 'publish')]
        assert sum(stages) == pytest.approx(float(values['latency_p50_ms']), abs=0.3)
