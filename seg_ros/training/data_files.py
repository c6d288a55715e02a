"""Files of a data set, whole as they lie on the disk."""

from pathlib import Path

from seg_ros.errors import DataError


def read_file(path: Path) -> bytes:
    """Read a picture's or label file's bytes.

    :raises DataError: it cannot be read; where its folder is gone too, as with a disk that was
        unplugged, the message says what is left of the way to it.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        path = path.resolve()
        left = next(folder for folder in path.parents if folder.is_dir())
        if left == path.parent:
            raise DataError(f'{path}: no such file; restore it') from error
        raise DataError(f'{path}: its folder is gone, of the way to it {left} is left; bring it '
                        'back') from error
    except OSError as error:
        raise DataError(f'{path.resolve()}: cannot be read: {error.strerror}; restore it'
                        ) from error
