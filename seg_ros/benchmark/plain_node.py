"""The node that one writes first: subscribe, convert, run PyTorch, publish.

Written after the usual tutorials, for measuring against ours. It labels the same pictures with
the same network at the same size.
"""

import sys
from collections.abc import Sequence

import cv2
import numpy as np
import rclpy
import torch
from rclpy.node import Node
from sensor_msgs.msg import Image

from seg_ros.benchmark.variants import TUTORIALS_QUEUE, parse_size
from seg_ros.model_file import load_model
from seg_ros.model_spec import input_size
from seg_ros.ros.process import run_process


class PlainNode(Node):
    """Subscribes to ``image``, bgr8, and publishes labels and overlay as our node does."""

    def __init__(self) -> None:
        super().__init__('segmentation')
        self.declare_parameter('model', '')
        self.declare_parameter('threads', 0)
        self.declare_parameter('network_size', '')
        self.declare_parameter('queue', TUTORIALS_QUEUE)
        if threads := self.get_parameter('threads').value:
            torch.set_num_threads(threads)
        self.model = load_model(self.get_parameter('model').value)
        size = self.get_parameter('network_size').value
        self.network_size = parse_size(size) if size else None
        queue = self.get_parameter('queue').value
        self.labels_publisher = self.create_publisher(Image, 'segmentation/labels', queue)
        self.overlay_publisher = self.create_publisher(Image, 'segmentation/overlay', queue)
        self.create_subscription(Image, 'image', self.segment, queue)

    def segment(self, message: Image) -> None:
        spec = self.model.spec
        bgr = np.frombuffer(message.data, np.uint8).reshape(message.height, message.width, 3)
        rgb = cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)
        height, width = self.network_size or input_size(spec, message.height, message.width)
        small = cv2.resize(rgb, (width, height))
        mean, std = np.array(spec.mean, np.float32), np.array(spec.std, np.float32)
        normalised = (small - mean) / std
        with torch.no_grad():
            logits = self.model.network(torch.from_numpy(normalised.transpose(2, 0, 1))[None])
            probabilities = torch.softmax(logits, dim=1)
            channels = torch.argmax(probabilities, dim=1)[0].numpy()
        labels = np.array(spec.labels.ids, np.uint8)[channels]
        labels = cv2.resize(labels, (message.width, message.height),
                            interpolation=cv2.INTER_NEAREST)
        colors = spec.labels.palette[labels]
        overlay = cv2.addWeighted(rgb, 0.5, colors, 0.5, 0)
        self.publish(self.labels_publisher, labels, 'mono8', message)
        self.publish(self.overlay_publisher, overlay, 'rgb8', message)

    def publish(self, publisher, array: np.ndarray, encoding: str, source: Image) -> None:
        message = Image()
        message.header = source.header
        message.height, message.width = array.shape[:2]
        message.encoding = encoding
        message.step = array[0].size
        message.data = array.tobytes()
        publisher.publish(message)


def _run() -> None:
    rclpy.spin(PlainNode())


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until it is told to stop; return the exit code."""
    return run_process('plain_node', _run, args)


if __name__ == '__main__':
    sys.exit(main())
