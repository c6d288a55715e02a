"""The layouts that people look at the topics with: what they name is there to be seen."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import rclpy
import yaml
from sensor_msgs.msg import Image

from seg_ros.ros.image_source import ImageSource
from seg_ros.ros.node import SegmentationNode
from seg_ros.ros.outputs import TYPES

ROOT = Path(__file__).parents[2]
LAYOUT = json.loads((ROOT / 'config' / 'seg_foxglove.json').read_text(encoding='utf-8'))
# Where panels of each type keep what they show. The names are those of the types in layouts that
# Foxglove exports.
TOPIC_OF = {'Image': lambda config: config['imageMode']['imageTopic'],
            'DiagnosticSummary': lambda config: config['topicToRender'],
            'RawMessages': lambda config: config['topicPath'].partition('.')[0]}


@pytest.fixture(scope='module')
def published() -> dict[str, type]:
    """Type of each topic that the node, once configured, and the image source publish."""
    rclpy.init(args=['--ros-args', '-p', 'autostart:=false'])
    try:
        nodes = [SegmentationNode(), ImageSource()]
        topics = {publisher.topic_name: publisher.msg_type
                  for node in nodes for publisher in node.publishers}
        for node in nodes:
            node.destroy_node()
    finally:
        rclpy.try_shutdown()
    return topics | {f'/segmentation/{name}': kind for name, kind in TYPES.items()}


def leaves(tree: str | dict) -> Iterator[str]:
    """Panels of a layout, which is a tree of halves."""
    if isinstance(tree, str):
        yield tree
        return
    assert tree.keys() == {'direction', 'first', 'second', 'splitPercentage'}
    assert tree['direction'] in ('row', 'column') and 0 < tree['splitPercentage'] < 100
    yield from leaves(tree['first'])
    yield from leaves(tree['second'])


def test_foxglove_layout_has_what_an_import_asks_for():
    for key in ('configById', 'globalVariables', 'userNodes'):
        assert isinstance(LAYOUT[key], dict)
    assert LAYOUT['playbackConfig'] == {'speed': 1}


def test_every_panel_of_the_foxglove_layout_is_placed_once_and_has_its_settings():
    placed = list(leaves(LAYOUT['layout']))
    assert sorted(placed) == sorted(LAYOUT['configById'])
    for panel in placed:
        kind, mark, _ = panel.partition('!')
        assert mark and kind in TOPIC_OF


def test_foxglove_shows_topics_that_are_published(published):
    shown = {panel: TOPIC_OF[panel.partition('!')[0]](config)
             for panel, config in LAYOUT['configById'].items()}
    assert {'/image', '/segmentation/overlay', '/segmentation/color',
            '/diagnostics'} == set(shown.values())
    for panel, topic in shown.items():
        assert topic in published
        assert (published[topic] is Image) == panel.startswith('Image!')


def test_rviz_shows_images_that_are_published(published):
    text = (ROOT / 'config' / 'seg.rviz').read_text(encoding='utf-8')
    displays = yaml.safe_load(text)['Visualization Manager']['Displays']
    assert len(displays) == 3
    for display in displays:
        assert display['Class'] == 'rviz_default_plugins/Image'
        topic = display['Topic']['Value']
        assert not topic.startswith('/'), 'would not follow the namespace'
        assert published[f'/{topic}'] is Image
