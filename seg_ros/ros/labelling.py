"""All that a configured node has: model, engine, worker and cameras."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from rclpy.executors import ExternalShutdownException
from rclpy.node import Node

from seg_ros.inference.device_segmenter import create_segmenter
from seg_ros.inference.engines import Announce, create_engine
from seg_ros.label_map import find_label_map
from seg_ros.model_file import load_model
from seg_ros.ros.batching import measure_batching
from seg_ros.ros.camera_stream import CameraStream
from seg_ros.ros.config import read_cameras
from seg_ros.ros.frame_slots import FrameSlots
from seg_ros.ros.worker import Worker
from seg_ros.sizes import read_size

WARM_UP_SIZE = (480, 640)  # the commonest camera; another size costs its first frame some time


class Labelling:
    """Labels the frames of all cameras between ``start`` and ``stop``.

    :param values: of the parameters, by name.
    :param announce: told what the engine does.
    :raises SegRosError: a parameter, or the file that it names, cannot be used; nothing is left
        behind.
    """

    def __init__(self, node: Node, values: Mapping[str, Any], announce: Announce) -> None:
        model = load_model(values['model'])
        label_map = find_label_map(values['label_map'], model.spec.labels,
                                   node.get_logger().info)
        with ExitStack() as undo:
            self.engine = create_engine(model, values['engine'], values['device'],
                                        values['precision'], values['threads'], announce=announce)
            undo.callback(self.engine.close)
            _expect_running(node)
            segmenter = create_segmenter(model, self.engine, read_size(values['network_size']),
                                         read_size(values['output_size']), label_map)
            segmenter.warm_up(*WARM_UP_SIZE)
            _expect_running(node)
            names = read_cameras(values['cameras'])
            batching = measure_batching(segmenter, len(names), *WARM_UP_SIZE)
            self._worker = Worker(node, segmenter, batching.sizes)
            self.labels = segmenter.labels
            self.cameras: dict[str, CameraStream] = {}
            for name in names:
                camera = self.cameras[name] = CameraStream(
                    node, name, self.labels, values['image_transport'] == 'compressed',
                    values['reliability'], values['encoding_override'])
                undo.callback(camera.destroy)
            self._undo = undo.pop_all()
        node.get_logger().info(
            f'{model.path} ({model.spec.architecture}, {len(model.spec.labels)} classes) on '
            f'{self.engine.name}, {self.engine.device}, {self.engine.precision}')
        if batching.times:
            node.get_logger().info(f'measured: {batching}')

    def start(self) -> None:
        """Subscribe and label what comes."""
        slots = FrameSlots()
        self._worker.start(slots)
        for camera in self.cameras.values():
            camera.start(slots)

    def stop(self) -> None:
        """Unsubscribe; come back when the frames in hand are published."""
        for camera in self.cameras.values():
            camera.stop()
        self._worker.stop()

    def close(self) -> None:
        """Stop, and give everything back."""
        self.stop()
        self._undo.close()


def _expect_running(node: Node) -> None:
    """Leave off where a signal has ended ROS meanwhile: what is left may take a second and more.

    :raises ExternalShutdownException: it has.
    """
    if not node.context.ok():
        raise ExternalShutdownException
