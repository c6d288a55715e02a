"""A bag that seg_bag labels, beside the node on the same picture."""

import sys
from pathlib import Path

import numpy as np
import pytest
from robot import make_image

from seg_ros.drawn_scene import DrawnScene

pytest.importorskip('rosbags')

from bags import image, images_on, pixels, write_bag  # noqa: E402

from seg_ros.bag import command  # noqa: E402

MAP = Path(__file__).parents[2] / 'config' / 'autoware.yaml'
RGB, _ = DrawnScene(2, 320, 240).frame(1.0)


def test_bag_gets_the_labels_and_overlay_of_the_node_for_the_same_map(robot, tmp_path,
                                                                      monkeypatch):
    robot.start_node(engine='auto', label_map=str(MAP))
    heard = {name: robot.listen(f'/segmentation/{name}') for name in ('labels', 'overlay')}
    camera, message = robot.publisher(), make_image(RGB)
    of_node = {name: robot.label(camera, message, messages) for name, messages in heard.items()}

    write_bag(tmp_path / 'in', [('/image', image(RGB), 5)])
    monkeypatch.setattr(sys, 'argv', [
        'seg_bag', str(tmp_path / 'in'), str(tmp_path / 'out'), '--device', 'cpu',
        '--threads', '1', '--label-map', str(MAP)])
    assert command.main() == 0
    for name, expected in of_node.items():
        made, = images_on(tmp_path / 'out', f'/segmentation/{name}')
        assert made.encoding == expected.encoding
        assert np.array_equal(pixels(made).ravel(), np.frombuffer(expected.data, np.uint8))
    assert {9, 15} <= set(of_node['labels'].data)  # Autoware's road and sky
