"""One camera: its subscriptions, outputs and statistics."""

from collections import deque
from collections.abc import Mapping

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from rclpy.subscription import Subscription
from rclpy.time import Time
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import Header

from seg_ros.errors import ImageError
from seg_ros.inference.segmenter import Segmentation
from seg_ros.jpeg_png import read_size
from seg_ros.labels import LabelSet
from seg_ros.ros.camera_qos import CameraQos
from seg_ros.ros.compressed import decode
from seg_ros.ros.frame_slots import FrameSlots
from seg_ros.ros.messages import to_rgb
from seg_ros.ros.outputs import Outputs
from seg_ros.ros.qos_overrides import override_qos
from seg_ros.ros.silence import explain_silence
from seg_ros.ros.statistics import FrameStatistics

INFOS_KEPT = 30  # calibrations that wait for the frame of their stamp
MALFORMED_LOG_PERIOD_S = 1.0
FAILURE_LOG_PERIOD_S = 5.0


class CameraStream:
    """Receives the images of one camera and publishes their labels.

    Images are subscribed to only while somebody listens to an output.

    :param name: what its topics begin with, as 'front' in ``front/image``; '' for one camera
        alone.
    :param compressed: whether its images come as JPEG or PNG.
    :param reliability: one of ``camera_qos.RELIABILITIES``.
    :param encoding_override: encoding to assume; '' believes the messages.
    """

    def __init__(self, node: Node, name: str, labels: LabelSet, compressed: bool,
                 reliability: str, encoding_override: str) -> None:
        self._node = node
        self._prefix = f'{name}/' if name else ''
        # One of its own, as what a logger throttles of one camera is not to hide another.
        self._logger = node.get_logger()
        if name:
            self._logger = self._logger.get_child(name.replace('/', '.'))
        self._encoding_override = encoding_override
        self._compressed = compressed
        image = node.resolve_topic_name(f'{self._prefix}image')
        self.topic = image
        if compressed:
            self.topic = self._follow_image('image/compressed', f'{image}/compressed')
        self._info_topic = self._follow_image('camera_info',
                                              f'{image.rpartition("/")[0]}/camera_info')
        self._camera_qos = CameraQos(node, self.topic, reliability)
        self._qos = self._camera_qos.choose()
        self._info_qos = override_qos(node, self._info_topic, 'subscription',
                                      qos_profile_sensor_data)
        self.statistics = FrameStatistics()
        self._warned_of_silence = False
        self._outputs = Outputs(node, self._prefix, labels, self._follow_listeners)
        self._infos: deque[CameraInfo] = deque(maxlen=INFOS_KEPT)
        self._image_subscription: Subscription | None = None
        self._info_subscription: Subscription | None = None
        self._slots: FrameSlots | None = None

    # In the executor's thread

    @property
    def listening(self) -> bool:
        """Whether images are subscribed to."""
        return self._image_subscription is not None

    def start(self, slots: FrameSlots) -> None:
        """Begin to place frames into ``slots``."""
        self.statistics = FrameStatistics()
        self._warned_of_silence = False
        self._infos.clear()
        self._slots = slots
        self._follow_listeners()

    def stop(self) -> None:
        """Unsubscribe; what is in hand can still be published."""
        self._slots = None
        self._unsubscribe()

    def destroy(self) -> None:
        """Stop and take all topics away."""
        self.stop()
        self._outputs.destroy()

    def watch(self, no_frames_after_s: float) -> None:
        """Follow the QoS of the publishers; warn once each time that frames stay away."""
        if self._image_subscription is None:
            return
        qos = self._camera_qos.choose()
        if qos.reliability != self._qos.reliability:
            self._node.destroy_subscription(self._image_subscription)
            self._subscribe_image(qos)
        silence_s = self.statistics.silence_s
        if silence_s <= no_frames_after_s:
            self._warned_of_silence = False
        elif not self._warned_of_silence:
            self._warned_of_silence = True
            self._logger.warning(explain_silence(
                self._node, f'{self._prefix}image', self.topic, self._compressed, self._qos,
                silence_s))

    def _follow_listeners(self) -> None:
        if self._slots is None:
            return
        if not self._outputs.wanted():
            self._unsubscribe()
        elif self._image_subscription is None:
            self.statistics.restart_wait()
            self._subscribe_image(self._camera_qos.choose())
            self._info_subscription = self._node.create_subscription(
                CameraInfo, self._info_topic, self._receive_info, self._info_qos)

    def _subscribe_image(self, qos: QoSProfile) -> None:
        self._qos = qos
        self._image_subscription = self._node.create_subscription(
            CompressedImage if self._compressed else Image, self.topic, self._receive, qos)

    def _unsubscribe(self) -> None:
        for subscription in (self._image_subscription, self._info_subscription):
            if subscription is not None:
                self._node.destroy_subscription(subscription)
        self._image_subscription = self._info_subscription = None

    def _follow_image(self, name: str, beside_image: str) -> str:
        """Topic of a name: where it is remapped to itself, else beside the image, wherever that
        is remapped to.
        """
        name = f'{self._prefix}{name}'
        resolved = self._node.resolve_topic_name(name)
        is_remapped = resolved != self._node.resolve_topic_name(name, only_expand=True)
        return resolved if is_remapped else beside_image

    def _receive(self, message: Image | CompressedImage) -> None:
        if self._slots is not None:
            self.statistics.count_received(dropped_older=self._slots.put(self, message))

    def _receive_info(self, info: CameraInfo) -> None:
        self._infos.append(info)

    # In the worker's thread

    @property
    def wants_confidence(self) -> bool:
        """Whether anybody listens to the confidence."""
        return self._outputs.has_listener('confidence')

    def convert(self, message: Image | CompressedImage) -> np.ndarray:
        """Pixels of an image, (H, W, 3) uint8 RGB.

        :raises ImageError: it is malformed.
        """
        if self._compressed:
            return decode(message)
        return to_rgb(message, self._encoding_override)

    def publish(self, segmentation: Segmentation, header: Header) -> None:
        """Publish what is seen in the image of that header."""
        self._outputs.publish(segmentation, header, self._info_for(header))

    def count_processed(self, header: Header, times_s: Mapping[str, float]) -> None:
        """Take down what a frame took from its arrival to its labels.

        :param times_s: seconds by name of the stage.
        """
        times_ms = {stage: 1e3 * seconds for stage, seconds in times_s.items()}
        age_ms = self._age_ms(header)
        if age_ms is not None:
            times_ms['image_age'] = age_ms
        self.statistics.count_processed(times_ms)

    def refuse(self, error: ImageError) -> None:
        """Take down and log that a frame is malformed."""
        self.statistics.count_refused(str(error))
        self._logger.error(f'frame on {self.topic} refused: {error}',
                           throttle_duration_sec=MALFORMED_LOG_PERIOD_S)

    def fail(self, reason: str) -> None:
        """Take down and log that a frame was lost in the engine, or on its way out."""
        self.statistics.count_failed(reason)
        self._logger.error(f'frame on {self.topic} lost: {reason}',
                           throttle_duration_sec=FAILURE_LOG_PERIOD_S)

    def _info_for(self, header: Header) -> CameraInfo | None:
        """Calibration of the frame's stamp, else the newest."""
        infos = list(self._infos)
        for info in reversed(infos):
            if info.header.stamp == header.stamp:
                return info
        return infos[-1] if infos else None

    def _age_ms(self, header: Header) -> float | None:
        """Milliseconds since the picture was taken; None without a stamp or a running clock."""
        if header.stamp.sec < 0:
            return None  # a time that rclpy does not compute with
        clock = self._node.get_clock()
        taken = Time.from_msg(header.stamp, clock_type=clock.clock_type)
        now = clock.now()
        if not taken.nanoseconds or not now.nanoseconds:
            return None
        return (now - taken).nanoseconds / 1e6


def picture_size(message: Image | CompressedImage) -> tuple[int, int]:
    """Height and width that an image claims to have.

    :raises ImageError: a compressed one is malformed.
    """
    if isinstance(message, Image):
        return message.height, message.width
    size = read_size(memoryview(message.data))
    return size.height, size.width
