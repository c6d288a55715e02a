"""ROS in this process, for as long as a block runs."""

import contextlib
from collections.abc import Iterator

import rclpy
from rclpy.executors import Executor
from rclpy.signals import SignalHandlerOptions

from seg_ros.ros.spinning import single_threaded_executor


@contextlib.contextmanager
def ros_context() -> Iterator[Executor]:
    """Without handlers of its own: whoever uses it ends in its own order.

    :return: for the nodes of this process.
    """
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    try:
        with single_threaded_executor() as executor:
            yield executor
    finally:
        rclpy.try_shutdown()
