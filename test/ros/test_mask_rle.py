"""Masks for Autoware, read back by a decoder that knows nothing of how they are written."""

import struct
import sys

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from sensor_msgs.msg import Image
from std_msgs.msg import Header

from seg_ros.ros.mask_rle import encode_mask


def runs_of(message: Image) -> list[tuple[int, int]]:
    data = bytes(message.data)
    assert len(data) % 5 == 0
    return [struct.unpack('=Bi', data[at:at + 5]) for at in range(0, len(data), 5)]


def decoded(message: Image) -> np.ndarray:
    """Pixel after pixel, as Autoware's reader goes."""
    rows = [[None] * message.width for _ in range(message.height)]
    pixel = 0
    for id_, length in runs_of(message):
        assert length > 0
        for _ in range(length):
            rows[pixel // message.width][pixel % message.width] = id_
            pixel += 1
    assert pixel == message.width * message.height  # the reader writes past its mask otherwise
    return np.array(rows)


@pytest.mark.parametrize('seed', range(5))
def test_random_masks_come_back(seed):
    random = np.random.default_rng(seed)
    height, width = random.integers(1, 60, 2)
    noise = random.integers(0, 256, (height, width)).astype(np.uint8)
    patches = random.integers(0, 3, (height, width)).astype(np.uint8) // 2 * 255
    for labels in (noise, patches, np.repeat(np.repeat(noise, 4, 0), 7, 1)):
        assert np.array_equal(decoded(encode_mask(labels, Header())), labels)


@pytest.mark.parametrize('id_', [0, 9, 255])
def test_one_colour_is_one_run(id_):
    message = encode_mask(np.full((7, 11), id_, np.uint8), Header())
    assert bytes(message.data) == struct.pack('=Bi', id_, 77)


def test_single_pixels_are_runs_of_their_own():
    labels = np.zeros((3, 4), np.uint8)
    labels[0, 0], labels[1, 2], labels[2, 3] = 5, 6, 7
    assert runs_of(encode_mask(labels, Header())) == [(5, 1), (0, 5), (6, 1), (0, 4), (7, 1)]


def test_mask_of_one_pixel():
    assert runs_of(encode_mask(np.array([[200]], np.uint8), Header())) == [(200, 1)]


def test_runs_longer_than_16_bits_come_back():
    labels = np.zeros((300, 400), np.uint8)
    labels[200, 17:] = 3
    message = encode_mask(labels, Header())
    assert runs_of(message) == [(0, 80_017), (3, 383), (0, 39_600)]
    assert np.array_equal(decoded(message), labels)


def test_run_goes_on_in_the_next_row_but_not_into_another_id():
    labels = np.array([[1, 2, 2], [2, 2, 1], [1, 1, 1]], np.uint8)
    assert runs_of(encode_mask(labels, Header())) == [(1, 1), (2, 4), (1, 4)]


def test_rows_apart_in_memory_are_read_as_the_picture_is():
    wide = np.random.default_rng(0).integers(0, 3, (20, 30)).astype(np.uint8)
    for labels in (wide[4:9, 3:17], wide[::2, ::3], wide.T):
        assert np.array_equal(decoded(encode_mask(labels, Header())), labels)


def test_message_describes_the_picture_and_keeps_the_header():
    header = Header(stamp=Time(sec=12, nanosec=34), frame_id='camera_optical')
    message = encode_mask(np.zeros((6, 8), np.uint8), header)
    assert (message.height, message.width, message.step, message.encoding) == (6, 8, 8, 'mono8')
    assert message.is_bigendian == (sys.byteorder == 'big')
    assert message.header == header
