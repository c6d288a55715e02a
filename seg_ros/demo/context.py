"""ROS in this process, for as long as a block runs."""

import contextlib
from collections.abc import Iterator

import rclpy
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions


@contextlib.contextmanager
def ros_context() -> Iterator[Executor]:
    """Without handlers of its own: whoever uses it ends in its own order.

    :return: for the nodes of this process. One that is left to the garbage collector may write a
        traceback to stderr.
    """
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    try:
        with SingleThreadedExecutor() as executor:
            yield executor
    finally:
        rclpy.try_shutdown()
