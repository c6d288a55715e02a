"""The state of the node as a message on /diagnostics."""

from collections.abc import Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from seg_ros.ros.camera_stream import CameraStream


def could_not_start(values: Mapping[str, str]) -> bool:
    """Whether a node that starts by itself has tried to and failed.

    :param values: of its last status; empty before the first. While it starts there is none,
        unless the engine has something to announce.
    """
    return values.get('state', 'active') not in ('configuring', 'activating', 'active')


def make_diagnostics(node: Node, state: str, cameras: Mapping[str, CameraStream | None],
                     engine: Mapping[str, str], no_frames_after_s: float) -> DiagnosticArray:
    """Fill a status of each camera: level, summary and all counts and times.

    :param state: the node's lifecycle state.
    :param cameras: by name; None while the node is not configured.
    :param engine: name, device and precision of the engine.
    """
    array = DiagnosticArray()
    array.header.stamp = node.get_clock().now().to_msg()
    for name, camera in cameras.items():
        status = DiagnosticStatus(
            name=f'{node.get_fully_qualified_name().lstrip("/")}: {name or "image"}',
            hardware_id=engine.get('device', ''))
        status.level, status.message = _judge(state, camera, no_frames_after_s)
        values = {'state': state, **engine}
        if camera is not None:
            values |= {'topic': camera.topic, **camera.statistics.values()}
        status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
        array.status.append(status)
    return array


def _judge(state: str, camera: CameraStream | None,
           no_frames_after_s: float) -> tuple[bytes, str]:
    if camera is None or state != 'active':
        return DiagnosticStatus.OK, f'{state}'
    if camera.statistics.failing:
        return DiagnosticStatus.ERROR, 'the engine fails, see last_error'
    if not camera.listening:
        return DiagnosticStatus.OK, 'nobody listens to an output'
    silence_s = camera.statistics.silence_s
    if silence_s > no_frames_after_s:
        return DiagnosticStatus.WARN, f'no image for {silence_s:.0f} s'
    return DiagnosticStatus.OK, 'labelling'
