"""Random messages through the conversions: converted or refused, soon, and without leaking.

20,000 in all, the same in every run.
"""

import os
import resource
import struct
import time
import zlib
from array import array as typed_array
from collections import Counter
from collections.abc import Callable, Iterator

import cv2
import numpy as np
import pytest
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import Header

from seg_ros.errors import ImageError
from seg_ros.ros.camera_info import scale_camera_info
from seg_ros.ros.compressed import decode
from seg_ros.ros.encodings import ENCODINGS, SUPPORTED_ENCODINGS
from seg_ros.ros.messages import to_rgb

LONGEST_S = 1.0  # of one message, in processor time: other processes do not count
FLAT_MB, PEAK_MB = 30, 150

OTHER_ENCODINGS = ('', 'RGB8', 'rgb8 ', 'rgb', '32FC1', '64FC4', '8SC3', 'bayer_rggb', 'yuv420',
                   'jpeg', 'rgb8; jpeg compressed bgr8', 'é', '\x01', 'x' * 5000, '8UC1000')
SIDES = (1, 2, 3, 4, 4, 6, 7, 8, 8, 16, 16, 33, 48, 48)
UNLIKELY = (0, 8000, 8001, 65_535, 65_536, 2**31 - 1, 2**31, 2**32 - 1)
FLOATS = (0.0, -0.0, 1.0, -1e-300, 5e-324, 1e308, -1e308, np.nan, np.inf, -np.inf, 640.5)
Random = np.random.Generator


def filled(content: bytes) -> typed_array:
    data = typed_array('B')
    data.frombytes(content)
    return data


def side(random: Random) -> int:
    return int(random.choice(UNLIKELY if random.random() < 0.06 else SIDES))


def random_image(random: Random) -> Image:
    """Often right in all but one thing."""
    names = OTHER_ENCODINGS if random.random() < 0.15 else SUPPORTED_ENCODINGS
    name = names[random.integers(len(names))]
    image = Image(encoding=name, width=side(random), height=side(random),
                  is_bigendian=int(random.choice((0, 0, 1, 255))))
    encoding = ENCODINGS.get(name, ENCODINGS['rgb8'])
    row_bytes, rows = encoding.row_bytes(image.width), encoding.rows(image.height)
    padding = int(random.choice((*[0] * 15, *[1, 3, 64] * 4, -1, -row_bytes, *UNLIKELY)))
    image.step = min(max(0, row_bytes + padding), 2**32 - 1)
    surplus = int(random.choice((*[0] * 20, 1, -1, 1000, -1000, -10**9)))
    image.data = filled(random.bytes(min(max(0, rows * image.step + surplus), 50_000)))
    return image


def png_parts(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 8
    while at + 12 <= len(data):
        length, = struct.unpack('>I', data[at:at + 4])
        yield data[at + 4:at + 8], data[at + 8:at + 8 + length]
        at += 12 + length


def with_right_checksums(data: bytes) -> bytes:
    """A changed PNG that gets past its checksums."""
    made = b'\x89PNG\r\n\x1a\n'
    for kind, content in png_parts(data):
        made += struct.pack('>I', len(content)) + kind + content
        made += struct.pack('>I', zlib.crc32(kind + content))
    return made


def real_pictures(random: Random) -> list[bytes]:
    """Grey and colour, 8 and 16 bits, with alpha, sequential and progressive."""
    noise = random.integers(0, 256, (24, 40, 3)).astype(np.uint8)
    smooth = cv2.GaussianBlur(noise, (0, 0), 5)
    pictures = []
    for rgb in (noise, smooth):
        for options in ((), (cv2.IMWRITE_JPEG_PROGRESSIVE, 1), (cv2.IMWRITE_JPEG_RST_INTERVAL, 2)):
            pictures.append(cv2.imencode('.jpg', rgb, list(options))[1].tobytes())
        alpha = np.dstack([rgb, rgb[..., :1]])
        for samples in (rgb, rgb[..., 0], alpha, rgb.astype(np.uint16) * 257,
                        alpha.astype(np.uint16) * 255):
            pictures.append(cv2.imencode('.png', samples)[1].tobytes())
    return pictures


def mutated(random: Random, picture: bytes, other: bytes) -> bytes:
    data = bytearray(picture)
    at, to = sorted(int(position) for position in random.integers(0, len(data) + 1, 2))
    near_header = random.random() < 0.5
    match random.integers(8):
        case 0:  # bits
            for _ in range(random.integers(1, 9)):
                position = int(random.integers(min(len(data), 60 if near_header else 10**9)))
                data[position] ^= 1 << int(random.integers(8))
        case 1:  # bytes
            for _ in range(random.integers(1, 30)):
                data[int(random.integers(len(data)))] = int(random.integers(256))
        case 2:
            del data[at:]
        case 3:
            del data[at:to]
        case 4:
            data[at:at] = random.bytes(int(random.integers(1, 200)))
        case 5:
            data[at:] = other[at:]
        case 6:  # a size, wherever it stands in this kind
            claimed = struct.pack('>II', *(int(random.choice(UNLIKELY)) for _ in range(2)))
            if data.startswith(b'\x89PNG'):
                data[16:24] = claimed
            else:
                start = max(data.find(b'\xff\xc0'), data.find(b'\xff\xc2'))
                data[start + 5:start + 9] = claimed[2:4] + claimed[6:8]
        case 7:
            data[at:to] = bytes(to - at)
    if data.startswith(b'\x89PNG') and random.random() < 0.6:
        return with_right_checksums(bytes(data))
    return bytes(data)


def random_compressed(random: Random, pictures: list[bytes]) -> CompressedImage:
    picture, other = (pictures[i] for i in random.integers(0, len(pictures), 2))
    match random.integers(10):
        case 0:
            data = random.bytes(int(random.integers(0, 400)))
        case 1:
            starts = (b'\xff\xd8\xff', b'\x89PNG\r\n\x1a\n', b'GIF89a', b'RIFF\0\0\0\0WEBP', b'BM')
            data = starts[random.integers(5)] + random.bytes(int(random.integers(0, 400)))
        case 2:
            data = random.bytes(12) + picture  # as compressed depth
        case 3:
            data = picture
        case _:
            data = mutated(random, picture, other)
    names = ('', 'jpeg', 'png', 'rgb8; jpeg compressed bgr8', 'mono16; png compressed ',
             '16UC1; compressedDepth png', 'é' * 2000)
    return CompressedImage(format=names[random.integers(len(names))], data=filled(data))


def random_info(random: Random) -> CameraInfo:
    def number() -> float:
        return float(random.choice(FLOATS)) if random.random() < 0.3 else random.normal(0, 500)

    def whole() -> int:
        return side(random) if random.random() < 0.5 else int(random.integers(0, 2000))

    def binning() -> int:
        return int(random.choice(UNLIKELY if random.random() < 0.1 else (0, 1, 2, 3)))

    info = CameraInfo(width=whole(), height=whole(), binning_x=binning(), binning_y=binning())
    info.d = typed_array('d', [number() for _ in range(random.integers(0, 9))])
    info.k, info.r, info.p = (np.array([number() for _ in range(n)]) for n in (9, 9, 12))
    if random.random() < 0.6:
        info.roi.x_offset, info.roi.y_offset = whole(), whole()
        info.roi.width, info.roi.height = whole(), whole()
    return info


def resident_mb() -> float:
    with open('/proc/self/statm', encoding='ascii') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 1e6


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def outcomes(count: int, run_one: Callable[[], str]) -> Counter:
    """Run one after the other; how often what came of it."""
    found: Counter = Counter()
    resident = peak = 0.0
    for number in range(count):
        if number == count // 4:  # buffers that are kept have been made by then
            resident, peak = resident_mb(), peak_mb()
        start = time.process_time()
        found[run_one()] += 1
        took_s = time.process_time() - start
        assert took_s < LONGEST_S, f'message {number} took {took_s:.1f} s'
    assert resident_mb() - resident < FLAT_MB
    assert peak_mb() - peak < PEAK_MB
    return found


def converted(convert: Callable[[], np.ndarray]) -> str:
    """Convert, or be refused by the one error that the node expects."""
    try:
        rgb = convert()
    except ImageError as error:
        assert 20 < len(str(error)) < 2000
        return 'refused'
    assert rgb.dtype == np.uint8 and rgb.ndim == 3 and rgb.shape[2] == 3 and rgb.size
    assert rgb.flags.c_contiguous
    return 'converted'


def test_images_are_converted_or_refused():
    random = np.random.default_rng(1)

    def run_one() -> str:
        image = random_image(random)
        override = ('rgb8', 'nv12', 'bayer_grbg16')[random.integers(3)]
        return converted(lambda: to_rgb(image, override if random.random() < 0.1 else ''))

    found = outcomes(11_000, run_one)
    assert min(found['converted'], found['refused']) > 3000, found


def test_compressed_images_are_converted_or_refused():
    random = np.random.default_rng(2)
    pictures = real_pictures(random)

    def run_one() -> str:
        message = random_compressed(random, pictures)
        return converted(lambda: decode(message))

    found = outcomes(7000, run_one)
    assert min(found['converted'], found['refused']) > 1000, found


@pytest.mark.filterwarnings('error')  # NumPy would warn of what is no number, for every frame
def test_calibrations_are_scaled_or_passed_on():
    random = np.random.default_rng(3)

    def run_one() -> str:
        info = random_info(random)
        width, height = (int(random.integers(1, 8193)) for _ in range(2))
        scaled = scale_camera_info(info, Header(frame_id='out'), width, height)
        assert scaled.header.frame_id == 'out'
        assert (len(scaled.k), len(scaled.p)) == (9, 12)
        return 'scaled' if (scaled.width, scaled.height) == (width, height) else 'passed on'

    found = outcomes(2000, run_one)
    assert min(found['scaled'], found['passed on']) > 300, found
