"""ROS nodes as processes of their own, that end with the demo."""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from seg_ros.demo import DemoError

# How long a process may take to end after each of these.
STOP_SIGNALS = ((signal.SIGINT, 5.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0))
LOG_LINES_SHOWN = 15
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux


def ros_environment() -> dict[str, str]:
    """Environment variables of a private ROS graph on this machine; a domain that is set stays."""
    environment = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
                   'ROS_DOMAIN_ID': os.environ.get('ROS_DOMAIN_ID', str(1 + os.getpid() % 100))}
    if os.environ.get('ROS_DISTRO') == 'humble':
        environment['ROS_LOCALHOST_ONLY'] = '1'  # Humble's word for the same
    if 'ROS_DISTRO' not in os.environ:  # the wheels bring this one
        environment['RMW_IMPLEMENTATION'] = 'rmw_fastrtps_cpp'
    return environment


class RosProcess:
    """A node that runs as ``python -m module``.

    :param name: what messages call it.
    :param parameters: its ROS parameters.
    :param log: file that takes all it prints.
    :param namespace: of the node and its topics, with a slash before it.
    """

    def __init__(self, name: str, module: str, parameters: Mapping[str, bool | int | float | str],
                 log: Path, namespace: str = '') -> None:
        self.name = name
        self.log = log
        self._command = [sys.executable, '-m', module, '--ros-args']
        for key, value in parameters.items():
            # JSON is YAML that stays text where a bare word would become a number.
            self._command += ['-p', f'{key}:={json.dumps(value)}']
        if namespace:
            self._command += ['-r', f'__ns:={namespace}']
        self._process: subprocess.Popen | None = None

    @property
    def pid(self) -> int | None:
        """Number of the process; None before the start."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        with self.log.open('wb') as log:
            # A session of its own: Ctrl-C in the terminal reaches the demo, which ends it.
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True, preexec_fn=_end_with_parent)

    def check(self) -> None:
        """:raises DemoError: the process has ended; shows the end of its log."""
        if self._process is not None and self._process.poll() is not None:
            raise DemoError(f'{self.name} ended with exit code {self._process.returncode}'
                            f'{self.end_of_log()}')

    def end_of_log(self) -> str:
        """Last lines of the log, and where it is."""
        lines = self.log.read_text(errors='replace').splitlines()[-LOG_LINES_SHOWN:]
        return '\n'.join([f'; the end of the log {self.log}:', *(f'  {line}' for line in lines)])

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def ended_by(self, deadline_s: float) -> bool:
        """Wait until a moment of the monotonic clock; return whether it has ended."""
        if self._process is None:
            return True
        try:
            self._process.wait(max(0.0, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True


@contextlib.contextmanager
def running(processes: Sequence[RosProcess]) -> Iterator[None]:
    """Start them; end them all on the way out, whatever the way."""
    try:
        for process in processes:
            process.start()
        yield
    finally:
        _stop(processes)


def _stop(processes: Sequence[RosProcess]) -> None:
    for number, patience_s in STOP_SIGNALS:
        for process in processes:
            process.signal(number)
        deadline_s = time.monotonic() + patience_s
        if all([process.ended_by(deadline_s) for process in processes]):
            return


def _end_with_parent() -> None:
    """In the child: have the kernel end it if the demo is killed without a chance to do so."""
    if sys.platform == 'linux':
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
