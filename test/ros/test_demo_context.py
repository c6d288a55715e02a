"""ROS in the process of the demo."""

import pytest
import rclpy
from rclpy.node import Node

from seg_ros.demo.context import ros_context


def test_executor_lets_go_of_its_nodes_before_the_context_ends():
    with pytest.raises(KeyboardInterrupt), ros_context() as executor:
        executor.add_node(Node('listener'))
        executor.spin_once(timeout_sec=0)
        raise KeyboardInterrupt
    assert not rclpy.ok()
    assert not executor.get_nodes()
