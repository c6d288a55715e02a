"""Compressed image messages, against pictures put together byte by byte."""

import resource
import struct
import zlib

import cv2
import numpy as np
import pytest
from builtin_interfaces.msg import Time
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import Header

from seg_ros.errors import ImageError
from seg_ros.ros.compressed import decode, encode_jpeg, encode_png

FORMATS = ('', 'jpeg', 'png', 'rgb8; jpeg compressed bgr8', 'bgr8; png compressed bgr8',
           'mono16; png compressed ', 'bayer_rggb8; jpeg compressed bgr8', 'webp', 'é' * 1000)
HEADER = Header(stamp=Time(sec=3, nanosec=4), frame_id='camera_optical')


def message(data: bytes, name: str = 'jpeg') -> CompressedImage:
    return CompressedImage(header=HEADER, format=name, data=data)


def refusal(data: bytes, name: str = 'jpeg') -> str:
    with pytest.raises(ImageError) as caught:
        decode(message(data, name))
    said = str(caught.value)
    assert said.startswith('compressed image message of ') and len(said) < 600
    return said


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))


def png(samples: np.ndarray, color_type: int, *extra: bytes, size=None, bits=None) -> bytes:
    """A PNG without filters: (H, W) or (H, W, C), 8 or 16 bits."""
    height, width = size or samples.shape[:2]
    bits = bits or 8 * samples.dtype.itemsize
    rows = samples.astype(samples.dtype.newbyteorder('>')).reshape(len(samples), -1)
    return (b'\x89PNG\r\n\x1a\n'
            + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, bits, color_type, 0, 0, 0))
            + b''.join(extra)
            + chunk(b'IDAT', zlib.compress(b''.join(b'\0' + row.tobytes() for row in rows)))
            + chunk(b'IEND', b''))


def random_samples(*shape: int, dtype=np.uint8) -> np.ndarray:
    return np.random.default_rng(7).integers(0, np.iinfo(dtype).max + 1, shape).astype(dtype)


def picture() -> np.ndarray:
    """Smooth colours, (96, 160, 3): JPEG changes them by little."""
    y, x = np.mgrid[:96, :160]
    return np.stack([x + 40, 2 * y + 20, 200 - x // 2 - y // 2], -1).astype(np.uint8)


def jpeg(rgb: np.ndarray, *options: int) -> bytes:
    bgr = rgb[..., ::-1] if rgb.ndim == 3 else rgb
    return cv2.imencode('.jpg', np.ascontiguousarray(bgr), list(options))[1].tobytes()


def is_close(rgb: np.ndarray, expected: np.ndarray) -> bool:
    return rgb.shape == expected.shape and np.abs(rgb.astype(int) - expected).max() <= 6


GOOD_JPEG, GOOD_PNG = jpeg(picture()), png(picture(), 2)


# What is read

@pytest.mark.parametrize('name', FORMATS)
def test_bytes_tell_what_it_is_whatever_the_format_claims(name):
    assert is_close(decode(message(GOOD_JPEG, name)), picture())
    assert (decode(message(GOOD_PNG, name)) == picture()).all()


def test_result_is_contiguous_and_writable():
    for data in (GOOD_JPEG, GOOD_PNG):
        rgb = decode(message(data))
        assert rgb.dtype == np.uint8 and rgb.flags.c_contiguous and rgb.flags.writeable


@pytest.mark.parametrize('options', [
    (cv2.IMWRITE_JPEG_QUALITY, 100), (cv2.IMWRITE_JPEG_PROGRESSIVE, 1),
    (cv2.IMWRITE_JPEG_RST_INTERVAL, 3), (cv2.IMWRITE_JPEG_OPTIMIZE, 1)])
def test_kinds_of_jpeg(options):
    assert is_close(decode(message(jpeg(picture(), *options))), picture())


def test_grey_jpeg():
    grey = picture()[..., 0]
    assert is_close(decode(message(jpeg(grey))), np.stack([grey] * 3, -1))


@pytest.mark.parametrize('dtype', [np.uint8, np.uint16])
@pytest.mark.parametrize(('color_type', 'channels', 'order'), [
    (0, 1, (0, 0, 0)), (2, 3, (0, 1, 2)), (4, 2, (0, 0, 0)), (6, 4, (0, 1, 2))],
    ids=['grey', 'rgb', 'grey alpha', 'rgb alpha'])
def test_png_of_8_and_16_bits(dtype, color_type, channels, order):
    samples = random_samples(13, 9, channels, dtype=dtype)
    expected = (samples >> 8 * (samples.itemsize - 1))[..., list(order)]
    assert (decode(message(png(samples, color_type))) == expected).all()


def test_png_with_palette():
    palette, index = random_samples(7, 3), random_samples(11, 6) % 7
    data = png(index, 3, chunk(b'PLTE', palette.tobytes()))
    assert (decode(message(data)) == palette[index]).all()


def test_png_of_one_bit():
    bits = random_samples(9, 16) % 2
    data = png(np.packbits(bits, axis=1), 0, size=(9, 16), bits=1)
    assert (decode(message(data)) == 255 * bits[..., None]).all()


def test_colours_do_not_follow_hints_for_displays():
    samples = random_samples(8, 8, 3)
    hints = (chunk(b'gAMA', struct.pack('>I', 100_000)), chunk(b'bKGD', bytes(6)),
             chunk(b'tRNS', samples[0, 0].astype('>u2').tobytes()))
    assert (decode(message(png(samples, 2, *hints))) == samples).all()


EXIF = (b'II*\0\x08\0\0\0' + struct.pack('<H', 1)
        + struct.pack('<HHII', 0x0112, 3, 1, 6) + bytes(4))  # to be shown a quarter turn on


def test_exif_does_not_turn_the_picture():
    segment = b'Exif\0\0' + EXIF
    turned = (GOOD_JPEG[:2] + b'\xff\xe1' + struct.pack('>H', len(segment) + 2) + segment
              + GOOD_JPEG[2:])
    bgr = cv2.imdecode(np.frombuffer(turned, np.uint8), cv2.IMREAD_COLOR)
    assert bgr.shape == (160, 96, 3)  # by itself OpenCV turns it
    assert is_close(decode(message(turned)), picture())
    assert (decode(message(png(picture(), 2, chunk(b'eXIf', EXIF)))) == picture()).all()


def test_bytes_after_the_end_are_left_alone():
    for data in (GOOD_JPEG, GOOD_PNG):  # cameras pad their frames
        for tail in (bytes(100), b'\xff\xd8\xff', GOOD_JPEG[:500]):
            assert is_close(decode(message(data + tail)), picture())


# What is refused

@pytest.mark.parametrize(('data', 'said'), [
    (b'', 'there are no bytes'), (b'GIF89a' + bytes(50), 'it looks like GIF'),
    (b'RIFF\x24\0\0\0WEBPVP8 ' + bytes(50), 'it looks like WebP'),
    (b'II*\0' + bytes(50), 'it looks like TIFF'), (b'BM' + bytes(50), 'it looks like BMP'),
    (bytes(40), 'it begins with 00 00 00 00 00 00 00 00'), (b'\xff', 'it begins with ff'),
    (b'\xff\xd8', 'it begins with ff d8'), (b'\x89PNG', 'it begins with 89 50 4e 47')])
def test_what_is_neither_jpeg_nor_png_is_refused(data, said):
    for name in FORMATS[:4]:
        answer = refusal(data, name)
        assert said in answer and 'expected a whole JPEG or PNG' in answer


def test_compressed_depth_is_refused():
    depth = bytes(12) + png(random_samples(5, 5, dtype=np.uint16), 0)
    assert 'it is a compressed depth image' in refusal(depth, '16UC1; compressedDepth png')


def test_jpeg_cut_anywhere_is_refused():
    # OpenCV before 5 fills what is missing with grey, from the entropy-coded part on.
    thumbnail = b'JFXX\0\x10' + jpeg(picture()[:16, :16])  # has an end of its own
    with_thumbnail = (GOOD_JPEG[:2] + b'\xff\xe0' + struct.pack('>H', len(thumbnail) + 2)
                      + thumbnail + GOOD_JPEG[2:])
    for data in (GOOD_JPEG, with_thumbnail, jpeg(picture(), cv2.IMWRITE_JPEG_PROGRESSIVE, 1)):
        decode(message(data))
        for length in (*range(3, len(data), 37), len(data) - 2, len(data) - 1):
            assert 'JPEG' in refusal(data[:length])


def test_png_cut_anywhere_is_refused():
    for length in (*range(8, len(GOOD_PNG), 41), len(GOOD_PNG) - 12, len(GOOD_PNG) - 1):
        assert 'the PNG is cut off' in refusal(GOOD_PNG[:length])


def test_png_with_a_changed_bit_is_refused():
    for position in range(8, len(GOOD_PNG), 29):
        changed = bytearray(GOOD_PNG)
        changed[position] ^= 1 << position % 8
        assert 'PNG' in refusal(bytes(changed))


def test_png_whose_pixels_are_missing_is_refused():
    half = png(random_samples(10, 20), 0, size=(20, 20))  # whole by its chunks and checksums
    assert 'that OpenCV cannot decode' in refusal(half)


def test_jpeg_for_print_is_refused():
    start = GOOD_JPEG.index(b'\xff\xc0')
    four = bytearray(GOOD_JPEG)
    four[start + 9] = 4
    assert 'the JPEG has 4 colour channels, such as CMYK' in refusal(bytes(four))


def test_animation_is_refused():
    moving = png(picture(), 2, chunk(b'acTL', struct.pack('>II', 2, 0)))
    assert 'the PNG is an animation' in refusal(moving)


def with_size(width: int, height: int) -> dict[str, bytes]:
    """Pictures that claim a size of which they hold a few pixels."""
    start = GOOD_JPEG.index(b'\xff\xc0')
    return {'jpeg': GOOD_JPEG[:start + 5] + struct.pack('>HH', height % 2**16, width % 2**16)
            + GOOD_JPEG[start + 9:],
            'png': png(picture(), 2, size=(height, width))}


@pytest.mark.parametrize('kind', ['jpeg', 'png'])
@pytest.mark.parametrize(('width', 'height'), [
    (65_535, 65_535), (8001, 8000), (8000, 8000), (2**31 - 1, 2**31 - 1), (1, 2**31 - 1)])
def test_claimed_size_is_refused_without_its_memory(kind, width, height):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert 'pixels' in refusal(with_size(width, height)[kind])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kB


@pytest.mark.parametrize('size', [(0, 0), (0, 5), (5, 0)])
def test_picture_without_pixels_is_refused(size):
    for data in with_size(*size).values():
        assert 'pixels; expected 1 to 64000000' in refusal(data)


def test_second_header_is_refused():
    start = GOOD_JPEG.index(b'\xff\xc0')
    frame = GOOD_JPEG[start:start + 2 + int.from_bytes(GOOD_JPEG[start + 2:start + 4], 'big')]
    assert 'two headers' in refusal(GOOD_JPEG[:start] + frame + GOOD_JPEG[start:])


def test_pictures_made_of_too_many_parts_are_refused():
    comments = b'\xff\xfe\0\2' * 3000
    assert 'more than 2000 segments' in refusal(GOOD_JPEG[:2] + comments + GOOD_JPEG[2:])
    progressive = jpeg(picture(), cv2.IMWRITE_JPEG_PROGRESSIVE, 1)
    last = progressive.rindex(b'\xff\xda')
    scans = progressive[last:-2] * 40
    assert 'more than 32 scans' in refusal(progressive[:-2] + scans + b'\xff\xd9')


# What is made

def test_labels_come_back_exactly():
    wide = random_samples(40, 70)
    for labels in (wide, wide[3:23, 5:62], np.full((5, 7), 255, np.uint8), wide[:1, :1]):
        made = encode_png(labels, HEADER)
        read = cv2.imdecode(np.frombuffer(made.data, np.uint8), cv2.IMREAD_UNCHANGED)
        assert read.dtype == np.uint8 and np.array_equal(read, labels)
        assert (decode(made) == labels[..., None]).all()
        assert made.header == HEADER


def test_overlay_comes_back_nearly_and_the_better_the_higher_the_quality():
    errors = []
    for quality in (20, 60, 95):
        made = encode_jpeg(picture(), HEADER, quality)
        assert made.header == HEADER
        read = cv2.imdecode(np.frombuffer(made.data, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
        errors.append(np.abs(read.astype(int) - picture()).mean())
    assert errors[2] < errors[1] < errors[0] < 10 and errors[2] < 2


@pytest.mark.parametrize(('height', 'width'), [(4, 70_000), (70_000, 4)])
def test_what_no_jpeg_can_hold_is_told(height, width):
    with pytest.raises(ImageError, match=f'{width}x{height} pixels cannot be written as .jpg; set '
                       'output_size'):
        encode_jpeg(np.zeros((height, width, 3), np.uint8), HEADER, 90)


def test_formats_are_those_of_image_transport():
    assert encode_png(np.zeros((4, 4), np.uint8), HEADER).format == 'mono8; png compressed '
    assert encode_jpeg(picture(), HEADER, 90).format == 'rgb8; jpeg compressed bgr8'
