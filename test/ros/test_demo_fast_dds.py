"""The demo's Fast DDS profile, where Fast DDS is what carries the messages."""

import time
from xml.etree import ElementTree

import pytest
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo

from seg_ros.demo.fast_dds import use_profile

VARIABLE = 'FASTDDS_DEFAULT_PROFILES_FILE'
BEST_EFFORT = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=1,
                         reliability=ReliabilityPolicy.BEST_EFFORT)


def test_best_effort_subscription_gets_the_pictures(robot, tmp_path, monkeypatch):
    monkeypatch.setenv('ROS_DISTRO', 'kilted')
    monkeypatch.setenv(VARIABLE, 'to be removed afterwards')
    monkeypatch.delenv(VARIABLE)
    use_profile(tmp_path)
    images = robot.listen('/image', qos=BEST_EFFORT)
    infos = robot.listen('/camera_info', CameraInfo)
    robot.start('seg_ros.ros.image_source', '--ros-args', '-p', 'rate_hz:=10')
    deadline = time.monotonic() + 60
    while len(infos) < 30 and time.monotonic() < deadline:
        time.sleep(0.05)
    # Without the profile about a third of them arrives.
    assert len(images) > 0.7 * len(infos) > 0


def test_profile_of_the_user_stays(tmp_path, monkeypatch):
    monkeypatch.setenv('ROS_DISTRO', 'kilted')
    monkeypatch.setenv(VARIABLE, '/mine.xml')
    use_profile(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(('distro', 'variable'), [
    ('humble', 'FASTRTPS_DEFAULT_PROFILES_FILE'), ('jazzy', VARIABLE)])
def test_nothing_leaves_the_machine(tmp_path, monkeypatch, distro, variable):
    monkeypatch.setenv('ROS_DISTRO', distro)
    monkeypatch.setenv(variable, 'to be removed afterwards')
    monkeypatch.delenv(variable)
    use_profile(tmp_path)
    profile = ElementTree.parse(next(tmp_path.iterdir()))

    def texts(name: str) -> list[str | None]:
        return [each.text for each in profile.iter(f'{{http://www.eprosima.com}}{name}')]

    assert texts('useBuiltinTransports') == ['false']
    assert texts('type') == ['SHM', 'UDPv4'] and texts('address') == ['127.0.0.1']
