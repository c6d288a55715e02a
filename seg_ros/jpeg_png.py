"""Pictures in bytes; of JPEG and PNG the size, and whether they are whole, without decoding them.

OpenCV fills what is missing of a cut JPEG with grey, and allocates whatever size a header claims:
both are found out here, before anything is decoded.
"""

import re
import zlib
from dataclasses import dataclass

import cv2
import numpy as np

from seg_ros.errors import ImageError

JPEG_START = b'\xff\xd8\xff'
PNG_START = b'\x89PNG\r\n\x1a\n'
OTHER_STARTS = {b'GIF8': 'GIF', b'RIFF': 'WebP', b'II*\0': 'TIFF', b'MM\0*': 'TIFF', b'BM': 'BMP',
                b'\0\0\0\x0cjP': 'JPEG 2000', b'\xff\x4f\xff\x51': 'JPEG 2000'}
DEPTH_HEADER_BYTES = 12  # compressed_depth_image_transport puts its quantization before a PNG

# What no picture comes near, so that small messages cannot ask for much work.
MAX_SEGMENTS = 2000    # of a JPEG: 64 KB each but for the pixels
MAX_SCANS = 32         # of a progressive JPEG: encoders make ten, each goes through all pixels
MAX_CHUNKS = 200_000   # of a PNG: writers make them of 8 KB or more
JPEG_PIXELS_PER_BYTE = 1024  # a bit for each block of 8x8 would be 512
PNG_BYTES_PER_BYTE = 1032    # the most that deflate can expand

_MARKER = re.compile(b'\xff[^\x00\xff\xd0-\xd7]')  # among pixels FF is followed by 00 or D0..D7
_START, _END, _SCAN, _ALONE = 0xD8, 0xD9, 0xDA, 0x01
_FRAMES = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PNG_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # of a pixel, by colour type


@dataclass(frozen=True)
class PictureSize:
    """What a picture claims to be."""

    kind: str
    width: int
    height: int


def read_size(data: memoryview) -> PictureSize:
    """Read the size of a picture and check that its bytes are all there.

    :raises ImageError: neither JPEG nor PNG, cut off, damaged, or of a kind that is not read.
    """
    start = bytes(data[:DEPTH_HEADER_BYTES + len(PNG_START)])
    if start.startswith(JPEG_START):
        return _read_jpeg(data)
    if start.startswith(PNG_START):
        return _read_png(data)
    if not start:
        raise ImageError('there are no bytes')
    if start[DEPTH_HEADER_BYTES:] == PNG_START:
        raise ImageError('it is a compressed depth image')
    for other, name in OTHER_STARTS.items():
        if start.startswith(other):
            raise ImageError(f'it looks like {name}')
    raise ImageError(f'it begins with {start[:8].hex(" ")}')


def decode_picture(data: bytes) -> np.ndarray:
    """Decode the bytes of a picture file of any kind; grey becomes colour, 16 bits 8, and
    transparency is left out.

    :return: (H, W, 3) uint8 RGB.
    :raises ImageError: they are no picture, or a JPEG or PNG that is not whole.
    """
    if data.startswith((JPEG_START, PNG_START)):
        read_size(memoryview(data))
    try:
        bgr = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error:  # no bytes, or more pixels than OpenCV takes
        bgr = None
    if bgr is None:
        raise ImageError('OpenCV does not know or take it')
    return cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)


def _read_jpeg(data: memoryview) -> PictureSize:
    size, scans, at = None, 0, 2
    for _ in range(MAX_SEGMENTS):
        match = _MARKER.search(data, at)
        if match is None:
            raise ImageError('the JPEG is cut off: it has no end')
        marker, at = data[match.end() - 1], match.end()
        if marker == _END:
            if size is None or not scans:
                raise ImageError('the JPEG has no pixels')
            if size.width * size.height > JPEG_PIXELS_PER_BYTE * len(data):
                raise ImageError(f'the JPEG claims {size.width}x{size.height} pixels, far more '
                                 f'than {len(data)} bytes hold')
            return size
        if marker in (_START, _ALONE):
            continue
        length = int.from_bytes(data[at:at + 2], 'big')
        if length < 2 or at + length > len(data):
            raise ImageError('the JPEG is cut off or damaged')
        if marker in _FRAMES:
            if size is not None:
                raise ImageError('the JPEG has two headers')
            size = _read_jpeg_frame(data[at:at + length])
        elif marker == _SCAN:
            scans += 1
            if scans > MAX_SCANS:
                raise ImageError(f'the JPEG has more than {MAX_SCANS} scans')
        at += length
    raise ImageError(f'the JPEG has more than {MAX_SEGMENTS} segments')


def _read_jpeg_frame(frame: memoryview) -> PictureSize:
    if len(frame) < 8:
        raise ImageError('the JPEG is damaged')
    if frame[7] not in (1, 3):
        raise ImageError(f'the JPEG has {frame[7]} colour channels, such as CMYK')
    return PictureSize('JPEG', int.from_bytes(frame[5:7], 'big'),
                       int.from_bytes(frame[3:5], 'big'))


def _read_png(data: memoryview) -> PictureSize:
    size, raw_bytes, at = None, 0, len(PNG_START)
    for _ in range(MAX_CHUNKS):
        length, kind = int.from_bytes(data[at:at + 4], 'big'), bytes(data[at + 4:at + 8])
        end = at + 8 + length
        if end + 4 > len(data):
            raise ImageError('the PNG is cut off: it has no end')
        if zlib.crc32(data[at + 4:end]) != int.from_bytes(data[end:end + 4], 'big'):
            raise ImageError('the PNG is damaged: a checksum does not match')
        if size is None:
            if kind != b'IHDR' or length != 13:
                raise ImageError('the PNG is damaged: it has no header')
            size, raw_bytes = _read_png_header(data[at + 8:end])
        elif kind == b'acTL':
            raise ImageError('the PNG is an animation')
        if kind == b'IEND':
            if raw_bytes > PNG_BYTES_PER_BYTE * len(data):
                raise ImageError(f'the PNG claims {size.width}x{size.height} pixels, more than '
                                 f'{len(data)} bytes can hold')
            return size
        at = end + 4
    raise ImageError(f'the PNG has more than {MAX_CHUNKS} chunks')


def _read_png_header(header: memoryview) -> tuple[PictureSize, int]:
    """Size, and least number of bytes before compression."""
    width, height = int.from_bytes(header[:4], 'big'), int.from_bytes(header[4:8], 'big')
    bits = header[8] * _PNG_SAMPLES.get(header[9], 1)
    return PictureSize('PNG', width, height), height * (width * bits // 8)
