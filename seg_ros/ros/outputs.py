"""What is published for each labelled frame, and only for those who listen."""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import Header

from seg_ros.errors import EngineError, ImageError
from seg_ros.inference.segmenter import Segmentation
from seg_ros.labels import LabelSet
from seg_ros.render import draw_legend
from seg_ros.ros.camera_info import scale_camera_info
from seg_ros.ros.compressed import encode_jpeg, encode_png
from seg_ros.ros.config import read_parameter
from seg_ros.ros.mask_rle import encode_mask
from seg_ros.ros.messages import to_image
from seg_ros.ros.qos_overrides import override_qos

try:
    from rclpy.event_handler import PublisherEventCallbacks
except ModuleNotFoundError:  # Humble
    from rclpy.qos_event import PublisherEventCallbacks

# Depth 1: a late label image is worse than a missing one. Reliable: RViz hears nothing else.
OUTPUT_QOS = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=1,
                        reliability=ReliabilityPolicy.RELIABLE)
LATCHED_QOS = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=1,
                         reliability=ReliabilityPolicy.RELIABLE,
                         durability=DurabilityPolicy.TRANSIENT_LOCAL)

TYPES = {**dict.fromkeys(('labels', 'confidence', 'overlay', 'color', 'mask_rle'), Image),
         **dict.fromkeys(('labels/compressed', 'overlay/compressed'), CompressedImage),
         'camera_info': CameraInfo}
LABEL_INFO = 'label_info'
HAS_MATCHED_EVENTS = 'matched' in inspect.signature(PublisherEventCallbacks.__init__).parameters


class Outputs:
    """The publishers of one camera.

    :param prefix: what their topics begin with, as 'front/' in ``front/segmentation/labels``.
    :param on_listeners_changed: called in the executor when a listener came or went; never
        where the distro has no matched events (before Jazzy).
    :raises ConfigError: a topic's QoS is overridden with a value that is none.
    """

    def __init__(self, node: Node, prefix: str, labels: LabelSet,
                 on_listeners_changed: Callable[[], None]) -> None:
        self._node = node
        self._labels = labels
        self._palette = labels.palette
        events = None
        if HAS_MATCHED_EVENTS:
            events = PublisherEventCallbacks(matched=lambda _info: on_listeners_changed())
        prefix = f'{prefix}segmentation/'
        # All are read before the first publisher is made: one may be wrong.
        qos = {name: override_qos(node, node.resolve_topic_name(f'{prefix}{name}'), 'publisher',
                                  LATCHED_QOS if name == LABEL_INFO else OUTPUT_QOS)
               for name in (*TYPES, LABEL_INFO)}
        self._publishers: dict[str, Publisher] = {
            name: node.create_publisher(message_type, f'{prefix}{name}', qos[name],
                                        event_callbacks=events)
            for name, message_type in TYPES.items()}
        self._label_info = publish_label_info(node, f'{prefix}{LABEL_INFO}', qos[LABEL_INFO],
                                              labels)

    def wanted(self) -> bool:
        """Whether anybody listens to any output; yes where that cannot be followed."""
        return not HAS_MATCHED_EVENTS or any(self.has_listener(name) for name in self._publishers)

    def has_listener(self, name: str) -> bool:
        """Whether anybody listens to the output of that name."""
        return self._publishers[name].get_subscription_count() > 0

    def publish(self, segmentation: Segmentation, header: Header,
                info: CameraInfo | None) -> None:
        """Publish one labelled frame; an output without a listener is not computed.

        :param header: of the input; every output keeps it.
        :param info: calibration of the input, if one is known.
        :raises EngineError: an output cannot be made; the others are published.
        """
        height, width = segmentation.labels.shape

        @cache
        def overlay() -> np.ndarray:
            picture = segmentation.overlay(self._palette, self._read('overlay_alpha'))
            if self._read('overlay_legend'):
                draw_legend(picture, self._labels)
            return picture

        def confidence() -> Image | None:
            if segmentation.confidence is None:
                return None  # who listens to it came after the network had been asked
            return to_image(segmentation.confidence, 'mono8', header)

        messages: dict[str, Callable[[], Any]] = {
            'labels': lambda: to_image(segmentation.labels, 'mono8', header),
            'labels/compressed': lambda: encode_png(segmentation.labels, header),
            'mask_rle': lambda: encode_mask(segmentation.labels, header),
            'confidence': confidence,
            'overlay': lambda: to_image(overlay(), 'rgb8', header),
            'overlay/compressed': lambda: encode_jpeg(overlay(), header,
                                                       self._read('jpeg_quality')),
            'color': lambda: to_image(segmentation.color(self._palette), 'rgb8', header),
            'camera_info': lambda: info and scale_camera_info(info, header, width, height)}
        failures = []
        for name, compose in messages.items():
            try:
                if self.has_listener(name) and (message := compose()) is not None:
                    self._publishers[name].publish(message)
            except ImageError as error:
                failures.append(f'segmentation/{name}: {error}')
        if failures:
            raise EngineError('; '.join(failures))

    def _read(self, name: str) -> Any:
        return read_parameter(self._node, name)

    def destroy(self) -> None:
        """Take all topics away."""
        for publisher in self._publishers.values():
            self._node.destroy_publisher(publisher)
        if self._label_info is not None:
            self._node.destroy_publisher(self._label_info)


def publish_label_info(node: Node, topic: str, qos: QoSProfile,
                       labels: LabelSet) -> Publisher | None:
    """Publish the classes once, for whoever comes; None where vision_msgs is not installed."""
    try:
        from vision_msgs.msg import LabelInfo, VisionClass
    except ImportError:
        return None
    publisher = node.create_publisher(LabelInfo, topic, qos)
    message = LabelInfo()
    message.header.stamp = node.get_clock().now().to_msg()
    message.class_map = [VisionClass(class_id=id_, class_name=name)
                         for id_, name in zip(labels.ids, labels.names, strict=True)]
    publisher.publish(message)
    return publisher
