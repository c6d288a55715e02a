"""What a camera could see: the drawn scene, a folder of pictures, a video file or a webcam."""

import os
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple, Protocol

import cv2
import numpy as np

from seg_ros.drawn_scene import DrawnScene
from seg_ros.errors import ConfigError, ImageError
from seg_ros.jpeg_png import decode_picture

PICTURE_SUFFIXES = ('.png', '.jpg', '.jpeg', '.bmp', '.tif', '.tiff', '.webp', '.ppm', '.pgm')
_LONGEST_SKIP_S = 0.25
_LIVE_PATIENCE_S = 5.0

# Else libav writes lines of its own beside the one error of a video that cannot be read.
os.environ.setdefault('OPENCV_FFMPEG_LOGLEVEL', '-8')


class Picture(NamedTuple):
    """One picture of a source.

    :param rgb: (H, W, 3) uint8.
    :param ids: (H, W) uint8 exact class ids of ``seg_ros.labels.CAMVID``, where they are known.
    """

    rgb: np.ndarray
    ids: np.ndarray | None = None


class PictureSource(Protocol):
    """Gives pictures without end."""

    def picture_at(self, time_s: float) -> Picture:
        """The picture to show at a moment.

        :param time_s: seconds since the start; never less than at the call before.
        :raises ImageError: there is no picture for now; a later call may bring one.
        """

    def close(self) -> None:
        """Give back what is held open."""


class DrawnPictures:
    """The drawn scene as it is at the moment asked for.

    :param seed: as of :class:`DrawnScene`; so are width and height, in pixels.
    :raises ConfigError: one of them is out of its range.
    """

    def __init__(self, seed: int, width: int, height: int) -> None:
        self._scene = DrawnScene(seed, width, height)

    def picture_at(self, time_s: float) -> Picture:
        return Picture(*self._scene.frame(time_s))

    def close(self) -> None:
        pass


class FolderPictures:
    """The pictures of a folder in the order of their names, one a call whatever the time, then
    from the first on again. They may differ in size.

    :raises ConfigError: no such folder, or no picture in it that can be read.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ConfigError(f'{folder.resolve()}: no such folder; give one that holds pictures')
        self._paths = sorted(path for path in folder.iterdir()
                             if path.suffix.lower() in PICTURE_SUFFIXES and path.is_file())
        if not self._paths:
            raise ConfigError(f'{folder.resolve()}: no pictures in this folder; expected files '
                              f'that end in {", ".join(PICTURE_SUFFIXES)}')
        if not any(map(_can_be_read, self._paths)):  # stops at the first good one
            raise ConfigError(f'{folder.resolve()}: none of the {len(self._paths)} pictures in '
                              'this folder can be read; give other ones')
        self._next = 0

    def picture_at(self, time_s: float) -> Picture:
        path = self._paths[self._next]
        self._next = (self._next + 1) % len(self._paths)
        return Picture(read_picture(path))

    def close(self) -> None:
        pass


class VideoPictures:
    """A video at its own speed, from its start on again after its end.

    :raises ConfigError: no such file, or it is no video that can be read.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise ConfigError(f'{path.resolve()}: no such file; give a video')
        self._path = path
        self._capture = cv2.VideoCapture(str(path))
        self._frame: np.ndarray | None = None
        if not self._capture.isOpened() or not self._advance():
            raise ConfigError(f'{path.resolve()}: cannot be read as a video; convert it to MP4 '
                              'with H.264, or give another')
        rate = self._capture.get(cv2.CAP_PROP_FPS)
        self._rate_hz = rate if 1 <= rate <= 1000 else 25.0  # some files do not know theirs
        self._shown = 0.0
        self._time_s = 0.0

    def picture_at(self, time_s: float) -> Picture:
        self._shown += (time_s - self._time_s) * self._rate_hz
        self._time_s = time_s
        deadline = time.monotonic() + _LONGEST_SKIP_S
        while self._shown >= 1:
            if not self._advance():
                self._rewind()
            self._shown -= 1
            if time.monotonic() > deadline:
                # Decoding cannot keep up with the video: better slow than standing still.
                self._shown %= 1
        return Picture(cv2.cvtColor(self._retrieved(), cv2.COLOR_BGR2RGB))

    def close(self) -> None:
        self._capture.release()

    def _advance(self) -> bool:
        self._frame = None
        return self._capture.grab()

    def _rewind(self) -> None:
        # Opened anew: seeking to frame 0 is not exact in every container.
        self._capture.release()
        self._capture = cv2.VideoCapture(str(self._path))
        if not self._capture.isOpened() or not self._advance():
            raise ImageError(f'{self._path.resolve()}: can no longer be read; put the video back')

    def _retrieved(self) -> np.ndarray:
        if self._frame is None:
            decoded, self._frame = self._capture.retrieve()
            if not decoded or self._frame is None:
                raise ImageError(f'{self._path.resolve()}: a frame cannot be decoded; convert '
                                 'the video to MP4 with H.264')
        return self._frame


class LivePictures:
    """The newest picture of a running capture. A thread reads them all, as the driver else hands
    out old ones first.

    :param capture: opened; closed by :meth:`close`.
    :param name: what messages call it.
    """

    def __init__(self, capture: cv2.VideoCapture, name: str) -> None:
        self._capture = capture
        self._name = name
        self._newest: np.ndarray | None = None
        self._open = True
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def picture_at(self, time_s: float) -> Picture:
        with self._changed:
            self._changed.wait_for(lambda: self._newest is not None, _LIVE_PATIENCE_S)
            bgr, self._newest = self._newest, None
        if bgr is None:
            raise ImageError(f'{self._name} gave no picture for {_LIVE_PATIENCE_S:g} s; check '
                             'its cable')
        return Picture(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB))

    def close(self) -> None:
        self._open = False
        self._reader.join(_LIVE_PATIENCE_S)

    def _read(self) -> None:
        while self._open:
            taken, bgr = self._capture.read()
            if not taken:
                time.sleep(0.1)
                continue
            with self._changed:
                self._newest = bgr
                self._changed.notify()
        self._capture.release()


def open_webcam(index: int, width: int, height: int) -> LivePictures:
    """Open a webcam.

    :param index: 0 is the first.
    :param width: in pixels, asked of the camera, which may give another size.
    :param height: likewise.
    :raises ConfigError: there is no such camera, or it cannot be opened.
    """
    refusal = f'camera {index} cannot be opened'
    if sys.platform == 'linux' and not Path(f'/dev/video{index}').exists():
        present = ', '.join(sorted(map(str, Path('/dev').glob('video*')))) or 'none'
        raise ConfigError(f'{refusal}: there is no /dev/video{index} (present: {present}); plug '
                          'it in or give another number')
    capture = cv2.VideoCapture(index)
    if not capture.isOpened():
        raise ConfigError(f'{refusal}; close what else uses it, allow this user to read it, or '
                          'give another number')
    capture.set(cv2.CAP_PROP_FRAME_WIDTH, width)
    capture.set(cv2.CAP_PROP_FRAME_HEIGHT, height)
    return LivePictures(capture, f'camera {index}')


def read_picture(path: Path) -> np.ndarray:
    """Read a picture of any kind; grey becomes colour, 16 bits 8, and transparency is left out.

    :return: (H, W, 3) uint8 RGB.
    :raises ImageError: it cannot be read.
    """
    try:
        return decode_picture(path.read_bytes())
    except OSError as error:
        raise ImageError(f'{path.resolve()}: cannot be read: {error.strerror}') from error
    except ImageError as error:
        raise ImageError(f'{path.resolve()}: cannot be read as a picture ({error}); convert it to '
                         'PNG or JPEG, or remove it') from error


def _can_be_read(path: Path) -> bool:
    try:
        read_picture(path)
    except ImageError:
        return False
    return True
