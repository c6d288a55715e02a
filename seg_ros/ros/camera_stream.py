"""One camera: its subscriptions, newest frame, labels and statistics."""

import threading
import time
from collections import deque

from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from rclpy.subscription import Subscription
from rclpy.time import Time
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Header

from seg_ros.errors import EngineError, ImageError
from seg_ros.inference.segmenter import Segmenter
from seg_ros.ros.camera_qos import choose_qos
from seg_ros.ros.config import read_parameter
from seg_ros.ros.frame_slot import Frame, FrameSlot
from seg_ros.ros.messages import to_rgb
from seg_ros.ros.outputs import Outputs
from seg_ros.ros.statistics import FrameStatistics

INFOS_KEPT = 30  # calibrations that wait for the frame of their stamp
MALFORMED_LOG_PERIOD_S = 1.0
FAILURE_LOG_PERIOD_S = 5.0


class CameraStream:
    """Labels the newest frame of one camera, in a thread of its own.

    Images are subscribed to only while somebody listens to an output.

    :param reliability: one of ``camera_qos.RELIABILITIES``.
    :param encoding_override: encoding to assume; '' believes the messages.
    """

    def __init__(self, node: Node, segmenter: Segmenter, reliability: str,
                 encoding_override: str) -> None:
        self._node = node
        self._segmenter = segmenter
        self._encoding_override = encoding_override
        self._reliability = reliability
        self.topic = node.resolve_topic_name('image')
        self.qos = choose_qos(node, self.topic, reliability)
        self.statistics = FrameStatistics()
        self._outputs = Outputs(node, segmenter.labels, self._follow_listeners)
        self._infos: deque[CameraInfo] = deque(maxlen=INFOS_KEPT)
        self._image_subscription: Subscription | None = None
        self._info_subscription: Subscription | None = None
        self._slot: FrameSlot | None = None
        self._thread: threading.Thread | None = None

    @property
    def listening(self) -> bool:
        """Whether images are subscribed to."""
        return self._image_subscription is not None

    def start(self) -> None:
        """Begin to label frames."""
        self.statistics = FrameStatistics()
        self._slot = FrameSlot()
        self._thread = threading.Thread(target=self._work, args=(self._slot,), name='segment')
        self._thread.start()
        self._follow_listeners()

    def stop(self) -> None:
        """Unsubscribe, finish the frame in hand, and come back when it is published."""
        slot, self._slot = self._slot, None
        self._unsubscribe()
        if slot is not None and self._thread is not None:
            slot.close()
            self._thread.join()
        self._infos.clear()

    def destroy(self) -> None:
        """Stop and take all topics away."""
        self.stop()
        self._outputs.destroy()

    def _follow_listeners(self) -> None:
        if self._slot is None:
            return
        if not self._outputs.wanted():
            self._unsubscribe()
        elif self._image_subscription is None:
            self.statistics.restart_wait()
            self._subscribe()

    def follow_publishers(self) -> None:
        """Subscribe anew where the publishers that came or went ask for another reliability."""
        if self._image_subscription is not None:
            qos = choose_qos(self._node, self.topic, self._reliability)
            if qos.reliability != self.qos.reliability:
                self._node.destroy_subscription(self._image_subscription)
                self._subscribe_image(qos)

    def _subscribe(self) -> None:
        self._subscribe_image(choose_qos(self._node, self.topic, self._reliability))
        self._info_subscription = self._node.create_subscription(
            CameraInfo, 'camera_info', self._receive_info, qos_profile_sensor_data)

    def _subscribe_image(self, qos: QoSProfile) -> None:
        self.qos = qos
        self._image_subscription = self._node.create_subscription(
            Image, 'image', self._receive, qos)

    def _unsubscribe(self) -> None:
        for subscription in (self._image_subscription, self._info_subscription):
            if subscription is not None:
                self._node.destroy_subscription(subscription)
        self._image_subscription = self._info_subscription = None

    def _receive(self, message: Image) -> None:
        if self._slot is not None:
            self.statistics.count_received(dropped_older=self._slot.put(message))

    def _receive_info(self, info: CameraInfo) -> None:
        self._infos.append(info)

    def _work(self, slot: FrameSlot) -> None:
        """Label frames until the slot is closed; nothing that one frame does ends the thread."""
        while (frame := slot.take()) is not None:
            try:
                self._label(frame)
            except ImageError as error:
                self.statistics.count_refused(str(error))
                self._node.get_logger().error(f'frame on {self.topic} refused: {error}',
                                              throttle_duration_sec=MALFORMED_LOG_PERIOD_S)
            except Exception as error:  # the next frame may be fine; diagnostics say ERROR
                if not self._node.context.ok():
                    return  # Ctrl-C: there is nobody left to publish to
                known = isinstance(error, EngineError)
                reason = str(error) if known else f'{type(error).__name__}: {error}'
                self.statistics.count_failed(reason)
                self._node.get_logger().error(f'frame on {self.topic} lost: {reason}',
                                              throttle_duration_sec=FAILURE_LOG_PERIOD_S)

    def _label(self, frame: Frame) -> None:
        taken_s = time.monotonic()
        rgb = to_rgb(frame.message, self._encoding_override)
        converted_s = time.monotonic()
        segmentation, = self._segmenter.segment(
            [rgb], read_parameter(self._node, 'min_confidence'))
        labelled_s = time.monotonic()
        header = frame.message.header
        self._outputs.publish(rgb, segmentation, header, self._info_for(header),
                              read_parameter(self._node, 'overlay_alpha'))
        published_s = time.monotonic()
        times_ms = {'wait': taken_s - frame.arrived_s, 'convert': converted_s - taken_s,
                    'segment': labelled_s - converted_s, 'publish': published_s - labelled_s,
                    'latency': published_s - frame.arrived_s}
        times_ms = {stage: 1e3 * seconds for stage, seconds in times_ms.items()}
        age_ms = self._age_ms(header)
        if age_ms is not None:
            times_ms['image_age'] = age_ms
        self.statistics.count_processed(times_ms)

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
