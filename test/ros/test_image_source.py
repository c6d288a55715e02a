"""The image source as a camera: a process of its own on a real DDS graph."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from rclpy.qos import ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, Image

from seg_ros.labels import CAMVID
from seg_ros.ros.image_source import main

MODULE = 'seg_ros.ros.image_source'
WAIT_S = 60.0


def parameters(**values: object) -> list[str]:
    return ['--ros-args', *(text for name, value in values.items()
                            for text in ('-p', f'{name}:={value}'))]


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f'waited in vain for {what}'
        time.sleep(0.02)


def stamp_s(message: Image | CameraInfo) -> float:
    return message.header.stamp.sec + message.header.stamp.nanosec / 1e9


def pixels(message: Image) -> np.ndarray:
    return np.array(message.data, np.uint8).reshape(message.height, message.width, -1)


def write_grey_video(path: Path, frames: int, rate_hz: float) -> None:
    """Frame number n is grey of n."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*'FFV1'), rate_hz, (64, 48))
    for number in range(frames):
        writer.write(np.full((48, 64, 3), number, np.uint8))
    writer.release()


def test_drawn_scene_comes_at_its_rate_and_size_with_rising_stamps(robot):
    images = robot.listen('/image')
    robot.start(MODULE, *parameters(rate_hz=4, width=320, height=240, frame_id='front'))
    wait_for(lambda: len(images) >= 9, 'nine images')
    images = images[:9]
    stamps = [stamp_s(image) for image in images]
    assert {(image.width, image.height, image.encoding, image.step, image.header.frame_id)
            for image in images} == {(320, 240, 'rgb8', 960, 'front')}
    assert np.diff(stamps).min() > 0
    assert 0.24 < (stamps[-1] - stamps[0]) / 8 < 0.4  # slower on a machine with no time left
    assert abs(time.time() - stamps[-1]) < 10
    assert not np.array_equal(images[0].data, images[-1].data)


def test_reliable_subscriptions_are_served_unless_told_otherwise(robot):
    def reliability() -> set[ReliabilityPolicy]:
        return {info.qos_profile.reliability
                for info in robot.node.get_publishers_info_by_topic('/image')}

    first = robot.start(MODULE, *parameters(rate_hz=1))
    wait_for(reliability, 'a publisher')
    assert reliability() == {ReliabilityPolicy.RELIABLE}
    first.stop()
    wait_for(lambda: not reliability(), 'the end of the publisher')
    robot.start(MODULE, *parameters(rate_hz=1, reliability='best_effort'))
    wait_for(reliability, 'a publisher')
    assert reliability() == {ReliabilityPolicy.BEST_EFFORT}


def test_truth_and_camera_info_have_the_stamp_and_size_of_their_image(robot):
    topics = {name: robot.listen(f'/{name}', kind)
              for name, kind in (('image', Image), ('truth', Image), ('camera_info', CameraInfo))}
    robot.start(MODULE, *parameters(rate_hz=5, width=160, height=128, truth='true', seed=5))
    wait_for(lambda: len(topics['image']) >= 6, 'six images')
    by_stamp = {name: {stamp_s(message): message for message in list(messages)}
                for name, messages in topics.items()}
    for stamp in sorted(by_stamp['image'])[1:5]:
        truth, info = by_stamp['truth'][stamp], by_stamp['camera_info'][stamp]
        assert (truth.width, truth.height, truth.encoding, truth.step) == (160, 128, 'mono8', 160)
        assert truth.header == info.header == by_stamp['image'][stamp].header
        assert set(np.unique(pixels(truth))) <= set(range(len(CAMVID)))
        assert pixels(truth)[-1, 80] == CAMVID.names.index('Road')  # the car drives on it
        # 0.85 of the longer side, 4:3 at least, is the drawn scene's focal length.
        focal = pytest.approx(0.85 * 128 * 4 / 3)
        assert (info.width, info.height, info.distortion_model) == (160, 128, 'plumb_bob')
        assert list(info.k) == [focal, 0, 79.5, 0, focal, 63.5, 0, 0, 1]


def test_no_truth_unless_asked_for(robot):
    images = robot.listen('/image')
    robot.start(MODULE, *parameters(rate_hz=5, width=64, height=64))
    wait_for(lambda: images, 'an image')
    assert not robot.node.count_publishers('/truth')


@pytest.mark.parametrize(('encoding', 'first_pixels'), [
    ('rgb8', {(200, 100, 50), (10, 20, 30)}),
    ('bgr8', {(50, 100, 200), (30, 20, 10)}),
    # 0.299 R + 0.587 G + 0.114 B
    ('mono8', {(124,), (18,)})])
def test_pictures_of_a_folder_keep_their_sizes_in_each_encoding(
        robot, tmp_path, encoding, first_pixels):
    folder = tmp_path / 'with space: #1'
    folder.mkdir()
    cv2.imwrite(str(folder / 'a.png'), np.full((6, 9, 3), (50, 100, 200), np.uint8))
    cv2.imwrite(str(folder / 'b.png'), np.full((8, 5, 3), (30, 20, 10), np.uint8))
    images = robot.listen('/image')
    robot.start(MODULE, *parameters(source='images', path=f'"{folder}"', rate_hz=10,
                                    encoding=encoding))
    wait_for(lambda: len(images) >= 5, 'five images')
    images = images[:5]
    assert {image.encoding for image in images} == {encoding}
    assert {(image.width, image.height) for image in images} == {(9, 6), (5, 8)}
    assert {tuple(pixels(image)[0, 0]) for image in images} == first_pixels


def test_video_plays_at_its_own_speed_whatever_the_rate(robot, tmp_path):
    write_grey_video(tmp_path / 'v.avi', frames=250, rate_hz=25.0)
    images = robot.listen('/image')
    robot.start(MODULE, *parameters(source='video', path=tmp_path / 'v.avi', rate_hz=2.0))
    wait_for(lambda: len(images) >= 6, 'six images')
    numbers = [int(pixels(image)[0, 0, 0]) for image in images[:6]]
    stamps = [stamp_s(image) for image in images[:6]]
    played = (numbers[-1] - numbers[0]) / (stamps[-1] - stamps[0])
    assert played == pytest.approx(25.0, rel=0.2)


def test_source_slower_than_its_rate_is_not_behind(robot):
    """Drawing a frame of this size takes much longer than the period that is asked for."""
    images = robot.listen('/image')
    started = robot.start(MODULE, *parameters(rate_hz=240.0, width=1280, height=960))
    wait_for(lambda: len(images) >= 8, 'eight images')
    times = robot.heard_at['/image']
    ages = [times[k] - stamp_s(images[k]) for k in range(8)]
    assert max(ages[3:]) < 1.0
    assert started.stop() == 0  # at once: no backlog is worked off


def test_ends_by_itself_after_the_frames_asked_for(robot):
    images = robot.listen('/image')
    process = robot.start(MODULE, *parameters(rate_hz=1, frames=3, width=64, height=64))
    assert process.process.wait(WAIT_S) == 0
    wait_for(lambda: images, 'the last image')
    time.sleep(0.5)
    assert 1 <= len(images) <= 3  # the first may come before this process is known to it
    assert 'Traceback' not in process.log


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_told_to_end_it_ends_quietly(robot, number):
    process = robot.start(MODULE, *parameters(rate_hz=30))
    process.wait_for_log('publishing drawn on /image at 30 Hz')
    time.sleep(0.5)
    assert process.stop(number) == 0
    assert len(process.log.splitlines()) == 1


def test_remapped_topic_is_used(robot):
    images = robot.listen('/robot/front/image_raw')
    robot.start(MODULE, *parameters(rate_hz=5, width=64, height=64), '-r', '__ns:=/robot',
                '-r', 'image:=front/image_raw')
    wait_for(lambda: images, 'an image')


def test_parameters_describe_themselves(robot):
    images = robot.listen('/image')
    robot.start(MODULE, *parameters(rate_hz=5, width=64, height=64))
    wait_for(lambda: images, 'an image')
    described = robot.describe_parameter('rate_hz', '/image_source')
    limits = described.floating_point_range[0]
    assert described.description and described.read_only
    assert (limits.from_value, limits.to_value) == (0.1, 240.0)
    assert robot.describe_parameter('width', '/image_source').integer_range[0].from_value == 32
    assert not robot.set_parameter('seed', 3, '/image_source')[0]


@pytest.mark.parametrize(('values', 'message'), [
    ({'rate_hz': 'fast'}, "rate_hz: got 'fast', expected a number from 0.1 to 240"),
    ({'rate_hz': 0}, 'rate_hz: got 0.0, expected a number from 0.1 to 240'),
    ({'rate_hz': '.nan'}, 'rate_hz'),
    ({'rate_hz': 1e9}, 'expected a number from 0.1 to 240'),
    ({'width': 3}, 'expected a whole number from 32 to 8192'),
    ({'height': 100.5}, 'height: got 100.5, expected a whole number from 32 to 8192'),
    ({'seed': -1}, 'seed'),
    ({'truth': 3}, 'truth: got 3, expected true or false'),
    ({'source': 'radar'}, "'radar', expected one of drawn, images, video, camera"),
    ({'encoding': 'yuv'}, "'yuv', expected one of rgb8, bgr8, mono8"),
    ({'reliability': 'maybe'}, "'maybe', expected one of reliable, best_effort"),
    ({'source': 'images'}, 'source images needs the parameter path'),
    ({'source': 'images', 'path': '/no/such'}, '/no/such: no such folder'),
    ({'source': 'video', 'path': '/no/such.mp4'}, '/no/such.mp4: no such file'),
    ({'source': 'video', 'path': __file__}, 'cannot be read as a video'),
    ({'path': '/somewhere'}, "path '/somewhere' is not used by source drawn"),
    ({'source': 'camera', 'camera_index': 61}, 'camera 61 cannot be opened'),
    ({'source': 'camera', 'truth': 'true'}, 'truth is not known for source camera'),
])
def test_wrong_value_is_one_line_and_exit_code_2(capfd, values, message):
    assert main(parameters(**values)) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith('image_source: error: ') and message in lines[0]


def test_wrong_value_ends_the_process_without_a_traceback(robot):
    process = robot.start(MODULE, *parameters(rate_hz=-1.0))
    assert process.process.wait(WAIT_S) == 2
    wait_for(lambda: process.log, 'the message')
    assert 'rate_hz' in process.log and 'Traceback' not in process.log


def test_unreadable_ros_arguments_are_refused(capfd):
    assert main(['--ros-args', '-p', 'rate_hz=4']) == 2
    assert 'image_source: error: --ros-args cannot be used' in capfd.readouterr().err
