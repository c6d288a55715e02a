"""Images in, labels out: what a consumer relies on."""

import time

import cv2
import numpy as np
import pytest
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from robot import make_image, wait_until
from sensor_msgs.msg import CameraInfo, Image

from seg_ros.drawn_scene import DrawnScene
from seg_ros.inference.engines import create_engine
from seg_ros.inference.segmenter import Segmenter
from seg_ros.labels import CAMVID
from seg_ros.model_file import WEIGHTS, load_model
from seg_ros.training.metrics import ConfusionMatrix

BEST_EFFORT = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=1,
                         reliability=ReliabilityPolicy.BEST_EFFORT)


def pixels(message: Image) -> np.ndarray:
    """Read a message as the simplest consumer does: data[v * width + u]."""
    channels = {'mono8': 1, 'rgb8': 3}[message.encoding]
    assert message.step == message.width * channels
    return np.array(message.data, np.uint8).reshape(message.height, message.width, channels)


def test_label_image_keeps_header_and_size_of_the_frame(robot):
    robot.start_node()
    labels = robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    for width, height, stamp_s, frame_id in (
            (640, 480, 1234.25, 'front_camera'), (481, 361, 1300.5, 'left'),
            (960, 720, 1400.75, ''), (33, 50, 1.5, 'tiny')):
        rgb, _ = DrawnScene(4, width, height).frame(2.0)
        image = make_image(rgb, stamp_s, frame_id)
        output = robot.label(publisher, image, labels)
        assert output.header == image.header
        assert (output.width, output.height, output.encoding) == (width, height, 'mono8')
        assert set(np.unique(pixels(output))) <= set(range(11))


def test_drawn_scene_is_labelled_right_through_the_whole_chain(robot):
    """Another process publishes at 10 Hz; its exact labels come on a topic of their own."""
    robot.start_node(engine='auto')
    labels = robot.listen('/segmentation/labels')
    truths = robot.listen('/truth')
    confusion = ConfusionMatrix(len(CAMVID))
    for seed in range(3):  # the bar is for streets on average: a single one may be harder
        labels.clear()
        truths.clear()

        def matched() -> list[tuple[Image, Image]]:
            truth_at = {str(message.header.stamp): message for message in list(truths)}
            return [(truth_at[stamp], message) for message in list(labels)
                    if (stamp := str(message.header.stamp)) in truth_at]

        source = robot.start('seg_ros.ros.image_source', '--ros-args', '-p', 'rate_hz:=10.0',
                             '-p', f'seed:={seed}', '-p', 'truth:=true')
        # Not of the first labels: the two topics are discovered one after the other.
        wait_until(lambda matched=matched: len(matched()) >= 15, 'labels with their truth')
        source.stop()
        for truth, message in matched():
            confusion.add(pixels(truth)[..., 0], pixels(message)[..., 0])
    assert confusion.scores().miou >= 0.70


def test_each_output_is_what_its_topic_says(robot):
    robot.start_node(overlay_alpha=0.25)
    heard = {name: robot.listen(f'/segmentation/{name}')
             for name in ('labels', 'confidence', 'overlay', 'color')}
    publisher = robot.publisher()
    rgb, _ = DrawnScene(2, 640, 480).frame(1.0)
    image = make_image(rgb)
    labels = pixels(robot.label(publisher, image, heard['labels']))[..., 0]
    messages = {name: robot.label(publisher, image, heard[name]) for name in heard}

    color = pixels(messages['color'])
    for id_, expected in zip(CAMVID.ids, CAMVID.colors, strict=True):
        assert (color[labels == id_] == expected).all()
    blended = 0.75 * rgb.astype(float) + 0.25 * color
    assert np.abs(pixels(messages['overlay']) - blended).max() <= 1
    confidence = pixels(messages['confidence'])[..., 0]
    assert confidence.shape == labels.shape
    assert confidence.min() >= 255 // 11 - 1  # the winner of eleven has at least a share of 1/11
    assert confidence.mean() > 128


def test_uncertain_pixels_become_unknown_and_keep_the_picture(robot):
    robot.start_node(min_confidence=0.9, overlay_alpha=1.0)
    heard = {name: robot.listen(f'/segmentation/{name}')
             for name in ('labels', 'confidence', 'overlay')}
    publisher = robot.publisher()
    rgb, _ = DrawnScene(2, 640, 480).frame(1.0)
    image = make_image(rgb)
    robot.label(publisher, image, heard['labels'])
    labels, confidence, overlay = (
        pixels(robot.label(publisher, image, heard[name])) for name in heard)
    unknown = labels[..., 0] == 255
    assert 0 < unknown.mean() < 1
    assert confidence[..., 0][unknown].max() <= 0.9 * 255 + 1
    assert confidence[..., 0][~unknown].min() >= 0.9 * 255 - 1
    assert (overlay[unknown] == rgb[unknown]).all()


def test_output_size_holds_for_every_output(robot):
    robot.start_node(output_size='320x200')
    names = ('labels', 'overlay', 'color', 'confidence')
    heard = {name: robot.listen(f'/segmentation/{name}') for name in names}
    infos = robot.listen('/segmentation/camera_info', CameraInfo)
    publisher = robot.publisher()
    camera_info = robot.publisher('/camera_info', message_type=CameraInfo)
    rgb, _ = DrawnScene(2, 640, 480).frame(1.0)
    image = make_image(rgb)
    info = CameraInfo(header=image.header, width=640, height=480)
    info.k = [500., 0., 320., 0., 510., 240., 0., 0., 1.]
    info.p = [500., 0., 320., -50., 0., 510., 240., 25., 0., 0., 1., 0.]
    robot.wait_for_subscriber(camera_info)
    camera_info.publish(info)
    for name in names:
        output = robot.label(publisher, image, heard[name])
        assert (output.width, output.height) == (320, 200)
    scaled = robot.label(publisher, image, infos)
    assert scaled.header == image.header
    assert (scaled.width, scaled.height) == (320, 200)
    x, y = 320 / 640, 200 / 480
    assert np.allclose(scaled.k, [500 * x, 0, 320 * x, 0, 510 * y, 240 * y, 0, 0, 1])
    assert np.allclose(scaled.p, [500 * x, 0, 320 * x, -50 * x,
                                  0, 510 * y, 240 * y, 25 * y, 0, 0, 1, 0])


@pytest.mark.parametrize('model', ['asymmetric_camvid', 'strip_camvid'])
def test_network_is_chosen_by_the_model_alone(robot, model):
    robot.start_node(model=model, engine='auto', precision='float32')
    labels = robot.listen('/segmentation/labels')
    rgb, _ = DrawnScene(2, 640, 480).frame(1.0)
    output = pixels(robot.label(robot.publisher(), make_image(rgb), labels))[..., 0]
    loaded = load_model(WEIGHTS / f'{model}.safetensors')
    expected, = Segmenter(loaded, create_engine(loaded, 'torch')).segment([rgb])
    assert np.mean(output == expected.labels) >= 0.999


@pytest.mark.parametrize('encoding', ['bgr8', 'mono8', 'yuv422_yuy2', 'bayer_rggb8'])
def test_other_encodings_reach_the_same_labels(robot, encoding):
    robot.start_node()
    labels = robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    rgb, _ = DrawnScene(2, 640, 480).frame(1.0)
    if encoding == 'mono8':
        data = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)
        rgb = cv2.cvtColor(data, cv2.COLOR_GRAY2RGB)
    elif encoding == 'bgr8':
        data = np.ascontiguousarray(rgb[..., ::-1])
    elif encoding == 'yuv422_yuy2':
        data = cv2.cvtColor(rgb, cv2.COLOR_RGB2YUV_YUY2)
    else:
        data = rgb[..., 1].copy()
        data[::2, ::2], data[1::2, 1::2] = rgb[::2, ::2, 0], rgb[1::2, 1::2, 2]
    expected = pixels(robot.label(publisher, make_image(rgb, 100.0), labels))
    message = make_image(rgb, 101.0)
    message.encoding, message.step = encoding, data[0].size
    message.data = data.tobytes()
    output = pixels(robot.label(publisher, message, labels))
    assert (output == expected).mean() > (0.99 if encoding in ('bgr8', 'mono8') else 0.9)


def test_encoding_override_corrects_a_camera_that_lies(robot):
    robot.start_node(encoding_override='bgr8')
    labels = robot.listen('/segmentation/labels')
    overlays = robot.listen('/segmentation/overlay')
    publisher = robot.publisher()
    rgb, _ = DrawnScene(2, 640, 480).frame(1.0)
    image = make_image(np.ascontiguousarray(rgb[..., ::-1]))
    assert image.encoding == 'rgb8'
    robot.label(publisher, image, labels)
    overlay = pixels(robot.label(publisher, image, overlays)).astype(int)
    assert np.abs(2 * overlay - rgb).mean() < np.abs(2 * overlay - rgb[..., ::-1]).mean()


def test_nothing_is_computed_and_no_image_taken_without_a_listener(robot):
    node = robot.start_node()
    publisher = robot.publisher()
    time.sleep(1.0)
    assert publisher.get_subscription_count() == 0
    subscription = robot.node.create_subscription(Image, '/segmentation/labels',
                                                  lambda _: None, BEST_EFFORT)
    robot.wait_for_subscriber(publisher)
    robot.node.destroy_subscription(subscription)
    deadline = time.monotonic() + 20
    while publisher.get_subscription_count() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert publisher.get_subscription_count() == 0
    assert node.process.poll() is None
