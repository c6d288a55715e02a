"""What SROS 2 needs to know of the node."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from robot import wait_until

POLICY = Path(__file__).parents[2] / 'config' / 'sros2.policy.xml'
NOT_EVERYWHERE = {'/segmentation/label_info',  # needs vision_msgs
                  '/image/compressed',  # with the parameter image_transport
                  '/segmentation/get_type_description'}  # from Jazzy on


def allowed(kind: str, right: str) -> set[str]:
    """Full names of what the policy allows."""
    return {element.text.replace('~', '/segmentation') if element.text[0] in '~/'
            else f'/{element.text}'
            for rights in ElementTree.parse(POLICY).iter(f'{kind}s')
            if rights.get(right) == 'ALLOW' for element in rights}


def test_policy_allows_what_the_node_does_and_no_more(robot):
    robot.start_node(use_sim_time='true')
    robot.listen('/segmentation/labels')
    robot.wait_for_subscriber(robot.publisher())

    def named(of, expected: set[str]) -> bool:
        names = {name for name, _ in of('segmentation', '/')}
        return names | NOT_EVERYWHERE == expected | NOT_EVERYWHERE

    node = robot.node
    for names, kind, right in (
            (node.get_publisher_names_and_types_by_node, 'topic', 'publish'),
            (node.get_service_names_and_types_by_node, 'service', 'reply'),
            (node.get_subscriber_names_and_types_by_node, 'topic', 'subscribe')):
        expected = allowed(kind, right)
        wait_until(lambda of=names, those=expected: named(of, those), right)


@pytest.mark.parametrize('module', ['seg_ros.ros.node', 'seg_ros.ros.image_source'])
def test_security_that_cannot_be_had_is_one_line(tmp_path, module):
    (tmp_path / 'enclaves').mkdir()  # without a certificate
    result = subprocess.run(
        [sys.executable, '-m', module], capture_output=True, text=True, timeout=60,
        env={**os.environ, 'ROS_SECURITY_ENABLE': 'true', 'ROS_SECURITY_STRATEGY': 'Enforce',
             'ROS_SECURITY_KEYSTORE': str(tmp_path)})
    assert result.returncode == 2
    assert 'Traceback' not in result.stderr
    assert 'the node cannot be made' in result.stderr
