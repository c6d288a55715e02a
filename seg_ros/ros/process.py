"""The edge of every node's process: exit codes, and one line instead of a traceback."""

import signal
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node

from seg_ros.errors import ConfigError

NodeType = TypeVar('NodeType', bound=Node)


def run_process(name: str, work: Callable[[], None], args: Sequence[str] | None) -> int:
    """Run a node until it is told to stop.

    :param name: what the error line begins with.
    :param work: makes the node and spins it.
    :param args: command line; None takes the process's.
    :return: exit code: 0 when it ended as asked, 2 for parameters that cannot be used.
    """
    # rclpy's own handler, which comes over this one, ends the context. A KeyboardInterrupt beside
    # it would break out of whatever runs; in a callback from C++ it aborts the process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _init(args)
        work()
    except ExternalShutdownException:
        pass
    except (ConfigError, ParameterException) as error:  # the latter of rclpy's own parameters
        print(f'{name}: error: {error}', file=sys.stderr)
        return 2
    except RuntimeError:  # from what was in hand when a signal ended the context
        if rclpy.ok():
            raise
    finally:
        rclpy.try_shutdown()
    return 0


def make_node(node_type: Callable[[], NodeType]) -> NodeType:
    """Make a node.

    :raises ConfigError: ROS cannot, as with security that it does not find.
    """
    try:
        return node_type()
    except RuntimeError as error:  # what rclpy raises, with what rcl says
        if not rclpy.ok():
            raise  # a signal has ended the context
        raise ConfigError(f'the node cannot be made: {str(error).splitlines()[0]}') from error


def _init(args: Sequence[str] | None) -> None:
    try:
        rclpy.init(args=None if args is None else list(args))
    except RuntimeError as error:  # what rclpy raises for --ros-args that it cannot read
        raise ConfigError(f'--ros-args cannot be used: {str(error).splitlines()[0]}') from error
