"""The edge of every command: an error of the user is one line, never a traceback."""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from seg_ros.errors import ConfigError, SegRosError


def run(command: Callable[[argparse.Namespace], int], parser: argparse.ArgumentParser,
        argv: Sequence[str] | None = None) -> int:
    """Run a command on the process's arguments.

    :return: exit code: 0 done, 1 failed while working, 2 wrong use, 130 interrupted.
    """
    arguments = parser.parse_args(argv)
    try:
        return command(arguments)
    except SegRosError as error:
        print(f'{parser.prog}: error: {error}', file=sys.stderr)
        return error.exit_code
    except OSError as error:  # a full disk, a folder without permission
        where = f'{error.filename}: ' if error.filename else ''
        print(f'{parser.prog}: error: {where}{error.strerror or error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f'{parser.prog}: interrupted', file=sys.stderr)
        return 130


@contextmanager
def clearing_up_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does; by itself it ends a process where it stands, and
    what was half written stays.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def check_result_file(path: Path) -> None:
    """Find out before the work whether what comes of it can be written.

    :raises ConfigError: the folder is not there, or the path is one.
    """
    if not path.absolute().parent.is_dir():
        raise ConfigError(f'{path.absolute().parent}: no such folder; make it first')
    if path.is_dir():
        raise ConfigError(f'{path.resolve()}: is a folder; give the name of a file in it')
