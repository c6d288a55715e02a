"""ROS in this process, for as long as a block runs."""

import contextlib
from collections.abc import Iterator

import rclpy
from rclpy.signals import SignalHandlerOptions


@contextlib.contextmanager
def ros_context() -> Iterator[None]:
    """Without handlers of its own: whoever uses it ends in its own order."""
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    try:
        yield
    finally:
        rclpy.try_shutdown()
