"""Image messages as they lie in a bag: bytes to message and pixels, pixels to bytes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rosbags.serde import SerdeError
from rosbags.typesys import Stores, get_typestore

from seg_ros.errors import ImageError
from seg_ros.jpeg_png import PNG_START
from seg_ros.ros.compressed import decode
from seg_ros.ros.encodings import SUPPORTED_ENCODINGS
from seg_ros.ros.messages import to_rgb

IMAGE, COMPRESSED_IMAGE = 'sensor_msgs/msg/Image', 'sensor_msgs/msg/CompressedImage'

# Types have been recorded with each bag since Humble's successor; these stand in before.
TYPES = get_typestore(Stores.ROS2_HUMBLE)

# What depth is sent as: pictures by their form, but nothing that the network has seen.
DEPTH_ENCODINGS = ('16UC1', 'mono16')
_DEEP_GREY = b'\x10\x00'  # in a PNG's header: 16 bits, one channel


def read_message(data: bytes, message_type: str) -> Any:
    """Read the bytes of an ``IMAGE`` or ``COMPRESSED_IMAGE``.

    :raises ImageError: they are not such a message.
    """
    try:
        return TYPES.deserialize_cdr(data, message_type)
    except SerdeError as error:
        raise ImageError(f'{message_type} of {len(data)} bytes: cannot be read ({error}); it is '
                         'damaged') from error


def picture_of(message: Any) -> np.ndarray:
    """Pixels of a message, as the node sees them.

    :return: (H, W, 3) uint8 RGB; may be a view of the message.
    :raises ImageError: it is malformed, or of an encoding that is not known.
    """
    if message.__msgtype__ == COMPRESSED_IMAGE:
        return decode(message)
    # Checked here, as to_rgb would ask a cv_bridge, which takes messages of rclpy alone.
    if message.encoding not in SUPPORTED_ENCODINGS:
        raise ImageError(_unknown_encoding(message))
    return to_rgb(message)


def why_not_labelled(messages: Sequence[bytes], message_type: str, depth: bool) -> str:
    """Say why the messages of a topic are no pictures to label; '' if one of them is.

    :param messages: of which one is enough, as a camera may begin with a damaged one.
    :param depth: take what depth is sent as.
    """
    reason = 'has no messages'
    for data in messages:
        try:
            message = read_message(data, message_type)
            if message_type == COMPRESSED_IMAGE:
                picture_of(message)
                header = message.data[:26].tobytes()
                is_depth = header.startswith(PNG_START) and header.endswith(_DEEP_GREY)
            elif message.encoding not in SUPPORTED_ENCODINGS:
                raise ImageError(_unknown_encoding(message))
            else:
                is_depth = message.encoding in DEPTH_ENCODINGS
        except ImageError as error:
            reason = str(error)
            continue
        if depth or not is_depth:
            return ''
        reason = ('its pictures are grey with 16 bits, as depth is; name it with --topic to have '
                  'it labelled all the same')
    return reason


def write_image(array: np.ndarray, header: Any) -> memoryview:
    """Bytes of an Image with unpadded rows.

    :param array: (H, W) uint8, which becomes mono8, or (H, W, 3) uint8, which becomes rgb8.
    :param header: of the message that it was made from, kept as it is.
    """
    message = TYPES.types[IMAGE](
        header=header, height=array.shape[0], width=array.shape[1],
        encoding='mono8' if array.ndim == 2 else 'rgb8', is_bigendian=0, step=array[0].size,
        data=np.ascontiguousarray(array).reshape(-1))
    return TYPES.serialize_cdr(message, IMAGE)


def _unknown_encoding(message: Any) -> str:
    return (f'image message of encoding {message.encoding[:40]!r}: expected one of '
            f'{", ".join(SUPPORTED_ENCODINGS)}')
