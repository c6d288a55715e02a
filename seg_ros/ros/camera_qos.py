"""How a camera's images are subscribed to."""

from copy import copy

from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy

from seg_ros.ros.qos_overrides import override_qos, read_override

RELIABILITIES = ('auto', 'best_effort', 'reliable')


class CameraQos:
    """Chooses the QoS of a subscription that holds the newest image.

    :param topic: fully resolved name.
    :param reliability: one of ``RELIABILITIES``; 'auto' is reliable while all publishers known
        by now are, for large images are lost best-effort; else best-effort, which hears them all.
        An override of the topic's reliability stands above it.
    :raises ConfigError: an override has a value that is none.
    """

    def __init__(self, node: Node, topic: str, reliability: str) -> None:
        self._node = node
        self._topic = topic
        fixed = read_override(node, topic, 'subscription', 'reliability', None)
        self._follows = fixed is None and reliability == 'auto'
        wanted = 'best_effort' if reliability == 'auto' else reliability
        self._qos = override_qos(node, topic, 'subscription', QoSProfile(
            history=HistoryPolicy.KEEP_LAST, depth=1,
            reliability=ReliabilityPolicy[wanted.upper()]))

    def choose(self) -> QoSProfile:
        """QoS that suits the publishers which are there now."""
        qos = copy(self._qos)
        if self._follows:
            offers = [publisher.qos_profile.reliability
                      for publisher in self._node.get_publishers_info_by_topic(self._topic)]
            if offers and set(offers) == {ReliabilityPolicy.RELIABLE}:
                qos.reliability = ReliabilityPolicy.RELIABLE
        return qos
