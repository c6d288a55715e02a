"""Image messages in and out: message to RGB array, array to message."""

from array import array as typed_array
from functools import cache
from typing import Any

import numpy as np
from sensor_msgs.msg import Image
from std_msgs.msg import Header

from seg_ros.errors import ImageError
from seg_ros.ros.encodings import ENCODINGS, SUPPORTED_ENCODINGS, Encoding, Raster

MAX_PIXELS = 64_000_000
"""A message that claims more pixels is refused: it is taken for a damaged one."""

_OUT_DIMENSIONS = {'mono8': 2, 'rgb8': 3}


def to_rgb(message: Image, encoding_override: str = '') -> np.ndarray:
    """Pixels of an image message, whatever its encoding and row padding.

    :param message: stays as it is.
    :param encoding_override: taken instead of the message's encoding, unless empty.
    :return: (H, W, 3) uint8 RGB, C-contiguous. For unpadded ``rgb8`` it is a view of the
        message's data: whoever writes into it writes into the message.
    :raises ImageError: the size, step, encoding and data length do not fit each other, the
        encoding is not known, or the picture has more than ``MAX_PIXELS``.
    """
    name = encoding_override or message.encoding
    width, height = message.width, message.height
    if not width or not height:
        raise ImageError(f'image message of {width}x{height} pixels: expected at least 1x1; '
                         'check the camera driver')
    if width * height > MAX_PIXELS:
        raise ImageError(f'image message of {width}x{height} pixels: expected at most '
                         f'{MAX_PIXELS} in all; have the camera driver send a smaller picture')
    encoding = ENCODINGS.get(name)
    if encoding is None:
        return _by_cv_bridge(message, name)
    _check_size(encoding, name, width, height)
    _check_bytes(encoding, name, message)
    return encoding.to_rgb(Raster(message.data, height, width, message.step,
                                  bool(message.is_bigendian)))


def to_image(array: np.ndarray, encoding: str, header: Header) -> Image:
    """Put an array into an image message with unpadded rows.

    :param array: (H, W) uint8 for ``mono8``, (H, W, 3) uint8 for ``rgb8``; it is copied.
    :param encoding: ``mono8`` or ``rgb8``.
    :param header: becomes the message's own, stamp and frame_id untouched.
    :raises ImageError: the array does not have the encoding's shape and type.
    """
    if encoding not in _OUT_DIMENSIONS:
        raise ImageError(f'output encoding {encoding!r}: expected one of '
                         f'{", ".join(_OUT_DIMENSIONS)}')
    wanted = '(H, W)' if encoding == 'mono8' else '(H, W, 3)'
    if (array.dtype != np.uint8 or array.ndim != _OUT_DIMENSIONS[encoding] or not array.size
            or array.shape[2:] not in ((), (3,))):
        raise ImageError(f'array of shape {array.shape} and type {array.dtype} for an {encoding} '
                         f'message: expected {wanted} uint8 with at least one pixel')
    image = Image(header=header, height=array.shape[0], width=array.shape[1], encoding=encoding,
                  is_bigendian=0, step=array[0].size)
    image.data = payload(array)
    return image


def payload(array: np.ndarray) -> typed_array:
    """Copy the bytes of an array, row by row, for the ``data`` of a message.

    It is the one type that the setter of ``data`` takes unchecked; the constructors of messages
    would copy it once more.
    """
    data = typed_array('B')
    data.frombytes(np.ascontiguousarray(array).data)
    return data


def _check_size(encoding: Encoding, name: str, width: int, height: int) -> None:
    smallest = encoding.smallest_side
    if min(width, height) < smallest:
        raise ImageError(f'{name} image message of {width}x{height} pixels: expected at least '
                         f'{smallest}x{smallest}; check the camera driver')
    for side, pixels, multiple in (('width', width, encoding.width_multiple),
                                   ('height', height, encoding.height_multiple)):
        if pixels % multiple:
            raise ImageError(f'{name} image message of {width}x{height} pixels: expected a {side} '
                             f'that is a multiple of {multiple}, because neighbouring pixels '
                             'share their colour; crop to such a size in the camera driver')


def _check_bytes(encoding: Encoding, name: str, message: Image) -> None:
    what = f'{name} image message of {message.width}x{message.height} pixels'
    remedy = 'correct the camera driver, or set encoding_override if the encoding is wrong'
    row_bytes = encoding.row_bytes(message.width)
    if message.step < row_bytes:
        raise ImageError(f'{what} with step {message.step}: expected at least {row_bytes} bytes, '
                         f'the length of a row; {remedy}')
    rows = encoding.rows(message.height)
    if len(message.data) != rows * message.step:
        raise ImageError(f'{what} with step {message.step} has {len(message.data)} bytes of data: '
                         f'expected {rows * message.step} ({rows} rows of {message.step}); '
                         f'{remedy}')


@cache
def _cv_bridge() -> Any:
    """The converter of an installed cv_bridge, else None.

    Asked once: a cv_bridge built for another NumPy fails slowly and prints at each import.
    """
    try:
        from cv_bridge import CvBridge
        return CvBridge()
    except Exception:  # whatever a foreign binary raises, it cannot help here
        return None


def _by_cv_bridge(message: Image, name: str) -> np.ndarray:
    """Have cv_bridge convert what is not in ``ENCODINGS``.

    :raises ImageError: there is no working cv_bridge, or it cannot convert the message.
    """
    refusal = (f'image message of encoding {name[:40]!r}: expected one of '
               f'{", ".join(SUPPORTED_ENCODINGS)} (names are exact); set encoding_override to '
               'what the data is, or have the camera driver send one of these')
    bridge = _cv_bridge()
    if bridge is None:
        raise ImageError(refusal)
    if len(message.data) != message.height * message.step:
        raise ImageError(f'{refusal}. cv_bridge was not asked: {len(message.data)} bytes of data '
                         f'are not {message.height} rows of {message.step}')
    renamed = Image(header=message.header, height=message.height, width=message.width,
                    encoding=name, is_bigendian=message.is_bigendian, step=message.step)
    renamed.data = message.data
    try:
        rgb = bridge.imgmsg_to_cv2(renamed, 'rgb8')
    except Exception as error:  # CvBridgeError, and what NumPy and the binary raise beneath it
        raise ImageError(f'{refusal}. cv_bridge cannot convert it: {error}') from error
    if rgb.shape != (message.height, message.width, 3) or rgb.dtype != np.uint8:
        raise ImageError(f'{refusal}. cv_bridge made {rgb.shape} {rgb.dtype} of it')
    return np.ascontiguousarray(rgb)
