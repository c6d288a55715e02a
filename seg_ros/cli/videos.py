"""Videos on disk: read frame by frame, written whole."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from seg_ros.errors import ConfigError, ImageError

FORMATS = (('.mp4', 'mp4v'), ('.avi', 'MJPG'))  # OpenCV writes the second without FFmpeg, too


class Video:
    """A video, frame by frame, each once.

    :raises ImageError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._capture = cv2.VideoCapture(str(path))
        if not self._capture.isOpened():
            raise ImageError(f'{path.resolve()}: cannot be read as a video; convert it to MP4')
        rate = self._capture.get(cv2.CAP_PROP_FPS)
        self.fps = rate if 1 <= rate <= 1000 else 25.0  # some files do not know theirs

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield (H, W, 3) uint8 RGB.

        :raises ImageError: not one frame can be decoded.
        """
        count = 0
        while True:
            taken, bgr = self._capture.read()
            if not taken:
                break
            count += 1
            yield cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)
        self._capture.release()
        if not count:
            raise ImageError(f'{self.path.resolve()}: no frame of it can be decoded; convert it '
                             'to MP4 with H.264')


class VideoFile:
    """Writes a video: used as a context, which ends with a whole file or none.

    :param path: without suffix; it gets that of the first format that this OpenCV writes.
    :param fps: frames a second.
    """

    def __init__(self, path: Path, fps: float) -> None:
        self._path = path
        self._fps = fps
        self._beside = path
        self._writer: cv2.VideoWriter | None = None

    def __enter__(self) -> 'VideoFile':
        return self

    def write(self, rgb: np.ndarray) -> None:
        """Add a frame.

        :param rgb: (H, W, 3) uint8, all of one size.
        :raises ConfigError: no format can be written.
        """
        if self._writer is None:
            self._writer = self._open(*rgb.shape[:2])
        self._writer.write(cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR))

    def _open(self, height: int, width: int) -> cv2.VideoWriter:
        for suffix, codec in FORMATS:
            self._beside = self._path.with_name(f'.{self._path.name}.{os.getpid()}.part{suffix}')
            writer = cv2.VideoWriter(str(self._beside), cv2.VideoWriter.fourcc(*codec),
                                     self._fps, (width, height))
            if writer.isOpened():
                return writer
            self._beside.unlink(missing_ok=True)
        raise ConfigError(f'{self._path.resolve()}: this OpenCV writes neither '
                          f'{" nor ".join(codec for _, codec in FORMATS)}; install one with '
                          'FFmpeg, such as opencv-python-headless')

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        """Rename the video to its name, or remove it where something failed.

        :raises OSError: it was not written, as when the disk is full.
        """
        if self._writer is None:
            return
        self._writer.release()
        try:
            if failure is None:
                if not cv2.VideoCapture(str(self._beside)).grab():  # OpenCV tells no error
                    raise OSError(errno.EIO, 'the video could not be written; is the disk full?',
                                  str(self._path))
                os.replace(self._beside, f'{self._path}{self._beside.suffix}')
        finally:
            self._beside.unlink(missing_ok=True)
