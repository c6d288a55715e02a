"""Why no image arrives: what a person needs to see in the log."""

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

RAW, COMPRESSED = 'sensor_msgs/msg/Image', 'sensor_msgs/msg/CompressedImage'


def explain_silence(node: Node, name: str, topic: str, compressed: bool, ours: QoSProfile,
                    silence_s: float) -> str:
    """Say who publishes on a topic, with both sides' QoS, and what to do.

    :param name: of the image topic before remapping.
    :param topic: fully resolved name.
    :param compressed: whether the topic is taken for one of compressed images.
    """
    text = f'no image on {topic} for {silence_s:.0f} s; this node subscribes {_describe(ours)}'
    publishers = node.get_publishers_info_by_topic(topic)
    if not publishers:
        text += '; nobody publishes there: '
        if not compressed and node.get_publishers_info_by_topic(f'{topic}/compressed'):
            return (f'{text}but on {topic}/compressed: set the parameter image_transport to '
                    'compressed')
        return (f'{text}remap it ({name}:=/camera/image_raw) or start the camera; '
                '"ros2 topic list" shows what there is')
    lines = [f'{text}; publishers:']
    remedy = 'they are compatible: does the camera deliver?'
    wanted, other = (COMPRESSED, RAW) if compressed else (RAW, COMPRESSED)
    for publisher in publishers:
        qos, found = publisher.qos_profile, publisher.topic_type
        who = f'{publisher.node_namespace.rstrip("/")}/{publisher.node_name}'
        lines.append(f'  {who} ({found}): {_describe(qos)}')
        if found == other:
            remedy = ('set the parameter image_transport to '
                      f'{"raw" if compressed else "compressed"}, and remap {name} to the name of '
                      'the raw images')
        elif found != wanted:
            remedy = f'this node takes {wanted}: remap {name} to a topic of that type'
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
