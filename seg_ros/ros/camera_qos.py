"""How a camera's images are subscribed to."""

from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy

RELIABILITIES = ('auto', 'best_effort', 'reliable')


def choose_qos(node: Node, topic: str, reliability: str) -> QoSProfile:
    """QoS of a subscription that holds the newest image.

    :param topic: fully resolved name.
    :param reliability: one of ``RELIABILITIES``; 'auto' is reliable while all publishers known
        by now are, for large images are lost best-effort; else best-effort, which hears them all.
    """
    if reliability == 'auto':
        offers = [publisher.qos_profile.reliability
                  for publisher in node.get_publishers_info_by_topic(topic)]
        all_reliable = bool(offers) and set(offers) == {ReliabilityPolicy.RELIABLE}
        reliability = 'reliable' if all_reliable else 'best_effort'
    return QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=1,
                      reliability=ReliabilityPolicy[reliability.upper()])
