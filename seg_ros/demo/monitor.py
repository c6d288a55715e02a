"""A subscriber of all that the demo shows, which keeps count."""

import time
from collections.abc import Callable

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import GetParameters
from rclpy.client import Client
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.time import Time
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Header

from seg_ros.demo.stamps import StampJoin
from seg_ros.demo.stream_statistics import StreamStatistics
from seg_ros.labels import CAMVID, LabelSet
from seg_ros.ros.messages import to_rgb
from seg_ros.training.metrics import ConfusionMatrix

NODE = 'segmentation'
# Deep enough that nothing is lost while another message is worked on.
QOS = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=10,
                 reliability=ReliabilityPolicy.RELIABLE)
SERVICE_PATIENCE_S = 5.0


class Monitor(Node):
    """Listens to the image source and to the node.

    :param executor: for its callbacks.
    :param drawn: the image source publishes the truth.
    :param on_frame: called with the labels, (H, W) uint8 ids, and the overlay, (H, W, 3) uint8
        RGB, of each frame of which both arrived.
    """

    def __init__(self, executor: Executor, drawn: bool,
                 on_frame: Callable[[np.ndarray, np.ndarray], None]) -> None:
        super().__init__('demo_monitor')
        self.statistics = StreamStatistics()
        self.confusion = ConfusionMatrix(len(CAMVID))
        self.diagnostics: dict[str, str] = {}
        self._on_frame = on_frame
        self._scored = StampJoin('truth', 'labels')
        self._shown = StampJoin('overlay', 'labels')
        self._drawn = drawn
        # Each image has a CameraInfo of the same stamp, which costs next to nothing to receive.
        self.create_subscription(CameraInfo, 'camera_info', self._hear_frame, QOS)
        self.create_subscription(Image, f'{NODE}/labels', self._hear_labels, QOS)
        self.create_subscription(Image, f'{NODE}/overlay', self._hear_overlay, QOS)
        self.create_subscription(DiagnosticArray, '/diagnostics', self._hear_diagnostics, QOS)
        if drawn:
            self.create_subscription(Image, 'truth', self._hear_truth, QOS)
        self._parameter_client: Client = self.create_client(
            GetParameters, f'{NODE}/get_parameters')
        self._executor = executor
        executor.add_node(self)

    def listen(self, seconds: float) -> None:
        """Receive for a while; returns after the first message that came."""
        self._executor.spin_once(timeout_sec=seconds)

    @property
    def startup_stage(self) -> str:
        """How far the node has come before its first label image."""
        if NODE not in self.get_node_names():
            return 'starting the node'
        if not self.count_publishers(f'{NODE}/labels'):
            return 'the node loads its model'
        return 'the model is ready, waiting for the first label image'

    def read_classes(self) -> LabelSet | None:
        """Ask the node for its classes; None where it does not answer."""
        request = GetParameters.Request(names=['class_names', 'class_colors'])
        answer = self._parameter_client.call_async(request)
        self._executor.spin_until_future_complete(answer, SERVICE_PATIENCE_S)
        response = answer.result() if answer.done() else None
        if response is None:
            return None
        names, colors = response.values
        flat = list(colors.integer_array_value)
        return LabelSet(tuple(names.string_array_value),
                        tuple(zip(flat[::3], flat[1::3], flat[2::3], strict=True)))

    def miou(self, classes: LabelSet | None) -> float | None:
        """Score against the drawn scene's truth in percent; None where there is none to give."""
        if not self._drawn or classes is None or classes.names != CAMVID.names:
            return None
        if not self.confusion.counts.any():
            return None
        return 100 * self.confusion.scores().miou

    def _hear_frame(self, info: CameraInfo) -> None:
        self.statistics.frame_published(_stamp_ns(info.header))

    def _hear_labels(self, image: Image) -> None:
        stamp_ns = _stamp_ns(image.header)
        if not self.statistics.frame_labelled(stamp_ns, time.time_ns()):
            return
        labels = _ids(image)
        self._score(self._scored.add('labels', stamp_ns, labels) if self._drawn else None)
        self._show(self._shown.add('labels', stamp_ns, labels))

    def _hear_truth(self, image: Image) -> None:
        self._score(self._scored.add('truth', _stamp_ns(image.header), _ids(image)))

    def _hear_overlay(self, image: Image) -> None:
        self._show(self._shown.add('overlay', _stamp_ns(image.header), to_rgb(image)))

    def _hear_diagnostics(self, array: DiagnosticArray) -> None:
        for status in array.status:
            if status.name.startswith(NODE):
                self.diagnostics = {entry.key: entry.value for entry in status.values}

    def _score(self, frame: dict[str, np.ndarray] | None) -> None:
        if frame is not None:
            self.confusion.add(frame['truth'], frame['labels'])

    def _show(self, frame: dict[str, np.ndarray] | None) -> None:
        if frame is not None:
            self._on_frame(frame['labels'], frame['overlay'])


def _stamp_ns(header: Header) -> int:
    return Time.from_msg(header.stamp).nanoseconds


def _ids(image: Image) -> np.ndarray:
    """Class ids of a mono8 message, (H, W) uint8, a view of its data."""
    return np.ndarray((image.height, image.width), np.uint8, image.data, 0, (image.step, 1))
