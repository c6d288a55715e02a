"""The files that the demo leaves behind."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from seg_ros.demo import DemoError
from seg_ros.errors import ConfigError
from seg_ros.labels import LabelSet
from seg_ros.render import colorize

SAMPLES = 4
VIDEO_SECONDS = 10.0
VIDEO_BYTES = 300_000_000  # of raw frames in memory
VIDEO, SUMMARY, LOGS = 'overlay.mp4', 'summary.json', ('node.log', 'image_source.log')
KINDS = ('overlay', 'labels', 'color')


def prepare_folder(folder: Path) -> None:
    """Make the folder, or take what an earlier demo wrote out of it; other files stay.

    :raises ConfigError: it cannot be written.
    """
    pictures = [f'{kind}_{number}.png' for kind in KINDS for number in range(1, SAMPLES + 1)]
    try:
        folder.mkdir(exist_ok=True)
        for name in (*pictures, VIDEO, SUMMARY, *LOGS):
            (folder / name).unlink(missing_ok=True)
        (folder / SUMMARY).touch()
        (folder / SUMMARY).unlink()
    except OSError as error:
        raise ConfigError(f'{folder.resolve()}: cannot be written: {error.strerror}; run the '
                          'demo in a folder where a folder of that name can be made') from error


class Recorder:
    """Keeps some of the frames: pictures spread over the run, and the start of it as a video.

    :param seconds: how long the run is to be.
    """

    def __init__(self, seconds: float) -> None:
        self._sample_times_s = np.linspace(0.0, 0.9, SAMPLES) * seconds
        self._samples: list[tuple[np.ndarray, np.ndarray]] = []
        self._video: list[np.ndarray] = []
        self._video_bytes = 0

    def add(self, time_s: float, labels: np.ndarray, overlay: np.ndarray) -> None:
        """Take or leave a frame.

        :param time_s: since the first labelled frame.
        :param labels: (H, W) uint8 ids.
        :param overlay: (H, W, 3) uint8 RGB.
        """
        if len(self._samples) < SAMPLES and time_s >= self._sample_times_s[len(self._samples)]:
            self._samples.append((labels, overlay))
        if time_s < VIDEO_SECONDS and self._video_bytes + overlay.nbytes <= VIDEO_BYTES:
            self._video.append(overlay)
            self._video_bytes += overlay.nbytes

    def write(self, folder: Path, classes: LabelSet | None, fps: float,
              summary: Mapping[str, Any]) -> list[Path]:
        """Write all files.

        :param classes: give the colours of the labels; None leaves the coloured ones out.
        :param fps: frames a second of the video.
        :return: what was written.
        :raises DemoError: a file cannot be written, or the video not be read again.
        """
        written = []
        for number, (labels, overlay) in enumerate(self._samples, 1):
            pictures = {'overlay': cv2.cvtColor(overlay, cv2.COLOR_RGB2BGR), 'labels': labels}
            if classes is not None:
                pictures['color'] = cv2.cvtColor(colorize(labels, classes.palette),
                                                 cv2.COLOR_RGB2BGR)
            for kind, picture in pictures.items():
                written.append(_write_png(folder / f'{kind}_{number}.png', picture))
        if self._video:
            written.append(_write_video(folder / VIDEO, self._video, fps))
        path = folder / SUMMARY
        path.write_text(json.dumps(summary, indent=2) + '\n')
        return [*written, path]


def _write_png(path: Path, picture: np.ndarray) -> Path:
    if not cv2.imwrite(str(path), picture):
        raise DemoError(f'{path.resolve()}: cannot be written; is the disk full?')
    return path


def _write_video(path: Path, frames: list[np.ndarray], fps: float) -> Path:
    """Write frames, (H, W, 3) uint8 RGB; those of another size than the first are resized."""
    height, width = frames[0].shape[:2]
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*'mp4v'), max(fps, 1.0),
                             (width, height))
    for frame in frames:
        if frame.shape[:2] != (height, width):
            frame = cv2.resize(frame, (width, height), interpolation=cv2.INTER_AREA)
        writer.write(cv2.cvtColor(frame, cv2.COLOR_RGB2BGR))
    writer.release()
    readable, _ = cv2.VideoCapture(str(path)).read()
    if not readable:
        raise DemoError(f'{path.resolve()}: this OpenCV cannot write MP4; install one with '
                        'FFmpeg, such as opencv-python-headless')
    return path
