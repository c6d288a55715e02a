"""The way of a frame through the node's own code, from message to messages, without DDS."""

import time
from collections.abc import Callable

import cv2
import numpy as np
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image
from std_msgs.msg import Header

from seg_ros.benchmark.arithmetic import use_threads
from seg_ros.benchmark.contender import Contender, draw
from seg_ros.inference.device_segmenter import DeviceSegmenter, create_segmenter
from seg_ros.inference.engines import Engine
from seg_ros.ros.messages import to_image, to_rgb

ALPHA = 0.5


class FramePath:
    """Labels the same camera images again and again.

    Its stages are 'frame', which is all of them together, 'convert', 'resize', 'network',
    'resize_back', 'overlay', 'message' and 'serialise', which is what publishing does before DDS.
    On a GPU, which is not waited for between them, 'segment' stands for the three in the middle.
    """

    def __init__(self, contender: Contender) -> None:
        variant = contender.variant
        self._segmenter = create_segmenter(contender.model, contender.engine,
                                           contender.network_size)
        self._engine: TimedEngine | None = None
        if not isinstance(self._segmenter, DeviceSegmenter):
            self._engine = self._segmenter.engine = TimedEngine(contender.engine)
        self._palette = contender.model.spec.labels.palette
        self._threads = variant.threads
        self._outputs = variant.outputs
        self._confidence = 'confidence' in variant.outputs
        self._messages = [camera_image(draw(variant.size)) for _ in range(variant.batch)]

    def run(self) -> dict[str, float]:
        use_threads(self._threads)
        began_s = time.perf_counter()
        frames = [to_rgb(message) for message in self._messages]
        converted_s = time.perf_counter()
        segmentations = self._segmenter.segment(frames, confidence=self._confidence)
        images: dict[str, list] = {'labels': [each.labels for each in segmentations],
                                   'confidence': [each.confidence for each in segmentations]}
        segmented_s = time.perf_counter()
        if 'overlay' in self._outputs:
            images['overlay'] = [each.overlay(self._palette, ALPHA) for each in segmentations]
        drawn_s = time.perf_counter()
        self.published = {name: [_to_message(array) for array in images[name]]
                          for name in self._outputs}
        written_s = time.perf_counter()
        for messages in self.published.values():
            for message in messages:
                serialize_message(message)
        ended_s = time.perf_counter()
        return {'frame': ended_s - began_s, 'convert': converted_s - began_s,
                **self._segment_stages(converted_s, segmented_s),
                'overlay': drawn_s - segmented_s, 'message': written_s - drawn_s,
                'serialise': ended_s - written_s}

    def _segment_stages(self, began_s: float, ended_s: float) -> dict[str, float]:
        engine = self._engine
        if engine is None:
            return {'segment': ended_s - began_s}
        return {'resize': engine.began_s - began_s, 'network': engine.ended_s - engine.began_s,
                'resize_back': ended_s - engine.ended_s}


def _to_message(array: np.ndarray) -> Image:
    return to_image(array, 'mono8' if array.ndim == 2 else 'rgb8', Header())


class TimedEngine:
    """An engine that notes when it was last asked and when it answered."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.name, self.device, self.precision = engine.name, engine.device, engine.precision
        self.close: Callable[[], None] = engine.close
        self.began_s = self.ended_s = 0.0

    def infer(self, rgb: np.ndarray,
              confidence: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        self.began_s = time.perf_counter()
        answer = self._engine.infer(rgb, confidence)
        self.ended_s = time.perf_counter()
        return answer


def camera_image(rgb: np.ndarray) -> Image:
    """Put a picture, (H, W, 3) uint8 RGB, into a bgr8 message: what most camera drivers send."""
    image = to_image(cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR), 'rgb8', Header(frame_id='camera'))
    image.encoding = 'bgr8'
    return image
