"""The node that ours is measured against does the same work."""

import cv2
import numpy as np
from random_models import random_model
from robot import make_image

from seg_ros.drawn_scene import DrawnScene
from seg_ros.inference.engines import create_engine
from seg_ros.inference.segmenter import Segmenter
from seg_ros.labels import CAMVID, LabelSet
from seg_ros.model_file import save_model

LABELS = LabelSet(CAMVID.names[:5], CAMVID.colors[:5], (3, 0, 9, 200, 1))


def test_plain_node_labels_as_ours_does(robot, tmp_path):
    model = random_model(labels=LABELS)
    path = tmp_path / 'tiny.safetensors'
    save_model(path, model.network, model.spec)
    rgb, _ = DrawnScene(2, 192, 128).frame(1.0)
    robot.start('seg_ros.benchmark.plain_node', '--ros-args', '-p', f'model:={path}')
    labels, overlays = robot.listen('/segmentation/labels'), robot.listen('/segmentation/overlay')
    publisher = robot.publisher()
    robot.wait_for_subscriber(publisher)
    message = make_image(np.ascontiguousarray(rgb[..., ::-1]))
    message.encoding = 'bgr8'
    answer = robot.label(publisher, message, labels)
    overlay = robot.label(publisher, message, overlays)

    found = np.frombuffer(answer.data, np.uint8).reshape(128, 192)
    expected, = Segmenter(model, create_engine(model, 'torch', 'cpu')).segment([rgb])
    assert len(np.unique(found)) > 2, 'the comparison would say nothing'
    # Ours resizes with less aliasing, and its label maps are not shifted.
    assert (found == expected.labels).mean() > 0.9
    assert (answer.encoding, answer.step) == ('mono8', 192)
    mixed = cv2.addWeighted(rgb, 0.5, LABELS.palette[found], 0.5, 0)
    assert np.array_equal(np.frombuffer(overlay.data, np.uint8).reshape(128, 192, 3), mixed)
    assert overlay.header == message.header
