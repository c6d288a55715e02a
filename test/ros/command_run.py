"""A command that starts nodes, run in a folder of its own."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).parents[2]
WAIT_S = 240.0  # two processes start on a machine that may be busy


class CommandRun:
    """``python -m module``; its folder takes what it prints, all its processes carry a mark."""

    def __init__(self, folder: Path, module: str, *arguments: str) -> None:
        self.folder = folder
        self.mark = uuid.uuid4().hex
        environment = {**os.environ, 'SEG_ROS_TEST': self.mark,
                       'PYTHONPATH': os.pathsep.join(
                           [str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])])}
        self.process = subprocess.Popen(
            [sys.executable, '-m', module, *arguments], cwd=folder, env=environment,
            stdout=(folder / 'out').open('w'), stderr=(folder / 'err').open('w'))

    @property
    def out(self) -> str:
        return (self.folder / 'out').read_text()

    @property
    def err(self) -> str:
        return (self.folder / 'err').read_text()

    def wait(self) -> int:
        return self.process.wait(WAIT_S)

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while text not in self.out:
            assert self.process.poll() is None, self.out + self.err
            assert time.monotonic() < deadline, self.out + self.err
            time.sleep(0.05)

    def left_behind(self) -> list[int]:
        """Processes of this run that still exist."""
        found = []
        for path in Path('/proc').glob('[0-9]*/environ'):
            try:
                if f'SEG_ROS_TEST={self.mark}'.encode() in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:  # it has just ended, or is not ours
                continue
        return found

    def close(self) -> None:
        for pid in self.left_behind():
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
