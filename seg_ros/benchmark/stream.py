"""The camera of one node, and who listens to its outputs."""

import itertools
import time
from collections.abc import Sequence

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.time import Time
from sensor_msgs.msg import Image

from seg_ros.demo.stream_statistics import StreamStatistics

QOS = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=5,
                 reliability=ReliabilityPolicy.RELIABLE)


class Stream:
    """Publishes pictures to a node and notes when their labels come.

    :param node: that publishes and listens.
    :param namespace: of the node that labels, with a slash before it.
    :param outputs: that are listened to, labels among them.
    :param images: that are published in turn, each with a stamp of its own.
    :ivar statistics: since the last :meth:`begin`.
    :ivar heard: how often each output came.
    :ivar diagnostics: newest of the node, by key.
    """

    def __init__(self, node: Node, namespace: str, outputs: Sequence[str],
                 images: Sequence[Image]) -> None:
        self._images = itertools.cycle(images)
        self._status = f'{namespace.lstrip("/")}/segmentation'
        self._publisher = node.create_publisher(Image, f'{namespace}/image', QOS)
        self.heard = dict.fromkeys(outputs, 0)
        self.diagnostics: dict[str, str] = {}
        for name in outputs:
            node.create_subscription(Image, f'{namespace}/segmentation/{name}',
                                     lambda image, name=name: self._hear(name, image), QOS)
        node.create_subscription(DiagnosticArray, '/diagnostics', self._hear_diagnostics, QOS)
        self.begin()

    def begin(self) -> None:
        """Count anew."""
        self.statistics = StreamStatistics()

    def publish(self) -> None:
        """Publish the next picture, stamped now."""
        image = next(self._images)
        stamp_ns = time.time_ns()
        image.header.stamp = Time(nanoseconds=stamp_ns).to_msg()
        self._publisher.publish(image)
        self.statistics.frame_published(stamp_ns)

    def _hear(self, name: str, image: Image) -> None:
        self.heard[name] += 1
        if name == 'labels':
            self.statistics.frame_labelled(Time.from_msg(image.header.stamp).nanoseconds,
                                           time.time_ns())

    def _hear_diagnostics(self, array: DiagnosticArray) -> None:
        for status in array.status:
            if status.name.startswith(self._status):
                self.diagnostics = {entry.key: entry.value for entry in status.values}
