"""Class ids as a PNG file stores them."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from seg_ros.errors import DataError
from seg_ros.jpeg_png import PNG_START
from seg_ros.training.data_files import read_file

GREY, PALETTE = 0, 3
COLOR_TYPES = {GREY: 'grey', 2: 'RGB', PALETTE: 'palette', 4: 'grey and alpha', 6: 'RGBA'}
EXPECTED = 'expected a PNG with one class id of at most 8 bits per pixel'


def read_ids(path: Path) -> np.ndarray:
    """Read the id of each pixel: a grey PNG's values or a palette PNG's indices, of 1 to 8 bits.

    :return: (H, W) uint8.
    :raises DataError: the file cannot be read, or holds something else.
    """
    data = read_file(path)
    if not data.startswith(PNG_START):
        raise DataError(f'{path.resolve()}: cannot be read as a PNG; {EXPECTED}; restore or '
                        'convert the file')
    chunks = list(_chunks(data))
    if not chunks or chunks[0][0] != b'IHDR' or chunks[-1][0] != b'IEND' or len(
            chunks[0][1]) != 13:
        raise _damaged(path)
    depth, color_type = chunks[0][1][8:10]
    if color_type not in (GREY, PALETTE) or depth > 8:
        raise DataError(f'{path.resolve()}: is {COLOR_TYPES.get(color_type, color_type)} of '
                        f'{depth} bits; {EXPECTED}, grey or palette; convert the file')
    stored = _decode_as_grey(chunks)
    if stored is None or stored.dtype != np.uint8 or stored.ndim != 2:
        raise _damaged(path)
    # OpenCV stretches fewer bits to 0..255: the ids 0 and 1 of a 1-bit PNG become 0 and 255.
    return stored if depth == 8 else stored // (255 // (2 ** depth - 1))


def _damaged(path: Path) -> DataError:
    return DataError(f'{path.resolve()}: cannot be read, the file is damaged; restore it')


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and content of each chunk, to the end of the picture or the first damaged one."""
    at = len(PNG_START)
    while at + 12 <= len(data):
        length, kind = struct.unpack_from('>I4s', data, at)
        end = at + 8 + length
        if data[end:end + 4] != struct.pack('>I', zlib.crc32(data[at + 4:end])):
            return
        yield kind, data[at + 8:end]
        if kind == b'IEND':
            return
        at += 12 + length


def _decode_as_grey(chunks: list[tuple[bytes, bytes]]) -> np.ndarray | None:
    """Decode stored values; OpenCV alone would give a palette's colours in place of its indices.

    :return: None if the data is damaged.
    """
    header = bytearray(chunks[0][1])
    header[9] = GREY
    # What else the file holds, palette and transparency above all, no longer applies.
    kept = [(b'IHDR', bytes(header)), *((kind, content) for kind, content in chunks
                                        if kind == b'IDAT'), (b'IEND', b'')]
    data = PNG_START + b''.join(
        struct.pack('>I', len(content)) + kind + content
        + struct.pack('>I', zlib.crc32(kind + content)) for kind, content in kept)
    try:
        return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error:  # a size that OpenCV refuses: damaged, too
        return None
