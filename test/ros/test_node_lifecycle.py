"""Every transition of the managed node, and what happens when it fails."""

import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.srv import ChangeState
from robot import WAIT_S, make_image, wait_until

from seg_ros.drawn_scene import DrawnScene
from seg_ros.labels import CAMVID, LabelSet
from seg_ros.model_file import load_model, save_model
from seg_ros.ros.diagnostics import could_not_start


def test_every_transition_in_turn(robot):
    node = robot.start_node(autostart='false', wait='')
    assert robot.state() == 'unconfigured'
    labels = robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    image = make_image(DrawnScene(1, 640, 480).frame(0.0)[0])
    for _ in range(2):
        assert robot.change_state('configure')
        assert robot.state() == 'inactive'
        assert robot.change_state('activate')
        assert robot.state() == 'active'
        robot.wait_for_subscriber(publisher)
        robot.label(publisher, image, labels)
        assert robot.change_state('deactivate')
        assert robot.state() == 'inactive'
        wait_until(lambda: publisher.get_subscription_count() == 0, 'the subscription to end')
        assert robot.change_state('cleanup')
        assert robot.state() == 'unconfigured'
        labels.clear()
    assert robot.change_state('shutdown')
    assert robot.state() == 'finalized'
    assert node.stop() == 0


def test_nothing_is_published_while_inactive(robot):
    robot.start_node()
    labels = robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    image = make_image(DrawnScene(1, 640, 480).frame(0.0)[0])
    robot.label(publisher, image, labels)
    assert robot.change_state('deactivate')
    labels.clear()
    for _ in range(5):
        publisher.publish(image)
        time.sleep(0.1)
    assert not labels
    assert robot.change_state('activate')
    robot.label(publisher, image, labels)


@pytest.mark.parametrize(('parameters', 'complaint'), [
    ({'model': '/no/such/model.safetensors'}, r'/no/such/model\.safetensors: no such model file'),
    ({'engine': 'torch', 'device': 'cuda:7'}, r'cuda:7'),
])
def test_failed_configure_leaves_node_unconfigured_and_answering(robot, parameters, complaint):
    node = robot.start_node(wait='cannot configure', **parameters)
    node.wait_for_log(complaint)
    assert 'Traceback' not in node.log
    status, _ = robot.diagnostics()
    assert status.level == DiagnosticStatus.ERROR
    assert status.message.startswith('unconfigured: cannot configure: ')
    assert re.search(complaint, status.message)
    for name in parameters:  # corrected in place, it comes up
        assert robot.set_parameter(name, 'auto' if name != 'model' else '')[0]
    assert robot.change_state('configure')
    status, _ = robot.diagnostics(lambda values: values['state'] == 'inactive')
    assert (status.level, status.message) == (DiagnosticStatus.OK, 'inactive')
    assert node.stop() == 0


def test_failed_reconfigure_leaves_node_unconfigured(robot):
    node = robot.start_node()
    assert robot.change_state('deactivate')
    assert robot.change_state('cleanup')
    assert robot.set_parameter('model', '/gone.safetensors')[0]
    assert not robot.change_state('configure')
    node.wait_for_log(r'cannot configure: /gone\.safetensors')
    assert robot.state() == 'unconfigured'
    assert not robot.change_state('activate')
    assert robot.state() == 'unconfigured'


@pytest.mark.parametrize(('transition', 'state'), [
    ('activate', 'unconfigured'), ('deactivate', 'unconfigured'), ('cleanup', 'unconfigured'),
    ('configure', 'active'), ('activate', 'active'), ('cleanup', 'active')])
def test_transition_out_of_turn_is_refused_and_changes_nothing(robot, transition, state):
    node = robot.start_node(autostart=str(state == 'active').lower(),
                            wait='labelling' if state == 'active' else '')
    assert robot.state() == state
    assert not robot.change_state(transition)
    assert robot.state() == state
    assert node.stop() == 0


def test_damaged_model_file_is_refused_by_name(robot, tmp_path):
    damaged = tmp_path / 'damaged.safetensors'
    damaged.write_bytes(b'\x10\x00\x00\x00\x00\x00\x00\x00{"a": 1}')
    node = robot.start_node(wait='cannot configure', model=damaged)
    assert str(damaged) in node.log
    assert 'Traceback' not in node.log
    assert robot.state() == 'unconfigured'


@pytest.mark.parametrize('signal_number', [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize('autostart', ['true', 'false'])
def test_ends_quietly_on_a_signal(robot, signal_number, autostart):
    node = robot.start_node(autostart=autostart, wait='labelling' if autostart == 'true' else '')
    robot.state()
    assert node.stop(signal_number) == 0
    assert 'Traceback' not in node.log


@pytest.mark.parametrize('after_s', [0.2, 0.8, 1.6, 3.0])
def test_ends_quietly_while_it_starts(after_s):
    """As installed; the signal comes again and again, as from a terminal and a launch."""
    code = 'import sys; from seg_ros.commands import seg_node; print("on", flush=True); seg_node()'
    process = subprocess.Popen([sys.executable, '-c', code], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    assert process.stdout.readline() == 'on\n'
    time.sleep(after_s)
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.03)
    try:
        log = process.communicate(timeout=20)[0]
    finally:
        process.kill()
    assert 'Traceback' not in log
    assert process.returncode == 0


def test_ends_quietly_while_it_configures(robot):
    """SIGTERM, as a launch sends it, does not interrupt Python: the context goes underneath."""
    node = robot.start_node(autostart='false', wait='', engine='auto')
    assert robot.state() == 'unconfigured'
    client = robot.node.create_client(ChangeState, '/segmentation/change_state')
    assert client.wait_for_service(WAIT_S)
    request = ChangeState.Request()
    request.transition.label = 'configure'
    client.call_async(request)
    time.sleep(0.3)
    assert node.stop(signal.SIGTERM) == 0
    assert 'Traceback' not in node.log


def test_ends_quietly_in_the_middle_of_a_stream(robot):
    node = robot.start_node()
    labels = robot.listen('/segmentation/labels')
    robot.start('seg_ros.ros.image_source', '--ros-args', '-p', 'rate_hz:=30.0')
    wait_until(lambda: len(labels) > 3, 'labels')
    assert node.stop() == 0
    assert 'Traceback' not in node.log


def test_classes_are_parameters_that_clients_can_only_read(robot):
    robot.start_node()
    assert tuple(robot.get_parameter('class_names')) == CAMVID.names
    assert list(robot.get_parameter('class_colors')) == [c for rgb in CAMVID.colors for c in rgb]
    for name, value in (('class_names', ['a', 'b']), ('class_colors', [1, 2, 3])):
        successful, reason = robot.set_parameter(name, value)
        assert not successful
        assert 'read-only' in reason
    assert tuple(robot.get_parameter('class_names')) == CAMVID.names


def test_model_changes_while_inactive_and_a_wrong_one_changes_nothing(robot, tmp_path):
    """The weights of the strip network under other class names: a change that everyone sees."""
    model = load_model('strip_camvid')
    other = LabelSet(tuple(name.upper() for name in CAMVID.names), CAMVID.colors,
                     tuple(range(20, 31)))
    save_model(tmp_path / 'other.safetensors', model.network, replace(model.spec, labels=other))
    damaged = tmp_path / 'damaged.safetensors'
    damaged.write_bytes((tmp_path / 'other.safetensors').read_bytes()[:-1])
    node = robot.start_node()
    labels = robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    image = make_image(DrawnScene(1, 640, 480).frame(0.0)[0], 1.0)
    first = robot.label(publisher, image, labels)

    def refused(value, reason: str) -> None:
        successful, said = robot.set_parameter('model', str(value))
        assert not successful
        assert reason in said
        assert robot.get_parameter('model') == ''
        assert tuple(robot.get_parameter('class_names')) == CAMVID.names

    refused(damaged, 'deactivate it first')
    refused(tmp_path / 'other.safetensors', 'deactivate it first')
    assert robot.change_state('deactivate')
    refused(damaged, str(damaged))
    refused('/gone.safetensors', 'no such model file')
    assert robot.change_state('activate')
    image.header.stamp.sec = 2
    assert robot.label(publisher, image, labels).data == first.data, 'the old one stayed'
    assert robot.change_state('deactivate')
    assert robot.set_parameter('model', str(tmp_path / 'other.safetensors')) == (True, '')
    assert robot.state() == 'inactive'
    assert tuple(robot.get_parameter('class_names')) == other.names
    assert robot.change_state('activate')
    image.header.stamp.sec = 3
    assert set(bytes(robot.label(publisher, image, labels).data)) <= set(range(20, 31))
    assert len(robot.node.get_publishers_info_by_topic('/segmentation/labels')) == 1
    assert node.stop() == 0
    assert 'Traceback' not in node.log


def test_what_the_engine_announces_is_in_the_diagnostics_while_it_configures(robot):
    robot.start_node(wait='', autostart='false', engine='auto')
    robot.diagnostics()  # from now on it is heard
    heard = robot.heard['/diagnostics']
    robot.change_state('configure')

    def announced() -> list[dict[str, str]]:
        told = [{pair.key: pair.value for pair in array.status[0].values} for array in list(heard)]
        return [values for values in told if values.get('announced')]

    first = wait_until(announced, 'an announcement')[0]
    assert first['announced'].startswith('engine: ')
    assert first['state'] == 'configuring'
    assert not could_not_start(first) and could_not_start({'state': 'unconfigured'})
