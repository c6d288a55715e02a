"""One run at a time in a folder."""

import fcntl
import os
from pathlib import Path

from seg_ros.errors import ConfigError


def lock_folder(folder: Path) -> int:
    """Take a folder for this process, which leaves no file behind.

    A file system without locks, as some on a network are, refuses nothing.

    :return: what ``os.close`` gives the folder back by, as does the end of the process.
    :raises ConfigError: another run has the folder.
    :raises OSError: it cannot be read.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise ConfigError(f'{folder.resolve()}: another seg_train is writing its run there; wait '
                          'for it, end it, or give another --out') from error
    except OSError:
        pass
    return descriptor
