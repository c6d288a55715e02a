"""Parameters: given at start, changed under load, refused."""

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from robot import drawn, make_image, wait_until

from seg_ros.drawn_scene import DrawnScene
from seg_ros.errors import ConfigError
from seg_ros.labels import CAMVID
from seg_ros.render import draw_legend
from seg_ros.ros.config import PARAMETERS, TABLE, default_yaml
from seg_ros.sizes import read_size

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(('name', 'value', 'expected'), [
    ('overlay_alpha', '1.5', '0 to 1'), ('overlay_alpha', 'much', '0 to 1'),
    ('min_confidence', '-0.1', '0 to 1'), ('threads', '-1', '0 to 1024'),
    ('threads', '2.5', '0 to 1024'), ('engine', 'tensorflow', 'openvino'),
    ('precision', 'float8', 'float32'), ('reliability', 'yes_please', 'best_effort'),
    ('network_size', '480', '480x360'), ('output_size', '8x8', '480x360'),
    ('autostart', '3', 'true or false'), ('no_frames_after_s', '0', '0.1 to 3600'),
    ('min_confidence', '.nan', '0 to 1'), ('encoding_override', 'rgb', 'bgr8'),
    ('use_sim_time', 'banana', 'BOOL'), ('cameras', '[front, front]', '[front, left]'),
])
def test_wrong_value_at_start_is_refused_with_its_name_and_range(name, value, expected):
    result = subprocess.run(
        [sys.executable, '-m', 'seg_ros.ros.node', '--ros-args', '-p', f'{name}:={value}'],
        capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert 'Traceback' not in result.stderr
    assert name in result.stderr
    assert expected in result.stderr


def test_unreadable_ros_arguments_are_one_line(tmp_path):
    result = subprocess.run(
        [sys.executable, '-m', 'seg_ros.ros.node', '--ros-args', '--params-file',
         str(tmp_path / 'absent.yaml')], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert 'Traceback' not in result.stderr
    assert 'absent.yaml' in result.stderr


def test_integer_is_taken_for_a_float(robot):
    robot.start_node(overlay_alpha=1, min_confidence=0, no_frames_after_s=7)
    assert robot.set_parameter('overlay_alpha', 0) == (True, '')


def test_values_of_unknown_parameters_are_told_with_the_nearest_name(robot):
    node = robot.start_node(overlay_alfa=0.3, **{
        'qos_overrides./image.subscripton.depth': 4, 'qos_overrides./image.subscription.depth': 4})
    told = [line for line in node.log.splitlines() if 'is not known' in line]
    assert len(told) == 2
    assert any('parameter overlay_alfa: is not known, its value has no effect; did you mean '
               'overlay_alpha?' in line for line in told)
    assert any('did you mean qos_overrides./image.subscription.depth?' in line for line in told)


def test_live_parameters_answer_while_frames_flow_and_take_effect(robot):
    robot.start_node()
    labels = robot.listen('/segmentation/labels')
    overlays = robot.listen('/segmentation/overlay')
    robot.start('seg_ros.ros.image_source', '--ros-args', '-p', 'rate_hz:=30.0')
    wait_until(lambda: len(labels) > 2, 'labels')
    assert bytes(labels[-1].data).count(255) == 0
    for alpha, confidence in ((0.0, 0.0), (1.0, 0.5), (0.5, 1.0)):
        started = time.monotonic()
        assert robot.set_parameter('overlay_alpha', alpha) == (True, '')
        assert robot.set_parameter('min_confidence', confidence) == (True, '')
        assert time.monotonic() - started < 5
    count = len(labels)
    wait_until(lambda: len(labels) > count + 2, 'more labels')
    # Of a certainty of 1 no network is about the outlines, at the least.
    assert bytes(labels[-1].data).count(255) > 0.1 * len(labels[-1].data)
    assert overlays


@pytest.mark.parametrize(('name', 'value', 'reason'), [
    # What is out of range, rclpy itself refuses, in its own words.
    ('overlay_alpha', 2.0, 'Min: 0.0, Max: 1.0'), ('overlay_alpha', 'red', '0 to 1'),
    ('min_confidence', float('nan'), 'Min: 0.0, Max: 1.0'),
    ('model', 'other.safetensors', 'configured'),
    ('reliability', 'reliable', 'configured'),
])
def test_refused_change_says_why_and_changes_nothing(robot, name, value, reason):
    robot.start_node()
    before = robot.get_parameter(name)
    successful, said = robot.set_parameter(name, value)
    assert not successful
    assert name in said
    assert reason in said
    assert robot.get_parameter(name) == before
    labels = robot.listen('/segmentation/labels')
    robot.label(robot.publisher(), make_image(DrawnScene(1, 640, 480).frame(0.0)[0]), labels)


def test_legend_comes_into_the_overlay_while_the_node_runs(robot):
    robot.start_node()
    overlays = robot.listen('/segmentation/overlay')
    publisher = robot.publisher()
    image = make_image(drawn(320, 240))
    robot.wait_for_subscriber(publisher)
    plain = robot.label(publisher, image, overlays)
    expected = np.array(plain.data, np.uint8).reshape(240, 320, 3)
    draw_legend(expected, CAMVID)
    assert robot.set_parameter('overlay_legend', True) == (True, '')
    overlays.clear()
    assert bytes(robot.label(publisher, image, overlays).data) == expected.tobytes()
    assert expected.tobytes() != bytes(plain.data)


def test_shorter_diagnostics_period_takes_effect_at_once(robot):
    robot.start_node(autostart='false', wait='', diagnostics_period_s=3600)
    assert robot.set_parameter('diagnostics_period_s', 0.2) == (True, '')
    robot.diagnostics(timeout_s=10)


def test_descriptors_carry_description_and_range(robot):
    robot.start_node(autostart='false', wait='')
    alpha = robot.describe_parameter('overlay_alpha')
    assert 'overlay' in alpha.description
    assert (alpha.floating_point_range[0].from_value,
            alpha.floating_point_range[0].to_value) == (0.0, 1.0)
    threads = robot.describe_parameter('threads')
    assert (threads.integer_range[0].from_value, threads.integer_range[0].to_value) == (0, 1024)
    assert 'openvino' in robot.describe_parameter('engine').additional_constraints


def test_shipped_yaml_is_the_table():
    text = (ROOT / 'config' / 'seg.yaml').read_text()
    assert text == default_yaml(), 'run: python -m seg_ros.ros.config > config/seg.yaml'
    assert re.findall(r'^    (\w+):', text, re.M) == [row.name for row in PARAMETERS]


def test_node_starts_with_the_shipped_yaml(robot):
    node = robot.start('seg_ros.ros.node', '--ros-args', '--params-file',
                       str(ROOT / 'config' / 'seg.yaml'))
    node.wait_for_log('labelling')


def test_size_is_width_times_height_and_read_as_height_first():
    assert read_size('640x480') == (480, 640)
    for wrong in ('640', '640*480', '31x480', '640x9000', 'x', '-640x480', '640x480 '):
        assert read_size(wrong) is None


@pytest.mark.parametrize('names', [
    ['front', ''], ['', ''], ['1front'], ['front left'], ['/front'], ['front/'], ['front//left'],
    ['front-left'], ['~'], ['vorne_ä'], ['f' * 101], ['front', 1], 'front', '', 3])
def test_names_of_cameras_that_cannot_begin_a_topic_are_refused(names):
    with pytest.raises(ConfigError) as raised:
        TABLE['cameras'].check(names)
    assert str(raised.value).startswith(f'parameter cameras: got {names!r}, expected names such')


@pytest.mark.parametrize('names', [[], [''], ['front'], ['_1'], ['stereo/left', 'stereo/right'],
                                   ['front', 'Front'], ['f' * 100]])
def test_names_of_cameras_that_can_begin_a_topic_are_taken(names):
    assert TABLE['cameras'].check(names) == names


@pytest.mark.parametrize(('written', 'topics', 'kept'), [
    ('[]', '/image', ['']),
    ('\n      - front\n      - stereo/left', '/front/image, /stereo/left/image',
     ['front', 'stereo/left'])])
def test_cameras_are_read_from_a_file(robot, tmp_path, written, topics, kept):
    """Of an empty list ROS tells no type, and so no value; people write it all the same."""
    file = tmp_path / 'parameters.yaml'
    file.write_text(f'/**:\n  ros__parameters:\n    cameras: {written}\n    threads: 1\n')
    node = robot.start('seg_ros.ros.node', '--ros-args', '--params-file', str(file))
    node.wait_for_log(f'labelling {topics}\n')
    assert robot.get_parameter('cameras') == kept


def test_cameras_change_where_the_node_is_not_configured(robot):
    node = robot.start_node(autostart='false', wait='')
    for names, topics in ((['front', 'left'], '/front/image, /left/image'), ([], '/image')):
        assert robot.set_parameter('cameras', names) == (True, '')
        assert robot.change_state('configure')
        assert robot.change_state('activate')
        node.wait_for_log(f'labelling {topics}\n')
        robot.diagnostics(lambda values: values['state'] == 'active',
                          name=f'segmentation: {names[1] if names else "image"}')
        successful, reason = robot.set_parameter('cameras', ['rear'])
        assert not successful
        assert 'configured' in reason
        assert robot.change_state('deactivate')
        assert robot.change_state('cleanup')
    assert robot.set_parameter('cameras', ['rear', 'rear'])[0] is False


@pytest.mark.parametrize(('name', 'value'), [('overlay_alpha', True), ('threads', False),
                                             ('model', 3), ('autostart', 1)])
def test_types_are_not_mixed_up(name, value):
    with pytest.raises(ConfigError, match=name):
        TABLE[name].check(value)
