"""Label files in every form of PNG, written here byte by byte, as OpenCV writes few of them."""

import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest

from seg_ros.errors import DataError
from seg_ros.training.label_files import read_ids

GREY, PALETTE = 0, 3


def chunk(kind: bytes, content: bytes) -> bytes:
    return (struct.pack('>I', len(content)) + kind + content
            + struct.pack('>I', zlib.crc32(kind + content)))


def png(path: Path, ids: np.ndarray, depth: int, color_type: int) -> Path:
    """Write ids of ``depth`` bits; those of a palette stand for random colours, some see-through.
    """
    size = struct.pack('>II', ids.shape[1], ids.shape[0])
    parts = [chunk(b'IHDR', size + bytes([depth, color_type, 0, 0, 0]))]
    if color_type == PALETTE:
        parts.append(chunk(b'PLTE', np.random.default_rng(0).bytes(3 * 2 ** depth)))
        parts.append(chunk(b'tRNS', b'\x00\x80'))
    rows = b''
    for row in ids:
        bits = ''.join(f'{value:0{depth}b}' for value in row)
        bits += '0' * (-len(bits) % 8)
        rows += b'\x00' + int(bits, 2).to_bytes(len(bits) // 8, 'big')
    # Two pieces, as large files have several.
    data = zlib.compress(rows)
    parts += [chunk(b'IDAT', data[:5]), chunk(b'IDAT', data[5:]), chunk(b'IEND', b'')]
    path.write_bytes(b'\x89PNG\r\n\x1a\n' + b''.join(parts))
    return path


@pytest.mark.parametrize('color_type', [GREY, PALETTE])
@pytest.mark.parametrize('depth', [1, 2, 4, 8])
def test_ids_of_any_depth_are_read_as_they_are_stored(tmp_path, depth, color_type):
    ids = np.random.default_rng(depth).integers(0, 2 ** depth, (9, 13), np.uint8)
    ids[0, :2] = 0, 2 ** depth - 1
    read = read_ids(png(tmp_path / 'labels.png', ids, depth, color_type))
    assert read.dtype == np.uint8 and np.array_equal(read, ids)


@pytest.mark.parametrize(('array', 'said'), [
    (np.zeros((8, 8, 3), np.uint8), 'is RGB of 8 bits'),
    (np.zeros((8, 8, 4), np.uint8), 'is RGBA of 8 bits'),
    (np.zeros((8, 8), np.uint16), 'is grey of 16 bits')])
def test_pictures_without_ids_are_described(tmp_path, array, said):
    path = tmp_path / 'labels.png'
    cv2.imwrite(str(path), array)
    with pytest.raises(DataError, match=f'{path}: {said}; expected a PNG with one class id of at '
                                        'most 8 bits per pixel, grey or palette; convert'):
        read_ids(path)


def test_jpeg_is_refused_whatever_its_name(tmp_path):
    path = tmp_path / 'labels.png'
    path.write_bytes(cv2.imencode('.jpg', np.zeros((8, 8), np.uint8))[1].tobytes())
    with pytest.raises(DataError, match=f'{path}: cannot be read as a PNG; expected'):
        read_ids(path)


def test_file_cut_at_any_byte_is_damaged(tmp_path):
    path = png(tmp_path / 'labels.png', np.uint8([[0, 1], [2, 3]]), 8, PALETTE)
    whole = path.read_bytes()
    for length in range(8, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=f'{path}: cannot be read, the file is damaged'):
            read_ids(path)


def test_a_single_changed_byte_is_told(tmp_path):
    path = png(tmp_path / 'labels.png', np.zeros((4, 6), np.uint8), 8, GREY)
    whole = path.read_bytes()
    for at in range(8, len(whole) - 12):  # up to the chunk that only says that the file ends
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        with pytest.raises(DataError, match='the file is damaged'):
            read_ids(path)
