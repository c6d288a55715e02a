"""The state of the node as a message on /diagnostics."""

from collections.abc import Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from seg_ros.ros.camera_stream import CameraStream
from seg_ros.ros.config import read_parameter

TOO_MANY = 0.5  # share of the frames


def could_not_start(values: Mapping[str, str]) -> bool:
    """Whether a node that starts by itself has tried to and failed.

    :param values: of its last status; empty before the first. While it starts there is none,
        unless the engine has something to announce.
    """
    return values.get('state', 'active') not in ('configuring', 'activating', 'active')


def make_diagnostics(node: Node, state: str, cameras: Mapping[str, CameraStream | None],
                     engine: Mapping[str, str], refusal: str) -> DiagnosticArray:
    """Fill a status of each camera: level, summary and all counts and times.

    :param state: the node's lifecycle state.
    :param cameras: by name; None while the node is not configured.
    :param engine: name, device and precision of the engine.
    :param refusal: why the last change of the state failed; '' if it did not.
    """
    array = DiagnosticArray()
    array.header.stamp = node.get_clock().now().to_msg()
    for name, camera in cameras.items():
        status = DiagnosticStatus(
            name=f'{node.get_fully_qualified_name().lstrip("/")}: {name or "image"}',
            hardware_id=engine.get('device', ''))
        status.level, status.message = _judge(node, state, camera, refusal)
        values = {'state': state, **engine}
        if camera is not None:
            values |= {'topic': camera.topic, **camera.statistics.values()}
        status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
        array.status.append(status)
    return array


def _judge(node: Node, state: str, camera: CameraStream | None,
           refusal: str) -> tuple[bytes, str]:
    if refusal:
        return DiagnosticStatus.ERROR, f'{state}: {refusal}'
    if camera is None or state != 'active':
        return DiagnosticStatus.OK, state
    statistics = camera.statistics
    if not camera.listening:
        return DiagnosticStatus.OK, 'nobody listens to an output'
    silence_s, age_s = statistics.silence_s, statistics.image_age_s
    if silence_s > read_parameter(node, 'no_frames_after_s'):
        return DiagnosticStatus.WARN, f'no image for {silence_s:.0f} s'
    if statistics.failing:
        return DiagnosticStatus.ERROR, 'images cannot be labelled, see last_error'
    if age_s > read_parameter(node, 'age_limit_s'):
        return DiagnosticStatus.WARN, f'images are {age_s:.2f} s old when they are labelled'
    if -age_s > read_parameter(node, 'age_limit_s'):
        return DiagnosticStatus.WARN, f'stamps of images lie {-age_s:.2f} s in the future'
    for fate, why in (('refused', 'see last_error'),
                      ('dropped', 'the camera is faster than the engine')):
        if (share := statistics.share(fate)) > TOO_MANY:
            return DiagnosticStatus.WARN, f'{share:.0%} of the images {fate}: {why}'
    return DiagnosticStatus.OK, 'labelling'
