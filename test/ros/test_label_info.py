"""label_info needs vision_msgs, which a distro has and the ROS wheels have not."""

import pytest

vision_msgs = pytest.importorskip('vision_msgs.msg')

from seg_ros.labels import CAMVID  # noqa: E402
from seg_ros.ros.outputs import LATCHED_QOS  # noqa: E402


def test_label_info_waits_for_those_who_come_late(robot):
    from robot import wait_until

    robot.start_node()
    heard = robot.listen('/segmentation/label_info', vision_msgs.LabelInfo, LATCHED_QOS)
    wait_until(lambda: heard, 'label_info')
    classes = {item.class_id: item.class_name for item in heard[0].class_map}
    assert classes == dict(zip(CAMVID.ids, CAMVID.names, strict=True))
