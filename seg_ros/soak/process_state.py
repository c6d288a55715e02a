"""What a process holds at a moment, by the word of the Linux kernel."""

import os
from dataclasses import dataclass
from pathlib import Path

from seg_ros.errors import ConfigError

PROC = Path('/proc')


@dataclass(frozen=True)
class ProcessState:
    """What one process holds.

    :param memory_mb: resident, but for shared memory, in units of 1024 x 1024 bytes.
    :param shared_mb: of shared memory what it has touched, likewise.
    :param cpu_s: seconds of all cores together since its start.
    """

    memory_mb: float
    shared_mb: float
    file_descriptors: int
    threads: int
    cpu_s: float


def check_system() -> None:
    """:raises ConfigError: the system does not tell what processes hold."""
    if read_process(PROC / 'self') is None:
        raise ConfigError(f'{PROC}: is not there, or does not tell enough; a soak reads of it '
                          'what the node holds, which needs Linux')


def read_process(folder: Path) -> ProcessState | None:
    """State of a process; None if it has ended.

    :param folder: of the process, in /proc.
    """
    try:
        lines = (folder / 'status').read_text().splitlines()
        status = dict(line.split(':', 1) for line in lines)
        own, mapped, shared = (int(status[name].split()[0]) / 1024
                               for name in ('RssAnon', 'RssFile', 'RssShmem'))
        file_descriptors = len(os.listdir(folder / 'fd'))
        # The second field is the name in brackets, which may have spaces and brackets itself.
        fields = (folder / 'stat').read_text().rpartition(')')[2].split()
    except (OSError, KeyError):  # of one that nobody waited for the memory is gone already
        return None
    ticks = int(fields[11]) + int(fields[12])  # in user code and in the kernel
    return ProcessState(own + mapped, shared, file_descriptors, int(status['Threads']),
                        ticks / os.sysconf('SC_CLK_TCK'))
