"""label_info needs vision_msgs, which a distro has and the ROS wheels have not."""

from pathlib import Path

import pytest

vision_msgs = pytest.importorskip('vision_msgs.msg')

from seg_ros.label_map import find_label_map  # noqa: E402
from seg_ros.labels import CAMVID  # noqa: E402
from seg_ros.ros.outputs import LATCHED_QOS  # noqa: E402

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize('label_map', ['', 'config/autoware.yaml'])
def test_label_info_waits_for_those_who_come_late(robot, label_map):
    from robot import wait_until

    robot.start_node(label_map=label_map and ROOT / label_map)
    heard = robot.listen('/segmentation/label_info', vision_msgs.LabelInfo, LATCHED_QOS)
    wait_until(lambda: heard, 'label_info')
    classes = {item.class_id: item.class_name for item in heard[0].class_map}
    expected = find_label_map(ROOT / label_map, CAMVID, print).labels if label_map else CAMVID
    assert classes == dict(zip(expected.ids, expected.names, strict=True))
