"""Pictures and videos that a command is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2

from seg_ros.errors import ConfigError, ImageError
from seg_ros.picture_sources import PICTURE_SUFFIXES

# Else OpenCV writes lines of its own beside the one error of a file that cannot be read.
if hasattr(cv2.utils, 'logging'):  # not in 4.5
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)


@dataclass(frozen=True)
class Input:
    """One file to work on.

    :param frames: 1 for a picture; for a video what its header says, 0 where it says nothing.
    """

    path: Path
    is_video: bool = False
    frames: int = 1


def find_inputs(paths: Sequence[Path]) -> list[Input]:
    """Files that are named, and the pictures of folders that are named, sorted by name.

    :raises ImageError: a path does not exist, a folder holds no picture, or a file is neither
        a picture nor a video.
    :raises ConfigError: two files have the same stem, which results are named by.
    """
    inputs: list[Input] = []
    for path in paths:
        inputs.extend(_pictures_of(path) if path.is_dir() else [_inspect(path)])
    seen: dict[str, Path] = {}
    for each in inputs:
        first = seen.setdefault(each.path.stem, each.path)
        if first is not each.path:
            raise ConfigError(f'{first} and {each.path}: results are named by "{each.path.stem}" '
                              'and would overwrite each other; rename one or run twice')
    return inputs


def count_frames(inputs: Sequence[Input]) -> int | None:
    """Frames of all inputs; None where a video does not say."""
    counts = [each.frames for each in inputs]
    return sum(counts) if all(counts) else None


def _pictures_of(folder: Path) -> list[Input]:
    pictures = [Input(path) for path in sorted(folder.iterdir())
                if path.suffix.lower() in PICTURE_SUFFIXES and path.is_file()]
    if not pictures:
        raise ImageError(f'{folder.resolve()}: no picture in this folder; expected files that '
                         f'end in {", ".join(PICTURE_SUFFIXES)}')
    return pictures


def _inspect(path: Path) -> Input:
    if not path.is_file():
        raise ImageError(f'{path.absolute()}: no such file; give pictures, folders or videos')
    # OpenCV takes a picture with a number in its name for the first of a film.
    if path.suffix.lower() in PICTURE_SUFFIXES or cv2.haveImageReader(str(path)):
        return Input(path)
    capture = cv2.VideoCapture(str(path))
    frames = capture.get(cv2.CAP_PROP_FRAME_COUNT)
    opened = capture.isOpened()
    capture.release()
    if not opened:
        raise ImageError(f'{path.resolve()}: neither a picture nor a video that this OpenCV '
                         'reads; convert it to PNG, JPEG or MP4')
    return Input(path, is_video=True, frames=int(frames) if 0 < frames < 1e9 else 0)
