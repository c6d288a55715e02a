"""What Nav2's semantic_segmentation_layer reads: parameters, and pixels as it addresses them."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from random_models import random_model
from robot import drawn, make_image
from std_msgs.msg import Header

from seg_ros.inference.engines import create_engine
from seg_ros.inference.segmenter import Segmenter
from seg_ros.labels import CAMVID
from seg_ros.ros.messages import to_image

MODEL = random_model()
# Type that the layer declares each parameter with: ROS refuses any other.
PARAMETERS = {'plugin': str, 'enabled': bool, 'combination_method': int,
              'observation_sources': str}
SOURCE_PARAMETERS = {
    'segmentation_topic': str, 'confidence_topic': str, 'labels_topic': str,
    'pointcloud_topic': str, 'max_obstacle_distance': float, 'min_obstacle_distance': float,
    'tile_map_decay_time': float, 'use_cost_selection': bool, 'class_types': list}
TYPE_PARAMETERS = {'classes': list, 'base_cost': int, 'max_cost': int, 'mark_confidence': int,
                   'samples_to_max_cost': int, 'dominant_priority': bool}


@pytest.fixture(scope='module')
def layer():
    path = Path(__file__).parents[2] / 'config' / 'nav2.yaml'
    costmap = yaml.safe_load(path.read_text(encoding='utf-8'))['local_costmap']['local_costmap']
    return costmap['ros__parameters']['semantic_layer']


def test_parameters_have_the_names_and_types_that_the_layer_declares(layer):
    source = layer['camera']
    for values, types, nested in (
            (layer, PARAMETERS, {'camera'}),
            (source, SOURCE_PARAMETERS, set(source['class_types'])),
            *((source[kind], TYPE_PARAMETERS, set()) for kind in source['class_types'])):
        assert values.keys() == types.keys() | nested
        assert all(type(values[name]) is kind for name, kind in types.items())


def test_every_class_but_the_sky_has_one_cost(layer):
    source = layer['camera']
    classes = [name for kind in source['class_types'] for name in source[kind]['classes']]
    assert sorted(classes) == sorted(set(CAMVID.names) - {'Sky'})
    for kind in source['class_types']:
        assert 0 <= source[kind]['base_cost'] <= source[kind]['max_cost'] <= 254


def test_labels_and_confidence_of_the_node_are_read_by_the_pixels_of_the_cloud(robot, model_file):
    """The layer takes the pixel of a point by the point's number, of messages of one stamp."""
    robot.start_node(model=model_file, output_size='96x64')
    heard = {name: robot.listen(f'/segmentation/{name}') for name in ('labels', 'confidence')}
    rgb = drawn(240, 160)
    publisher = robot.publisher()
    robot.wait_for_subscriber(publisher)
    stamped = make_image(rgb)
    robot.label(publisher, stamped, heard['labels'])
    robot.label(publisher, stamped, heard['confidence'])
    network = Segmenter(MODEL, create_engine(MODEL, 'torch', 'cpu'), output_size=(64, 96))
    seen, = network.segment([rgb], 0.0, True)
    for name, expected in (('labels', seen.labels), ('confidence', seen.confidence)):
        message = heard[name][-1]
        assert (message.width, message.height, message.step) == (96, 64, 96)
        points = list(message.data)
        assert len(set(points)) > 2, 'it would say nothing'
        assert all(points[v * 96 + u] == expected[v, u] for v in range(64) for u in range(96))


def test_pixels_lie_where_the_layer_looks_for_them():
    # Longer than it is high, and cut out of a larger array: its rows do not touch.
    labels = np.random.default_rng(1).integers(0, 256, (40, 70)).astype(np.uint8)[3:23, 5:62]
    message = to_image(labels, 'mono8', Header())
    assert len(message.data) == message.width * message.height
    for v in range(message.height):
        for u in range(message.width):
            assert message.data[v * message.width + u] == labels[v, u]
