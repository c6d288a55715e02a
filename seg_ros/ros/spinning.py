"""An executor, for as long as a block runs."""

import contextlib
from collections.abc import Iterator

from rclpy.executors import Executor, SingleThreadedExecutor


@contextlib.contextmanager
def single_threaded_executor() -> Iterator[Executor]:
    """Give an executor and shut it down: one that is left to the garbage collector may write a
    traceback. Humble's are no context managers themselves.
    """
    executor = SingleThreadedExecutor()
    try:
        yield executor
    finally:
        executor.shutdown()
