"""Compressed image messages in and out: JPEG and PNG, as image_transport sends them."""

import cv2
import numpy as np
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import Header

from seg_ros.errors import ImageError
from seg_ros.jpeg_png import read_size
from seg_ros.ros.messages import MAX_PIXELS, payload

# What compressed_image_transport writes of mono8 and rgb8; its subscriber reads the parts.
PNG_FORMAT = 'mono8; png compressed '
JPEG_FORMAT = 'rgb8; jpeg compressed bgr8'

# Colour without alpha, of 16 bits the high ones. The picture stays as it lies in the camera, to
# which CameraInfo belongs, whatever orientation its EXIF data has.
_READ = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION


def decode(message: CompressedImage) -> np.ndarray:
    """Pixels of a compressed image message.

    The bytes tell what it is, whatever ``format`` claims: a JPEG or PNG, of grey or colour; alpha
    is left out, and 16-bit samples are scaled by ``>> 8``, as those of an image message.

    :return: (H, W, 3) uint8 RGB, C-contiguous.
    :raises ImageError: neither JPEG nor PNG, cut off, damaged, or of more than ``MAX_PIXELS``,
        which is found out before anything is decoded.
    """
    data = memoryview(message.data)
    what = f'compressed image message of {len(data)} bytes and format {message.format[:60]!r}'
    remedy = 'have the camera driver send whole JPEG or PNG pictures'
    try:
        size = read_size(data)
    except ImageError as error:
        raise ImageError(f'{what}: {error}; expected a whole JPEG or PNG of grey or RGB; '
                         f'{remedy}') from error
    if not 0 < size.width * size.height <= MAX_PIXELS:
        raise ImageError(f'{what}: a {size.kind} of {size.width}x{size.height} pixels; expected '
                         f'1 to {MAX_PIXELS} in all; have the camera driver send a picture of '
                         'such a size')
    try:
        bgr = cv2.imdecode(np.frombuffer(data, np.uint8), _READ)
    except cv2.error as error:
        raise ImageError(f'{what}: a {size.kind} that OpenCV cannot decode '
                         f'({str(error)[:200]}); {remedy}') from error
    if bgr is None or bgr.shape != (size.height, size.width, 3):
        raise ImageError(f'{what}: a {size.kind} of {size.width}x{size.height} pixels that OpenCV '
                         f'cannot decode; {remedy}')
    return cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)


def encode_png(labels: np.ndarray, header: Header) -> CompressedImage:
    """Compress labels without loss.

    :param labels: (H, W) uint8 class ids, at least one pixel.
    :param header: becomes the message's own, stamp and frame_id untouched.
    """
    # Without a level OpenCV takes one filter and run lengths: a third of the time of any level,
    # at 1080p 4 ms, for the same number of bytes.
    return _message(_encode('.png', labels), PNG_FORMAT, header)


def encode_jpeg(rgb: np.ndarray, header: Header, quality: int) -> CompressedImage:
    """Compress a picture.

    :param rgb: (H, W, 3) uint8, at least one pixel.
    :param header: becomes the message's own, stamp and frame_id untouched.
    :param quality: 1 to 100, the best.
    :raises ImageError: more pixels wide or high than a JPEG can be.
    """
    bgr = cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR)
    return _message(_encode('.jpg', bgr, cv2.IMWRITE_JPEG_QUALITY, quality), JPEG_FORMAT, header)


def _encode(kind: str, picture: np.ndarray, *settings: int) -> np.ndarray:
    try:
        done, data = cv2.imencode(kind, picture, settings)
    except cv2.error:  # so OpenCV 4 says no
        done = False
    if not done:
        height, width = picture.shape[:2]
        raise ImageError(f'{width}x{height} pixels cannot be written as {kind}; set output_size '
                         'to less, or do not listen to the compressed topic')
    return data


def _message(picture: np.ndarray, name: str, header: Header) -> CompressedImage:
    message = CompressedImage(header=header, format=name)
    message.data = payload(picture)
    return message
