"""What changes and fails around a running node, while it labels on."""

import itertools
import signal
import time
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from footprint import footprint, grown
from random_models import random_model
from rcl_interfaces.srv import GetParameters, SetParameters, SetParametersAtomically
from rclpy.parameter import Parameter, parameter_value_to_python
from robot import WAIT_S, answer, drawn, make_image, stamp, wait_until
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import Header

from seg_ros.onnx_file import sign_onnx
from seg_ros.ros.messages import payload

MODEL = random_model()
SIZES = ((96, 64), (61, 47), (160, 120))
PIXELS_AS = {
    'rgb8': lambda rgb: rgb,
    'bgr8': lambda rgb: rgb[..., ::-1],
    'bgra8': lambda rgb: np.dstack([rgb[..., ::-1], rgb[..., :1]]),
    'rgb16': lambda rgb: (rgb.astype('<u2') << 8).view(np.uint8),
}
OUTPUTS = (('labels', Image), ('overlay/compressed', CompressedImage), ('overlay', Image),
           ('labels/compressed', CompressedImage))
FLAT_MB = 10

# Parameters with what they can be and cannot be while the node runs.
ALLOWED = {'overlay_alpha': (0.0, 0.25, 1.0), 'min_confidence': (0.0, 0.4, 1.0),
           'jpeg_quality': (1, 50, 100), 'no_frames_after_s': (3.0, 60.0),
           'diagnostics_period_s': (0.2, 2.0)}
REFUSED = (('overlay_alpha', 1.5), ('overlay_alpha', 'red'), ('overlay_alpha', True),
           ('min_confidence', -0.1), ('min_confidence', float('nan')), ('jpeg_quality', 0),
           ('jpeg_quality', 2.5), ('no_frames_after_s', 0.0), ('diagnostics_period_s', 1e9),
           ('cameras', ['front']), ('threads', 2), ('engine', 'torch'), ('class_names', ['a']),
           ('no_such_parameter', 1))
AT_ONCE = 8  # requests that wait for their answer; a service keeps ten


def encoded(rgb: np.ndarray, encoding: str) -> Image:
    """The same picture in any of ``PIXELS_AS``."""
    pixels = PIXELS_AS[encoding](rgb)
    image = Image(header=Header(frame_id=encoding), height=rgb.shape[0], width=rgb.shape[1],
                  encoding=encoding, step=pixels[0].nbytes)
    image.data = payload(pixels)
    return image


def test_camera_may_change_its_size_its_encoding_and_its_clock(robot, model_file):
    """Its stamps go backwards, first with time to label each frame, then in a fast stream."""
    robot.start_node(model=model_file, reliability='reliable', diagnostics_period_s=0.2)
    labels = robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    frames = [encoded(drawn(*size), name) for name in PIXELS_AS for size in SIZES]
    begun_s = time.time()
    robot.label(publisher, make_image(drawn(*SIZES[0])), labels)
    _, before = robot.diagnostics(lambda values: int(values['received']) == int(
        values['processed']) + int(values['dropped']))

    expected: dict[tuple[int, int], bytes] = {}
    for number, frame in enumerate(frames, start=1):
        frame.header.stamp = stamp(begun_s - 3600 * number)
        publisher.publish(frame)
        output = wait_until(lambda sought=frame.header: next(
            (labelled for labelled in list(labels) if labelled.header == sought), None),
            f'labels of frame {number}')
        assert (output.width, output.height) == (frame.width, frame.height)
        # In whatever encoding, these are the same pixels.
        size = (frame.width, frame.height)
        assert bytes(output.data) == expected.setdefault(size, bytes(output.data))
    assert min(len(set(data)) for data in expected.values()) > 2, 'it would say nothing'
    status, values = robot.diagnostics()
    assert status.level in (DiagnosticStatus.OK, DiagnosticStatus.WARN)  # they are old
    assert float(values['image_age_p95_ms']) > 3.6e6
    for name, more in (('received', len(frames)), ('processed', len(frames)), ('dropped', 0),
                       ('refused', 0), ('failed', 0)):
        assert int(values[name]) == int(before[name]) + more, name

    labels.clear()
    sent: list[Image] = []
    deadline = time.monotonic() + WAIT_S
    while len({(m.header.frame_id, m.width) for m in list(labels)}) < len(frames):
        assert time.monotonic() < deadline, 'not every kind of frame is labelled'
        for frame in frames:
            frame.header.stamp = stamp(begun_s - 0.001 * len(sent))
            publisher.publish(frame)
            sent.append(Image(header=Header(frame_id=frame.header.frame_id,
                                            stamp=frame.header.stamp),
                              width=frame.width, height=frame.height))
            time.sleep(0.005)
    at = {(image.header.stamp.sec, image.header.stamp.nanosec): number
          for number, image in enumerate(sent)}
    order = [at[message.header.stamp.sec, message.header.stamp.nanosec] for message in labels]
    assert order == sorted(order)
    for message, number in zip(labels, order, strict=False):
        assert message.header == sent[number].header
        assert bytes(message.data) == expected[sent[number].width, sent[number].height]


def failing_content() -> bytes:
    """An exported file with which ONNX Runtime fails on pictures that begin brightly: it is to
    take the picture of a batch whose index is its first value by 200, and there is one alone.
    """
    onnx = pytest.importorskip('onnx')
    pytest.importorskip('onnxruntime')
    from seg_ros.inference.onnx_graph import export_graph
    proto = onnx.ModelProto.FromString(export_graph(MODEL))
    for node in proto.graph.node:
        node.input[:] = ['picked' if name == 'rgb' else name for name in node.input]
    make = onnx.helper.make_node
    for node in (make('Gather', ['rgb', 'index'], ['picked'], axis=0),
                 make('Div', ['wide', 'two_hundred'], ['index']),
                 make('Cast', ['value'], ['wide'], to=onnx.TensorProto.INT64),
                 make('Gather', ['values', 'first'], ['value']),
                 make('Reshape', ['rgb', 'flat'], ['values'])):
        proto.graph.node.insert(0, node)
    proto.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.array([value]), name)
        for name, value in (('flat', -1), ('first', 0), ('two_hundred', 200)))
    return sign_onnx(proto.SerializeToString(), MODEL.spec, 'float32')


def test_engine_may_fail_once_or_for_long(robot, tmp_path):
    model = tmp_path / 'failing.onnx'
    model.write_bytes(failing_content())
    node = robot.start_node(model=model, engine='onnxruntime', reliability='reliable',
                            diagnostics_period_s=0.2, age_limit_s=3600)  # sent until labelled
    labels = robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    dark, bright = drawn(96, 64) // 2, np.full((64, 96, 3), 255, np.uint8)
    good = robot.label(publisher, make_image(dark), labels)
    status, _ = robot.diagnostics(lambda values: values['processed'] != '0')
    assert status.level == DiagnosticStatus.OK

    def expect_error(failures: int) -> dict[str, str]:
        status, values = robot.diagnostics(lambda values: int(values['failed']) >= failures)
        assert (status.level, values['state']) == (DiagnosticStatus.ERROR, 'active')
        assert 'last_error' in status.message
        assert 'onnxruntime on cpu: failed on pictures of shape (1, ' in values['last_error']
        assert 'out of data bounds' in values['last_error'], 'what the engine itself says'
        return values

    def expect_recovery() -> None:
        processed = int(robot.diagnostics()[1]['processed'])
        for _ in range(6):  # most of the ten that tell
            again = robot.label(publisher, make_image(dark), labels)
            assert again.data == good.data
        status, _ = robot.diagnostics(lambda values: int(values['processed']) > processed + 5)
        assert status.level == DiagnosticStatus.OK

    publisher.publish(make_image(bright))
    assert expect_error(1)['failed'] == '1'
    expect_recovery()

    started = time.monotonic()
    with robot.filming({publisher: 30.0}, make_image(bright)):
        expect_error(20)
        assert robot.state() == 'active'
        assert robot.set_parameter('overlay_alpha', 0.25) == (True, '')
        assert robot.change_state('deactivate') and robot.change_state('activate')
        values = expect_error(20)
    assert values['processed'] == '0'
    assert node.log.count('lost: ') <= (time.monotonic() - started) / 5 + 3, 'to be throttled'
    expect_recovery()
    assert 'Traceback' not in node.log


def test_listener_may_come_and_go(robot, model_file):
    pid = robot.start_node(model=model_file).process.pid
    publisher = robot.publisher()

    def subscriptions() -> list[int]:
        return [robot.node.count_subscribers(topic) for topic in ('/image', '/camera_info')]

    before = footprint(pid)
    with robot.filming({publisher: 30.0}, make_image(drawn(96, 64))):
        for turn in range(20):
            name, message_type = OUTPUTS[turn % len(OUTPUTS)]
            with robot.listening(f'/segmentation/{name}', message_type) as messages:
                wait_until(lambda heard=messages: len(heard) > 1, name)
                wait_until(lambda: subscriptions() == [1, 1], 'one subscription each')
            wait_until(lambda: subscriptions() == [0, 0], 'the end of the subscriptions')
            if turn == 2 * len(OUTPUTS):
                before = footprint(pid)
    assert grown(before, footprint(pid), FLAT_MB) == {}


def test_killed_node_is_replaced_under_its_publisher_and_listener(robot, model_file):
    labels = robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    with robot.filming({publisher: 30.0}, make_image(drawn(640, 480))):
        for last in (False, True):
            node = robot.start_node(model=model_file)
            count = len(labels)
            wait_until(lambda n=count: len(labels) > n + 5, 'labels')
            if not last:
                assert node.stop(signal.SIGKILL) == -signal.SIGKILL
        robot.diagnostics(lambda values: values['state'] == 'active')
        assert node.stop() == 0


def test_parameters_change_under_load(robot, model_file):
    """Hundreds of right and wrong values, several requests at once, some of them atomic."""
    node = robot.start_node(model=model_file)
    labels = robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    random = np.random.default_rng(6)
    service = '/segmentation/{}'.format
    now: dict[str, Any] = {name: robot.get_parameter(name) for name in ALLOWED}

    def choose() -> tuple[str, Any, bool]:
        if random.random() < 0.4:
            return *REFUSED[random.integers(len(REFUSED))], False
        name = list(ALLOWED)[random.integers(len(ALLOWED))]
        return name, ALLOWED[name][random.integers(len(ALLOWED[name]))], True

    with robot.filming({publisher: 30.0}, make_image(drawn(160, 120))), \
            robot.client(SetParameters, service('set_parameters')) as each, \
            robot.client(SetParametersAtomically, service('set_parameters_atomically')) as whole, \
            robot.client(GetParameters, service('get_parameters')) as get:
        wait_until(lambda: labels, 'labels')
        count = len(labels)
        for turn in itertools.count():
            client = (each, whole)[turn % 2]
            chosen = [[choose() for _ in range(random.integers(1, 4))] for _ in range(AT_ONCE)]
            futures = [client.call_async(client.srv_type.Request(parameters=[
                Parameter(name, value=value).to_parameter_msg() for name, value, _ in changes]))
                for changes in chosen]
            wait_until(lambda sent=futures: all(future.done() for future in sent), 'answers')
            for changes, future in zip(chosen, futures, strict=True):
                if client is whole:
                    results, right = [future.result().result], [all(ok for *_, ok in changes)]
                else:
                    results, right = future.result().results, [ok for *_, ok in changes]
                assert [result.successful for result in results] == right, changes
                assert all(result.reason for result in results if not result.successful)
                now |= {name: value for name, value, ok in changes
                        if ok and (client is each or all(right))}
            response = answer(get, GetParameters.Request(names=list(now)))
            assert [parameter_value_to_python(value) for value in response.values] == list(
                now.values())
            if turn >= 40 and len(labels) > count + 30:
                break
    assert node.process.poll() is None and 'Traceback' not in node.log
