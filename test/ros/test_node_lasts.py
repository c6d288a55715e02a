"""What a node that runs for long has seen: many transitions, and messages of any content."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from footprint import footprint, grown, waited_s
from lifecycle_msgs.srv import ChangeState
from random_models import random_model
from rcl_interfaces.srv import GetParameters
from rclpy.client import Client
from robot import RunningProcess, answer, drawn, make_image, wait_until
from sensor_msgs.msg import CameraInfo, CompressedImage
from test_fuzz_messages import random_compressed, random_image, random_info, real_pictures

MODEL = random_model()
CYCLES, SETTLED = 100, 20
CYCLE = ('configure', 'activate', 'deactivate', 'cleanup')
# The allocator's ups and downs are up to 4 MB. What is kept of every cycle shows from 0.13 MB on.
FLAT_MB = 10
LONGEST_S = 1.0
OUTCOMES = ('processed', 'dropped', 'refused', 'failed')


@pytest.mark.alone
def test_hundred_cycles_of_transitions_leave_nothing_behind(robot, model_file):
    """Each tenth one with the engine that is the default, which takes longer to configure, and
    with a frame that is labelled.
    """
    node = robot.start_node(model=model_file, autostart='false', wait='', engine='torch')
    labels = robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    before = footprint(node.process.pid)
    with robot.client(ChangeState, '/segmentation/change_state') as client:
        for cycle in range(1, CYCLES + 1):
            labelling = cycle % 10 == 0
            if cycle % 10 < 2:
                assert robot.set_parameter('engine', 'auto' if labelling else 'torch')[0]
            for transition in CYCLE:
                if transition == 'deactivate' and labelling:
                    robot.label(publisher, make_image(drawn()), labels)
                request = ChangeState.Request()
                request.transition.label = transition
                assert answer(client, request).success, (transition, cycle)
            if cycle == SETTLED:
                before = footprint(node.process.pid)
    assert grown(before, footprint(node.process.pid), FLAT_MB) == {}


class Probe:
    """Sees whether a node answers and stays as it is, time and again."""

    def __init__(self, node: RunningProcess, client: Client) -> None:
        self._node = node
        self._pid = node.process.pid
        self._client = client
        self._before = footprint(self._pid)

    def __call__(self) -> None:
        """Ask for a parameter. While others have the processor, an answer may take longer."""
        started_s, waited_before_s = time.monotonic(), waited_s(self._pid)
        answer(self._client, GetParameters.Request(names=['overlay_alpha']))
        took_s = time.monotonic() - started_s - (waited_s(self._pid) - waited_before_s)
        assert took_s < LONGEST_S, f'{took_s:.1f} s'

    def settle(self) -> None:
        self._before = footprint(self._pid)

    def expect_nothing_grown(self) -> None:
        assert grown(self._before, footprint(self._pid), FLAT_MB) == {}
        assert self._node.process.poll() is None and 'Traceback' not in self._node.log


def send(publisher, messages: list, probe: Probe, pace: Callable[[], object]) -> None:
    """Send messages, and do between one and the next what lets the time pass."""
    for number, message in enumerate(messages):
        if number == len(messages) // 4:  # buffers that are kept have been made by then
            probe.settle()
        publisher.publish(message)
        if number % 20 == 0:
            probe()
        pace()


def expect_all_counted(robot) -> dict[str, int]:
    """Every frame that came has come to one end, but for one in hand and one in the slot."""
    _, values = robot.diagnostics()
    count = {name: int(values[name]) for name in ('received', *OUTCOMES)}
    assert 0 <= count['received'] - sum(count[name] for name in OUTCOMES) <= 2, count
    assert count['failed'] == 0, values['last_error']
    assert min(count['processed'], count['refused']) > 20, f'says too little: {count}'
    return count


@pytest.mark.alone
def test_node_lives_on_random_messages(robot, model_file):
    """What the conversions alone are given by the thousand, by way of DDS."""
    random = np.random.default_rng(4)
    pictures = real_pictures(random)
    node = robot.start_node(model=model_file, reliability='reliable', network_size='64x48',
                            output_size='80x60', diagnostics_period_s=0.2)
    labels = robot.listen('/segmentation/labels')
    infos = robot.listen('/segmentation/camera_info', CameraInfo)
    images = robot.publisher()
    calibrations = robot.publisher('/camera_info', message_type=CameraInfo)
    compressed = robot.publisher('/image/compressed', message_type=CompressedImage)

    def pass_time() -> None:
        time.sleep(0.005)  # not all of them can be labelled

    def await_frame() -> None:
        count = len(infos)
        wait_until(lambda: len(infos) > count, 'a labelled frame')

    with robot.client(GetParameters, '/segmentation/get_parameters') as client:
        probe = Probe(node, client)
        robot.label(images, make_image(drawn()), labels)
        send(images, [random_image(random) for _ in range(300)], probe, pass_time)
        robot.label(images, make_image(drawn()), labels)
        expect_all_counted(robot)
        probe.expect_nothing_grown()

        robot.wait_for_subscriber(calibrations)
        good = CameraInfo(width=160, height=120)  # twice as large as the output
        with robot.filming({images: 100.0}, make_image(drawn())):
            send(calibrations, [*(random_info(random) for _ in range(100)), good], probe,
                 await_frame)
            wait_until(lambda: (infos[-1].width, infos[-1].height) == (80, 60), 'the good one')
        assert sum(bool(np.isnan(info.k).any()) for info in infos) > 5, 'says too little'
        probe.expect_nothing_grown()

        for transition in ('deactivate', 'cleanup'):
            assert robot.change_state(transition)
        assert robot.set_parameter('image_transport', 'compressed') == (True, '')
        for transition in ('configure', 'activate'):
            assert robot.change_state(transition)
        png = CompressedImage(format='png', data=pictures[3])
        for stamp_s in (1, 2):
            png.header.stamp.sec = stamp_s
            robot.label(compressed, png, labels)
            if stamp_s == 1:
                send(compressed, [random_compressed(random, pictures) for _ in range(300)],
                     probe, pass_time)
        expect_all_counted(robot)
        probe.expect_nothing_grown()
