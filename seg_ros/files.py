"""Files that users name: read without waiting for ever, written whole or not at all."""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np


def read_start(path: Path, count: int) -> bytes:
    """Read a file that a user names, at most so many bytes of it.

    :raises OSError: it cannot be read, or is no file: a pipe or a device might never end.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, 'is no file', str(path))
    with open(path, 'rb') as file:
        return file.read(count)


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a path beside ``path`` to write to; renamed when the block ends, removed if it fails.

    What stood there before stays until then.

    :raises OSError: with the name of ``path``: the disk is full, or it cannot be written.
    """
    # The suffix stays, as OpenCV goes by it.
    beside = path.with_name(f'.{path.stem}.{os.getpid()}.part{path.suffix}')
    try:
        yield beside
        os.replace(beside, path)
    except OSError as error:  # on a full disk it has no name, else that of the file beside
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        beside.unlink(missing_ok=True)


def write_png(path: Path, picture: np.ndarray) -> None:
    """Write a picture.

    :param picture: (H, W) uint8, or (H, W, 3) uint8 RGB.
    :raises OSError: the disk is full or the folder cannot be written.
    """
    if picture.ndim == 3:
        picture = cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
    # Encoded first: cv2.imwrite does not say why it failed.
    _, data = cv2.imencode('.png', picture)
    with written_whole(path) as beside:
        beside.write_bytes(data.tobytes())


def write_json(path: Path, values: Any) -> None:
    """Write plain values.

    :raises OSError: the disk is full or the folder cannot be written.
    """
    with written_whole(path) as beside:
        beside.write_text(json.dumps(values, indent=2) + '\n', encoding='utf-8')
