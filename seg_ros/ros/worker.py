"""The one thread that labels the frames of all cameras."""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import CompressedImage, Image

from seg_ros.errors import EngineError, ImageError
from seg_ros.inference.segmenter import Segmentation, Segmenter
from seg_ros.ros.camera_stream import CameraStream, picture_size
from seg_ros.ros.config import read_parameter
from seg_ros.ros.frame_slots import Frame, FrameSlots


class Worker:
    """Takes the newest frames, has the network label them, lets their cameras publish.

    :param batch_sizes: how many frames may go through the network at once; 1 is among them.
    """

    def __init__(self, node: Node, segmenter: Segmenter, batch_sizes: Sequence[int]) -> None:
        self._node = node
        self._segmenter = segmenter
        self._batch_sizes = tuple(batch_sizes)
        self._slots: FrameSlots | None = None
        self._thread: threading.Thread | None = None

    def start(self, slots: FrameSlots) -> None:
        """Begin to label the frames in these slots."""
        self._slots = slots
        self._thread = threading.Thread(target=self._work, args=(slots,), name='segment')
        self._thread.start()

    def stop(self) -> None:
        """Close the slots, finish the frames in hand, and come back when they are published."""
        if self._slots is not None and self._thread is not None:
            self._slots.close()
            self._thread.join()
        self._slots = self._thread = None

    def _work(self, slots: FrameSlots) -> None:
        while frames := slots.take(self._batch_sizes, self._size_at_network):
            self._label(frames)

    def _size_at_network(self, message: Image | CompressedImage) -> tuple[int, int] | None:
        """Size at which the network sees an image; None of a malformed one."""
        try:
            height, width = picture_size(message)
        except Exception:  # converting it tells what is wrong
            return None
        return self._segmenter.size_at_network(height, width) if height and width else None

    def _label(self, frames: Sequence[Frame]) -> None:
        """Label frames of one size; nothing that one does ends the thread."""
        taken_s = time.monotonic()
        pictures: list[tuple[Frame, np.ndarray]] = []
        for frame in frames:
            with self._report_to([frame]):
                pictures.append((frame, frame.camera.convert(frame.message)))
        converted_s = time.monotonic()
        while pictures:  # once, unless a frame was refused or the engine fails on several
            batch = pictures[:max(size for size in self._batch_sizes if size <= len(pictures))]
            with self._report_to([frame for frame, _ in batch]):
                segmentations = self._segment(batch)
                if segmentations is None:
                    continue
                labelled_s = time.monotonic()
                for (frame, _), segmentation in zip(batch, segmentations, strict=True):
                    with self._report_to([frame]):
                        self._publish(frame, segmentation, taken_s, converted_s, labelled_s)
            del pictures[:len(batch)]

    def _segment(self, batch: Sequence[tuple[Frame, np.ndarray]]) -> list[Segmentation] | None:
        """Label pictures; None if the engine fails on several: from now on they go one by one.

        :raises EngineError: it fails on one.
        """
        confidence = any(frame.camera.wants_confidence for frame, _ in batch)
        try:
            segmentations = self._segmenter.segment(
                [rgb for _, rgb in batch], read_parameter(self._node, 'min_confidence'),
                confidence)
            # A GPU may still be at work: what it takes, and whether it fails, shows in the labels.
            _ = [segmentation.labels for segmentation in segmentations]
            return segmentations
        except EngineError as error:
            if len(batch) == 1:
                raise
            self._batch_sizes = (1,)  # short of memory, it would only fail again
            self._node.get_logger().warning(
                f'{len(batch)} frames at once: {error}; from now on they go one by one')
            return None

    @staticmethod
    def _publish(frame: Frame, segmentation: Segmentation, taken_s: float, converted_s: float,
                 labelled_s: float) -> None:
        camera: CameraStream = frame.camera
        header = frame.message.header
        camera.publish(segmentation, header)
        published_s = time.monotonic()
        # A frame of several has all that its companions took before it.
        camera.count_processed(header, {
            'wait': taken_s - frame.arrived_s, 'convert': converted_s - taken_s,
            'segment': labelled_s - converted_s, 'publish': published_s - labelled_s,
            'latency': published_s - frame.arrived_s})

    @contextlib.contextmanager
    def _report_to(self, frames: Sequence[Frame]) -> Iterator[None]:
        """Let the cameras of these frames tell what went wrong: the next may be fine."""
        try:
            yield
        except ImageError as error:
            for frame in frames:
                frame.camera.refuse(error)
        except Exception as error:  # diagnostics say ERROR
            if not self._node.context.ok():
                return  # Ctrl-C: there is nobody left to publish to
            known = isinstance(error, EngineError)
            for frame in frames:
                frame.camera.fail(str(error) if known else f'{type(error).__name__}: {error}')
