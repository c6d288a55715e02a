"""The node and the image source while they run, and a monitor that hears both."""

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rclpy.executors import Executor

from seg_ros.demo import DemoError
from seg_ros.demo.context import ros_context
from seg_ros.demo.fast_dds import use_profile
from seg_ros.demo.interruption import Interruption
from seg_ros.demo.monitor import Monitor
from seg_ros.demo.processes import RosProcess, ros_environment, running
from seg_ros.ros.diagnostics import could_not_start

STARTUP_PATIENCE_S = 180.0  # the first start of an engine may build it for the device
NEWS_PERIOD_S = 10.0
LISTEN_S = 0.05


@dataclass(frozen=True)
class LiveGraph:
    """A ROS graph of two processes and this one."""

    node: RosProcess
    source: RosProcess
    executor: Executor
    interruption: Interruption


@contextlib.contextmanager
def live_graph(node: RosProcess, source: RosProcess) -> Iterator[LiveGraph]:
    """Start both on a private graph, which this process joins; end all on the way out."""
    os.environ.update(ros_environment())
    with tempfile.TemporaryDirectory() as scratch, Interruption() as interruption:
        use_profile(Path(scratch))
        with running([node, source]), ros_context() as executor:
            yield LiveGraph(node, source, executor, interruption)


class LiveNode:
    """Follows both within a :func:`live_graph`.

    :param drawn: as of the monitor, like ``on_frame``.
    """

    def __init__(self, graph: LiveGraph, drawn: bool,
                 on_frame: Callable[[np.ndarray, np.ndarray], None]) -> None:
        self.monitor = Monitor(graph.executor, drawn, on_frame)
        self._node = graph.node
        self._processes = (graph.node, graph.source)
        self._interruption = graph.interruption
        self._started_s = time.monotonic()

    def wait_for_first_label(self) -> None:
        """Show how the node comes up.

        :raises DemoError: it does not, or not within a time.
        :raises KeyboardInterrupt: all is to end.
        """
        print(f'starting the image source and the node; their logs are in '
              f'{self._node.log.parent}/', flush=True)
        stage, said_s = '', 0.0
        while not self.monitor.statistics.labelled:
            self.listen()
            passed_s = time.monotonic() - self._started_s
            now = self.monitor.startup_stage
            if now != stage or passed_s - said_s >= NEWS_PERIOD_S:
                print(f'{passed_s:6.1f} s  {now}', flush=True)
                stage, said_s = now, passed_s
            if could_not_start(self.monitor.diagnostics):
                raise DemoError(f'the segmentation node could not start{self._node.end_of_log()}')
            if passed_s > STARTUP_PATIENCE_S:
                logs = ''.join(process.end_of_log() for process in self._processes)
                raise DemoError(f'no label image within {STARTUP_PATIENCE_S:g} s: {now}{logs}')
        print(f'first label image after {time.monotonic() - self._started_s:.1f} s', flush=True)

    def listen(self) -> None:
        """Receive for a moment.

        :raises DemoError: a process ended.
        :raises KeyboardInterrupt: all is to end.
        """
        self.monitor.listen(LISTEN_S)
        self._interruption.check()
        for process in self._processes:
            process.check()
