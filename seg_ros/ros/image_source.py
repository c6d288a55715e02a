"""image_source: a camera made of the drawn scene, pictures, a video or a webcam."""

import contextlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import rclpy
from rclpy.duration import Duration
from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Header

from seg_ros.drawn_scene.camera import focal_px
from seg_ros.errors import ConfigError, ImageError
from seg_ros.picture_sources import (
    DrawnPictures,
    FolderPictures,
    PictureSource,
    VideoPictures,
    open_webcam,
)
from seg_ros.ros.messages import to_image
from seg_ros.ros.parameter import Parameter, warn_of_unknown_parameters
from seg_ros.ros.process import make_node, run_process
from seg_ros.ros.spinning import single_threaded_executor

PARAMETERS = (
    Parameter('source', 'drawn', 'What is seen: the drawn road scene, the pictures of a folder, '
              'a video file or a webcam.', choices=('drawn', 'images', 'video', 'camera')),
    Parameter('path', '', 'The folder of source images or the file of source video.'),
    Parameter('camera_index', 0, 'Which webcam source camera opens.', 0, 63),
    Parameter('seed', 0, 'Which street the drawn scene shows.', 0, 999_999),
    Parameter('width', 640, 'Pixels in a row of the drawn scene; asked of a webcam.', 32, 8192),
    Parameter('height', 480, 'Rows of the drawn scene; asked of a webcam.', 32, 8192),
    Parameter('rate_hz', 10.0, 'Pictures a second; fewer come where the source is slower.',
              0.1, 240.0),
    Parameter('encoding', 'rgb8', 'Encoding of the images.', choices=('rgb8', 'bgr8', 'mono8')),
    Parameter('frame_id', 'camera', 'Coordinate frame in the headers.'),
    Parameter('truth', False, 'Publish the exact class ids of the drawn scene as mono8 on truth.'),
    Parameter('frames', 0, 'Pictures to publish before the node ends; 0: without end.',
              0, 999_999),
    Parameter('reliability', 'reliable', 'How all topics are published; best_effort is not heard '
              'by reliable subscriptions, as RViz has them.', choices=('reliable', 'best_effort')),
)
DEPTH = 5  # that a reader which is late for one picture does not lose it
FAILURE_LOG_PERIOD_S = 5.0
LAST_DELIVERY_S = 2.0


class ImageSource(Node):
    """Publishes ``image``, ``camera_info`` and, if wanted, ``truth``, all with the same stamp.

    :raises ConfigError: a parameter, or the picture source it names, cannot be used.
    """

    def __init__(self) -> None:
        super().__init__('image_source')
        self._values = {row.name: self._declare(row) for row in PARAMETERS}
        warn_of_unknown_parameters(self)
        self.source = _open_source(self._values)
        qos = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=DEPTH,
                         reliability=ReliabilityPolicy[self._values['reliability'].upper()])
        self._images = self.create_publisher(Image, 'image', qos)
        self._infos = self.create_publisher(CameraInfo, 'camera_info', qos)
        self._truths = (self.create_publisher(Image, 'truth', qos) if self._values['truth']
                        else None)
        self._left: int | None = self._values['frames'] or None
        self._started_s = time.monotonic()
        # A period that passes while a picture is made is left out by the timer: no backlog.
        self.create_timer(1 / self._values['rate_hz'], self._publish)
        self.get_logger().info(f'publishing {self._values["source"]} on '
                               f'{self.resolve_topic_name("image")} at '
                               f'{self._values["rate_hz"]:g} Hz')

    @property
    def done(self) -> bool:
        """Whether all wanted pictures are published."""
        return self._left == 0

    def wait_for_delivery(self) -> None:
        """Let reliable subscriptions receive what was published, within a time."""
        for publisher in (self._images, self._infos, self._truths):
            if publisher is not None:
                publisher.wait_for_all_acked(Duration(seconds=LAST_DELIVERY_S))

    def _declare(self, row: Parameter) -> Any:
        try:
            self.declare_parameter(row.name, row.default, row.descriptor(read_only=True))
            return row.check(self.get_parameter(row.name).value)
        except ParameterException as error:  # says the parameter and the value
            raise ConfigError(f'{error}; expected {row.expected()}') from error

    def _publish(self) -> None:
        if self.done:
            return
        try:
            picture = self.source.picture_at(time.monotonic() - self._started_s)
        except ImageError as error:
            self.get_logger().error(str(error), throttle_duration_sec=FAILURE_LOG_PERIOD_S)
            return
        header = Header(stamp=self.get_clock().now().to_msg(), frame_id=self._values['frame_id'])
        if self._truths is not None and picture.ids is not None:
            self._truths.publish(to_image(picture.ids, 'mono8', header))
        self._infos.publish(_camera_info(header, *picture.rgb.shape[:2]))
        self._images.publish(_encode(picture.rgb, self._values['encoding'], header))
        if self._left is not None:
            self._left -= 1


def _open_source(values: dict[str, Any]) -> PictureSource:
    """Open what the parameters name.

    :raises ConfigError: they contradict each other, or it cannot be opened.
    """
    source, path = values['source'], values['path']
    if source in ('images', 'video') and not path:
        raise ConfigError(f'source {source} needs the parameter path; set path to a '
                          f'{"folder" if source == "images" else "file"}')
    if source not in ('images', 'video') and path:
        raise ConfigError(f'path {path!r} is not used by source {source}; set source to images '
                          'or video, or leave path out')
    if values['truth'] and source != 'drawn':
        raise ConfigError(f'truth is not known for source {source}; set truth to false, or '
                          'source to drawn')
    if source == 'images':
        return FolderPictures(Path(path))
    if source == 'video':
        return VideoPictures(Path(path))
    if source == 'camera':
        return open_webcam(values['camera_index'], values['width'], values['height'])
    return DrawnPictures(values['seed'], values['width'], values['height'])


def _encode(rgb: np.ndarray, encoding: str, header: Header) -> Image:
    """Put a picture, (H, W, 3) uint8 RGB, into a message of that encoding."""
    if encoding == 'mono8':
        return to_image(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), 'mono8', header)
    if encoding == 'rgb8':
        return to_image(rgb, 'rgb8', header)
    image = to_image(cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR), 'rgb8', header)
    image.encoding = encoding
    return image


def _camera_info(header: Header, height: int, width: int) -> CameraInfo:
    """Calibration of a camera without distortion that sees as wide as the drawn scene's."""
    focal = focal_px(width, height)
    x, y = (width - 1) / 2, (height - 1) / 2
    return CameraInfo(
        header=header, height=height, width=width, distortion_model='plumb_bob', d=[0.0] * 5,
        k=[focal, 0.0, x, 0.0, focal, y, 0.0, 0.0, 1.0],
        r=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        p=[focal, 0.0, x, 0.0, 0.0, focal, y, 0.0, 0.0, 0.0, 1.0, 0.0])


def _run() -> None:
    node = make_node(ImageSource)
    with contextlib.closing(node.source), single_threaded_executor() as executor:
        executor.add_node(node)
        while rclpy.ok() and not node.done:
            executor.spin_once()
        if node.done:
            node.wait_for_delivery()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until it is told to stop, or has published all wanted pictures.

    :return: exit code.
    """
    return run_process('image_source', _run, args)


if __name__ == '__main__':
    sys.exit(main())
