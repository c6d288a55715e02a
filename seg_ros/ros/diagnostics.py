"""The state of the node as a message on /diagnostics."""

from collections.abc import Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from seg_ros.ros.camera_stream import CameraStream


def make_diagnostics(node: Node, state: str, stream: CameraStream | None,
                     engine: Mapping[str, str], no_frames_after_s: float) -> DiagnosticArray:
    """Fill one status: level, summary and all counts and times.

    :param state: the node's lifecycle state.
    :param stream: None while the node is not configured.
    :param engine: name, device and precision of the engine.
    """
    status = DiagnosticStatus(name=f'{node.get_fully_qualified_name().lstrip("/")}: image',
                              hardware_id=engine.get('device', ''))
    status.level, status.message = _judge(state, stream, no_frames_after_s)
    values = {'state': state, **engine}
    if stream is not None:
        values |= {'topic': stream.topic, **stream.statistics.values()}
    status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
    array = DiagnosticArray(status=[status])
    array.header.stamp = node.get_clock().now().to_msg()
    return array


def _judge(state: str, stream: CameraStream | None,
           no_frames_after_s: float) -> tuple[bytes, str]:
    if stream is None or state != 'active':
        return DiagnosticStatus.OK, f'{state}'
    if stream.statistics.failing:
        return DiagnosticStatus.ERROR, 'the engine fails, see last_error'
    if not stream.listening:
        return DiagnosticStatus.OK, 'nobody listens to an output'
    silence_s = stream.statistics.silence_s
    if silence_s > no_frames_after_s:
        return DiagnosticStatus.WARN, f'no image for {silence_s:.0f} s'
    return DiagnosticStatus.OK, 'labelling'
