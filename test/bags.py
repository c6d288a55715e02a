"""Bags with pictures, written and read by the rosbags library alone."""

from pathlib import Path

import cv2
import numpy as np
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

TYPES = get_typestore(Stores.ROS2_JAZZY)
IMAGE, COMPRESSED = 'sensor_msgs/msg/Image', 'sensor_msgs/msg/CompressedImage'
STRING = 'std_msgs/msg/String'


def header(number: int, frame_id: str = 'cam'):
    time_type = TYPES.types['builtin_interfaces/msg/Time']
    return TYPES.types['std_msgs/msg/Header'](
        stamp=time_type(sec=1000 + number, nanosec=7 * number), frame_id=frame_id)


def image(rgb: np.ndarray, number: int = 0, encoding: str = 'rgb8', padding: int = 0, **changes):
    """Topic type and bytes of an image message."""
    rows = rgb.reshape(rgb.shape[0], -1)
    rows = np.pad(rows, ((0, 0), (0, padding)), constant_values=201)
    values = {'header': header(number), 'height': rgb.shape[0], 'width': rgb.shape[1],
              'encoding': encoding, 'is_bigendian': 0, 'step': rows.strides[0],
              'data': rows.reshape(-1).view(np.uint8)} | changes
    return IMAGE, bytes(TYPES.serialize_cdr(TYPES.types[IMAGE](**values), IMAGE))


def compressed(data: bytes, number: int = 0, text: str = 'jpeg'):
    message = TYPES.types[COMPRESSED](header=header(number), format=text,
                                      data=np.frombuffer(data, np.uint8))
    return COMPRESSED, bytes(TYPES.serialize_cdr(message, COMPRESSED))


def encoded(rgb: np.ndarray, suffix: str) -> bytes:
    return cv2.imencode(suffix, rgb[..., ::-1] if rgb.ndim == 3 else rgb)[1].tobytes()


def string(text: str):
    return STRING, bytes(TYPES.serialize_cdr(TYPES.types[STRING](data=text), STRING))


def write_bag(path: Path, messages, storage: str = 'mcap', qos=(), empty=(),
              compression=CompressionMode.NONE) -> Path:
    """Write a bag.

    :param messages: topic, (type, bytes), time in nanoseconds of each.
    :param qos: profiles of every topic.
    :param empty: topics of strings without messages.
    """
    writer = Writer(path, version=9, storage_plugin=StoragePlugin[storage.upper()])
    writer.set_compression(compression, CompressionFormat.ZSTD)
    with writer:
        connections = {(topic, STRING): writer.add_connection(topic, STRING, typestore=TYPES)
                       for topic in empty}
        for topic, (kind, data), time_ns in messages:
            if (topic, kind) not in connections:
                connections[topic, kind] = writer.add_connection(
                    topic, kind, typestore=TYPES, offered_qos_profiles=list(qos))
            writer.write(connections[topic, kind], time_ns, data)
    return path


def read_bag(path: Path):
    """Connections by topic; topic, time and bytes of each message."""
    with Reader(path) as reader:
        return ({each.topic: each for each in reader.connections},
                [(connection.topic, time_ns, bytes(data))
                 for connection, time_ns, data in reader.messages()])


def images_on(path: Path, topic: str) -> list:
    return [TYPES.deserialize_cdr(data, IMAGE) for name, _, data in read_bag(path)[1]
            if name == topic]


def pixels(message) -> np.ndarray:
    return message.data.reshape(message.height, message.width, -1).squeeze()
