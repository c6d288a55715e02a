"""Why no image arrives: what a person needs to see in the log."""

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy


def explain_silence(node: Node, name: str, topic: str, ours: QoSProfile, silence_s: float) -> str:
    """Say who publishes on a topic, with both sides' QoS, and what to do.

    :param name: of the topic before remapping.
    :param topic: fully resolved name.
    """
    text = f'no image on {topic} for {silence_s:.0f} s; this node subscribes {_describe(ours)}'
    publishers = node.get_publishers_info_by_topic(topic)
    if not publishers:
        return (f'{text}; nobody publishes there: remap it ({name}:=/camera/image_raw) or start '
                'the camera; "ros2 topic list" shows what there is')
    lines = [f'{text}; publishers:']
    remedy = 'they are compatible: does the camera deliver?'
    for publisher in publishers:
        qos = publisher.qos_profile
        name = f'{publisher.node_namespace.rstrip("/")}/{publisher.node_name}'
        lines.append(f'  {name} ({publisher.topic_type}): {_describe(qos)}')
        if publisher.topic_type != 'sensor_msgs/msg/Image':
            remedy = f'this node takes sensor_msgs/msg/Image: remap {name} to a topic of that type'
        elif _unheard(ours, qos):
            remedy = ('a reliable subscription never hears a best-effort publisher: '
                      'set the parameter reliability to best_effort')
    return '\n'.join([*lines, f'  {remedy}'])


def _unheard(ours: QoSProfile, theirs: QoSProfile) -> bool:
    return (ours.reliability == ReliabilityPolicy.RELIABLE
            and theirs.reliability == ReliabilityPolicy.BEST_EFFORT)


def _describe(qos: QoSProfile) -> str:
    return (f'{qos.reliability.name.lower()}, {qos.durability.name.lower()}, '
            f'{qos.history.name.lower()} {qos.depth}')
