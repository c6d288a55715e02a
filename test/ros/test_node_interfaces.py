"""Compressed images in and out, Autoware's mask and other classes, through the real node."""

import struct
import time

import cv2
import numpy as np
import pytest
import yaml
from random_models import random_model
from robot import make_image, wait_until
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from seg_ros.drawn_scene import DrawnScene
from seg_ros.labels import CAMVID

MODEL = random_model()

RGB, _ = DrawnScene(2, 320, 240).frame(1.0)


def pixels(message: Image, channels: int = 1) -> np.ndarray:
    return np.array(message.data, np.uint8).reshape(message.height, message.width, channels)


def png(rgb: np.ndarray, **header) -> CompressedImage:
    message = CompressedImage(format='rgb8; png compressed ')
    message.header = make_image(rgb, **header).header
    message.data = cv2.imencode('.png', rgb[..., ::-1])[1].tobytes()
    return message


def decode_mask(message: Image) -> np.ndarray:
    """Runs of a class id and an int32, as Autoware writes them, one by one."""
    data, ids = bytes(message.data), []
    for at in range(0, len(data), 5):
        id_, length = struct.unpack('=Bi', data[at:at + 5])
        ids += [id_] * length
    return np.array(ids, np.uint8).reshape(message.height, message.width)


def test_outputs_of_one_frame_agree_with_each_other(robot):
    robot.start_node(jpeg_quality=95)
    types = {'labels': Image, 'overlay': Image, 'mask_rle': Image,
             'labels/compressed': CompressedImage, 'overlay/compressed': CompressedImage}
    heard = {name: robot.listen(f'/segmentation/{name}', message_type)
             for name, message_type in types.items()}
    publisher, image = robot.publisher(), make_image(RGB)
    messages = {name: robot.label(publisher, image, heard[name]) for name in types}
    assert all(message.header == image.header for message in messages.values())

    labels = pixels(messages['labels'])[..., 0]
    assert len(np.unique(labels)) > 3, 'the comparison would say nothing'
    compressed = np.frombuffer(messages['labels/compressed'].data, np.uint8)
    assert np.array_equal(cv2.imdecode(compressed, cv2.IMREAD_UNCHANGED), labels)
    assert 'png' in messages['labels/compressed'].format
    assert np.array_equal(decode_mask(messages['mask_rle']), labels)
    jpeg = cv2.imdecode(np.frombuffer(messages['overlay/compressed'].data, np.uint8),
                        cv2.IMREAD_COLOR)[..., ::-1]
    difference = np.abs(jpeg.astype(int) - pixels(messages['overlay'], 3))
    assert 0 < difference.mean() < 4
    assert 'jpeg' in messages['overlay/compressed'].format


def test_listener_of_a_compressed_topic_alone_is_one(robot):
    robot.start_node()
    publisher, image = robot.publisher(), make_image(RGB)
    labels = robot.listen('/segmentation/labels/compressed', CompressedImage)
    assert robot.label(publisher, image, labels).header == image.header


def test_compressed_images_are_labelled_as_the_raw_ones(robot):
    robot.start_node(namespace='raw')
    # Reliably from the start: to change over it would subscribe anew, and miss what comes then.
    robot.start_node(namespace='compressed', image_transport='compressed', reliability='reliable')
    raw = robot.listen('/raw/segmentation/labels')
    compressed = robot.listen('/compressed/segmentation/labels')
    expected = robot.label(robot.publisher('/raw/image'), make_image(RGB, 5.0), raw)
    camera = robot.publisher('/compressed/image/compressed', message_type=CompressedImage)
    message = png(RGB, stamp_s=7.5)
    output = robot.label(camera, message, compressed)
    assert output.header == message.header
    assert output.data == expected.data and output.height == 240

    cut = png(RGB, stamp_s=8.5)
    cut.data = cut.data[:len(cut.data) // 2]
    camera.publish(cut)
    _, values = robot.diagnostics(lambda values: values.get('refused') == '1',
                                  name='compressed/segmentation')
    assert 'compressed image message' in values['last_error']
    message = png(RGB, stamp_s=9.5)
    assert robot.label(camera, message, compressed).header == message.header
    assert not [output for output in compressed if output.header.stamp == cut.header.stamp]


@pytest.mark.parametrize('transport', ['raw', 'compressed'])
def test_remap_of_image_takes_its_neighbours_along(robot, transport):
    robot.start('seg_ros.ros.node', '--ros-args', '-p', 'threads:=1', '-r',
                'image:=/cam/front/image_raw', '-p',
                f'image_transport:={transport}').wait_for_log('labelling')
    topic = '/cam/front/image_raw'
    if transport == 'raw':
        publisher, image = robot.publisher(topic), make_image(RGB)
    else:
        publisher = robot.publisher(f'{topic}/compressed', message_type=CompressedImage)
        image = png(RGB)
    infos = robot.listen('/segmentation/camera_info', CameraInfo)
    calibration = robot.publisher('/cam/front/camera_info', message_type=CameraInfo)
    robot.wait_for_subscriber(calibration)
    calibration.publish(CameraInfo(header=image.header, height=240, width=320))
    assert robot.label(publisher, image, infos).width == 320


def test_camera_info_that_is_remapped_itself_is_heard_there(robot):
    robot.start('seg_ros.ros.node', '--ros-args', '-p', 'threads:=1', '-r',
                'image:=/cam/image', '-r', 'camera_info:=/calibration').wait_for_log('labelling')
    robot.listen('/segmentation/labels')
    robot.wait_for_subscriber(robot.publisher('/calibration', message_type=CameraInfo))


def test_label_map_changes_ids_names_colours_and_mask(robot, tmp_path):
    entries = [{'name': 'GROUND', 'id': 9, 'color': [10, 20, 30], 'from': ['Road', 'Pavement']},
               {'name': 'TREE', 'id': 200, 'from': ['Tree']}]
    path = tmp_path / 'map.yaml'
    path.write_text(yaml.safe_dump({'classes': entries}))
    robot.start_node(namespace='plain')
    node = robot.start_node(namespace='mapped', label_map=str(path))
    assert 'Sky' in node.log and 'become unknown' in node.log
    heard = {name: robot.listen(f'/mapped/segmentation/{name}')
             for name in ('labels', 'mask_rle', 'color')}
    plain = robot.listen('/plain/segmentation/labels')
    image = make_image(RGB)
    ids = pixels(robot.label(robot.publisher('/plain/image'), image, plain))[..., 0]
    camera = robot.publisher('/mapped/image')
    labels, mask, color = (robot.label(camera, image, heard[name]) for name in heard)

    expected = np.full(ids.shape, 255, np.uint8)
    expected[np.isin(ids, [CAMVID.names.index('Road'), CAMVID.names.index('Pavement')])] = 9
    expected[ids == CAMVID.names.index('Tree')] = 200
    assert {9, 255} <= set(np.unique(expected))
    assert np.array_equal(pixels(labels)[..., 0], expected)
    assert np.array_equal(decode_mask(mask), expected)
    assert (pixels(color, 3)[expected == 9] == (10, 20, 30)).all()
    assert robot.get_parameter('class_names', '/mapped/segmentation') == ['GROUND', 'TREE']
    assert robot.get_parameter('class_colors', '/mapped/segmentation')[:3] == [10, 20, 30]


def test_label_map_of_unknown_classes_is_refused_with_those_there_are(robot, tmp_path):
    path = tmp_path / 'map.yaml'
    path.write_text(yaml.safe_dump({'classes': [
        {'name': 'a', 'id': 1, 'from': ['Rode']}, {'name': 'b', 'id': 2, 'from': ['Car']}]}))
    node = robot.start_node(wait='', label_map=str(path))
    line = node.wait_for_log('cannot configure: .*')[0]
    assert 'Rode' in line and all(name in line for name in CAMVID.names)
    assert robot.state() == 'unconfigured'


def test_wrong_transport_is_told(robot):
    node = robot.start_node(no_frames_after_s=0.5)
    robot.listen('/segmentation/labels')
    camera = robot.publisher('/image/compressed', message_type=CompressedImage)
    deadline = time.monotonic() + 30
    while 'image_transport' not in node.log and time.monotonic() < deadline:
        camera.publish(png(RGB))
        time.sleep(0.2)
    assert '/image/compressed: set the parameter image_transport to compressed' in node.log


def test_jpeg_quality_changes_while_running(robot):
    robot.start_node()
    overlays = robot.listen('/segmentation/overlay/compressed', CompressedImage)
    publisher = robot.publisher()
    sizes = []
    for stamp_s, quality in ((1.0, 95), (2.0, 10)):
        assert robot.set_parameter('jpeg_quality', quality)[0]
        sizes.append(len(robot.label(publisher, make_image(RGB, stamp_s), overlays).data))
    assert sizes[1] < sizes[0] / 2
    assert not robot.set_parameter('jpeg_quality', 101)[0]
    wait_until(lambda: robot.get_parameter('jpeg_quality') == 10, 'the old value')


def test_output_that_cannot_be_made_is_told_and_the_others_come(robot, model_file):
    robot.start_node(model=model_file, network_size='64x48', diagnostics_period_s=0.2)
    overlays = robot.listen('/segmentation/overlay/compressed', CompressedImage)
    colors = robot.listen('/segmentation/color')
    publisher = robot.publisher()
    robot.wait_for_subscriber(publisher)
    robot.label(publisher, make_image(np.zeros((4, 70_000, 3), np.uint8)), colors)
    _, values = robot.diagnostics(lambda values: int(values['failed']) > 0)
    assert 'segmentation/overlay/compressed: 70000x4 pixels cannot be' in values['last_error']
    assert values['refused'] == '0' and not overlays
