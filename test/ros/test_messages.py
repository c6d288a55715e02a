"""Image messages to RGB and back, against values made from samples by arithmetic."""

import os
import subprocess
import sys
from array import array as typed_array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from sensor_msgs.msg import Image
from std_msgs.msg import Header

from seg_ros.errors import ImageError
from seg_ros.ros.messages import MAX_PIXELS, SUPPORTED_ENCODINGS, to_image, to_rgb

# Where red, green and blue lie in a pixel, and how many samples it has.
PACKED = {'rgb8': ((0, 1, 2), 3), 'bgr8': ((2, 1, 0), 3), 'rgba8': ((0, 1, 2), 4),
          'bgra8': ((2, 1, 0), 4), 'mono8': ((0, 0, 0), 1), '8UC1': ((0, 0, 0), 1),
          '8UC3': ((2, 1, 0), 3), '8UC4': ((2, 1, 0), 4),
          'rgb16': ((0, 1, 2), 3), 'bgr16': ((2, 1, 0), 3), 'rgba16': ((0, 1, 2), 4),
          'bgra16': ((2, 1, 0), 4), 'mono16': ((0, 0, 0), 1), '16UC1': ((0, 0, 0), 1)}
# Where Y, U, Y, V of a pair of pixels lie.
YUV422 = {'yuv422': (1, 0, 3, 2), 'uyvy': (1, 0, 3, 2),
          'yuv422_yuy2': (0, 1, 2, 3), 'yuyv': (0, 1, 2, 3)}
SEMI_PLANAR = ('nv12', 'nv21', 'nv24')
BAYER = tuple(f'bayer_{tile}{bits}' for tile in ('rggb', 'bggr', 'gbrg', 'grbg')
              for bits in (8, 16))
WIDE = {name for name in (*PACKED, *BAYER) if name.endswith('16') or name == '16UC1'}

# Wide ones reach the vectorised loops of OpenCV and their remainders.
EVEN_SIZES = ((8, 6), (2, 2), (130, 4))
ODD_WIDTHS = ((7, 5), (3, 3), (133, 4))


@dataclass
class Picture:
    """A picture as rows of bytes without padding, and the RGB that it is.

    ``planes``: (rows, row bytes) uint8 each, with the number of steps from row to row.
    """

    planes: list[tuple[np.ndarray, int]]
    rgb: np.ndarray
    tolerance: int = 0


def rows_of_bytes(samples: np.ndarray) -> np.ndarray:
    return np.frombuffer(samples.tobytes(), np.uint8).reshape(len(samples), -1)


def bt601(y: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """ITU-R BT.601, limited range, from its luma weights 0.299, 0.587, 0.114."""
    luma = (y.astype(float) - 16) / 219
    cb, cr = (u.astype(float) - 128) / 224, (v.astype(float) - 128) / 224
    red, blue = luma + 2 * (1 - 0.299) * cr, luma + 2 * (1 - 0.114) * cb
    green = (luma - 0.299 * red - 0.114 * blue) / 0.587
    return np.rint(np.clip(np.stack([red, green, blue], -1), 0, 1) * 255).astype(np.uint8)


def demosaic(mosaic: np.ndarray, tile: str) -> np.ndarray:
    """Bilinear: mean of the nearest samples of each colour; the border repeats what is inside."""
    height, width = mosaic.shape
    rgb = np.zeros((height, width, 3), np.uint8)
    for y in range(1, height - 1):
        for x in range(1, width - 1):
            for channel, letter in enumerate('rgb'):
                around = [(abs(dy) + abs(dx), int(mosaic[y + dy, x + dx]))
                          for dy in (-1, 0, 1) for dx in (-1, 0, 1)
                          if tile[(y + dy) % 2 * 2 + (x + dx) % 2] == letter]
                nearest = [value for distance, value in around if distance == min(around)[0]]
                rgb[y, x, channel] = (2 * sum(nearest) + len(nearest)) // (2 * len(nearest))
    return np.pad(rgb[1:-1, 1:-1], ((1, 1), (1, 1), (0, 0)), 'edge')


def packed_picture(name: str, width: int, height: int, big_endian: bool) -> Picture:
    order, channels = PACKED[name]
    rng = np.random.default_rng(1)
    if name not in WIDE:
        samples = rng.integers(0, 256, (height, width, channels), np.uint8)
        return Picture([(rows_of_bytes(samples), 1)], samples[..., order])
    values = rng.integers(0, 65536, (height, width, channels))
    data = rows_of_bytes(values.astype('>u2' if big_endian else '<u2'))
    return Picture([(data, 1)], (values // 256)[..., order].astype(np.uint8))


def bayer_picture(name: str, width: int, height: int, big_endian: bool) -> Picture:
    tile = name[6:10]
    values = np.random.default_rng(2).integers(0, 65536, (height, width))
    mosaic = (values // 256).astype(np.uint8)
    samples = values.astype('>u2' if big_endian else '<u2') if name in WIDE else mosaic
    return Picture([(rows_of_bytes(samples), 1)], demosaic(mosaic, tile), tolerance=1)


def legal_yuv(height: int, width: int, chroma: tuple[int, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.integers(16, 236, (height, width), np.uint8),
            rng.integers(16, 241, chroma, np.uint8), rng.integers(16, 241, chroma, np.uint8)]


def yuv422_picture(name: str, width: int, height: int) -> Picture:
    y, u, v = legal_yuv(height, width, (height, width // 2))
    pairs = np.empty((height, width // 2, 4), np.uint8)
    for place, plane in zip(YUV422[name], (y[:, ::2], u, y[:, 1::2], v), strict=True):
        pairs[..., place] = plane
    rgb = bt601(y, np.repeat(u, 2, axis=1), np.repeat(v, 2, axis=1))
    return Picture([(rows_of_bytes(pairs), 1)], rgb, tolerance=1)


def semi_planar_picture(name: str, width: int, height: int) -> Picture:
    halved = 1 if name == 'nv24' else 2
    y, u, v = legal_yuv(height, width, (height // halved, width // halved))
    chroma = np.stack([v, u] if name == 'nv21' else [u, v], axis=-1)
    full = [plane.repeat(halved, axis=0).repeat(halved, axis=1) for plane in (u, v)]
    return Picture([(y, 1), (rows_of_bytes(chroma), 2 if name == 'nv24' else 1)],
                   bt601(y, *full), tolerance=1)


def picture(name: str, width: int, height: int, big_endian: bool = False) -> Picture:
    if name in PACKED:
        return packed_picture(name, width, height, big_endian)
    if name in BAYER:
        return bayer_picture(name, width, height, big_endian)
    if name in YUV422:
        return yuv422_picture(name, width, height)
    return semi_planar_picture(name, width, height)


def image_message(name: str, size: tuple[int, int], planes: list[tuple[np.ndarray, int]],
                  padding: int = 0, fill: int = 0, big_endian: bool = False) -> Image:
    step = planes[0][0].shape[1] + padding
    data = typed_array('B')
    for rows, steps in planes:
        padded = np.full((len(rows), step * steps), fill, np.uint8)
        padded[:, :rows.shape[1]] = rows
        data.frombytes(padded.tobytes())
    message = Image(header=Header(stamp=Time(sec=12, nanosec=34), frame_id='camera'),
                    width=size[0], height=size[1], encoding=name, is_bigendian=int(big_endian),
                    step=step)
    message.data = data
    return message


def tight(name: str, width: int, height: int) -> Image:
    return image_message(name, (width, height), picture(name, width, height).planes)


def pixel_bytes(name: str) -> int:
    samples = PACKED[name][1] if name in PACKED else 4 if name in YUV422 else 1
    return samples * (2 if name in WIDE else 1)


def every_case() -> Iterator:
    for name in SUPPORTED_ENCODINGS:
        odd_width_allowed = name not in YUV422 and name not in ('nv12', 'nv21')
        sizes = EVEN_SIZES + (ODD_WIDTHS if odd_width_allowed else ())
        if name in YUV422:
            sizes += ((8, 5), (2, 1))
        if name in PACKED or name == 'nv24':
            sizes += ((1, 1), (1, 4), (5, 1))
        for size in sizes:
            if name in BAYER and min(size) < 3:
                continue
            for padding in (0, 3 * pixel_bytes(name), 3 * pixel_bytes(name) + 1, 5):
                for big_endian in (False, True) if name in WIDE else (False,):
                    order = ('-big' if big_endian else '-little') if name in WIDE else ''
                    yield pytest.param(name, size, padding, big_endian,
                                       id=f'{name}-{size[0]}x{size[1]}-pad{padding}{order}')


def difference(one: np.ndarray, other: np.ndarray) -> int:
    return int(np.abs(one.astype(int) - other.astype(int)).max())


def test_every_encoding_of_the_design_is_supported():
    assert set(SUPPORTED_ENCODINGS) == {*PACKED, *BAYER, *YUV422, *SEMI_PLANAR}


@pytest.mark.parametrize(('name', 'size', 'padding', 'big_endian'), list(every_case()))
def test_pixels_become_rgb_and_padding_is_not_read(name, size, padding, big_endian):
    made = picture(name, *size, big_endian)
    results = []
    for fill in (0, 255, 90):
        message = image_message(name, size, made.planes, padding, fill, big_endian)
        before = message.data.tobytes()
        rgb = to_rgb(message)
        assert rgb.shape == (size[1], size[0], 3)
        assert rgb.dtype == np.uint8
        assert rgb.flags.c_contiguous
        assert message.data.tobytes() == before
        assert (message.encoding, message.step) == (name, made.planes[0][0].shape[1] + padding)
        results.append(rgb)
    assert difference(results[0], made.rgb) <= made.tolerance
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


@pytest.mark.parametrize('name', sorted(set(SUPPORTED_ENCODINGS) - WIDE))
def test_byte_order_means_nothing_to_8_bit_samples(name):
    size = (8, 6)
    planes = picture(name, *size).planes
    little, big = (to_rgb(image_message(name, size, planes, big_endian=order))
                   for order in (False, True))
    assert np.array_equal(little, big)


@pytest.mark.parametrize(('tile', 'colors'), [
    ('rggb', ((200, 0, 0), (0, 100, 0), (0, 100, 0), (0, 0, 50))),
    ('bggr', ((0, 0, 50), (0, 100, 0), (0, 100, 0), (200, 0, 0))),
    ('gbrg', ((0, 100, 0), (0, 0, 50), (200, 0, 0), (0, 100, 0))),
    ('grbg', ((0, 100, 0), (200, 0, 0), (0, 0, 50), (0, 100, 0)))])
@pytest.mark.parametrize('bits', [8, 16])
def test_bayer_name_is_the_first_two_rows_of_the_mosaic(tile, colors, bits):
    # Behind each filter the sensor sees one and the same colour, (200, 100, 50).
    mosaic = np.tile(np.array([sum(color) for color in colors]).reshape(2, 2), (4, 5))
    samples = mosaic.astype(np.uint8) if bits == 8 else (mosaic * 256 + 255).astype('<u2')
    message = image_message(f'bayer_{tile}{bits}', (10, 8), [(rows_of_bytes(samples), 1)])
    assert np.array_equal(np.unique(to_rgb(message).reshape(-1, 3), axis=0), [[200, 100, 50]])


@pytest.mark.parametrize('name', [*YUV422, *SEMI_PLANAR])
@pytest.mark.parametrize(('yuv', 'rgb'), [  # the colour bars of BT.601 at full saturation
    ((235, 128, 128), (255, 255, 255)), ((16, 128, 128), (0, 0, 0)), ((81, 90, 240), (255, 0, 0)),
    ((145, 54, 34), (0, 255, 0)), ((41, 240, 110), (0, 0, 255))])
def test_yuv_is_limited_range_bt601(name, yuv, rgb):
    y, u, v = yuv
    if name in YUV422:
        pair = np.array([y, u, y, v])[np.argsort(YUV422[name])]
        planes = [(np.tile(pair, (2, 2)).astype(np.uint8), 1)]
    else:
        pair = np.array([v, u] if name == 'nv21' else [u, v], np.uint8)
        chroma = np.tile(pair, (2, 4) if name == 'nv24' else (1, 2))
        planes = [(np.full((2, 4), y, np.uint8), 1), (chroma, 2 if name == 'nv24' else 1)]
    assert difference(to_rgb(image_message(name, (4, 2), planes)), np.full((2, 4, 3), rgb)) <= 1


def test_unpadded_rgb8_is_not_copied():
    message = tight('rgb8', 7, 5)
    assert np.shares_memory(to_rgb(message), np.frombuffer(message.data, np.uint8))


@pytest.mark.parametrize('name', sorted(set(SUPPORTED_ENCODINGS) - {'rgb8'}))
def test_any_other_result_stands_apart_from_the_message(name):
    message = tight(name, 8, 6)
    before = message.data.tobytes()
    to_rgb(message)[:] = 77
    assert message.data.tobytes() == before


def test_encoding_override_replaces_what_the_message_says():
    made = picture('rgb8', 7, 5)
    message = image_message('8UC3', (7, 5), made.planes)
    assert np.array_equal(to_rgb(message), made.rgb[..., ::-1])
    assert np.array_equal(to_rgb(message, 'rgb8'), made.rgb)
    assert message.encoding == '8UC3'


def test_encoding_override_rescues_an_unknown_name():
    made = picture('mono8', 7, 5)
    message = image_message('grayscale', (7, 5), made.planes)
    assert np.array_equal(to_rgb(message, 'mono8'), made.rgb)


@pytest.mark.parametrize('size', [(0, 5), (5, 0), (0, 0)])
def test_zero_size_is_refused(size):
    message = Image(width=size[0], height=size[1], encoding='rgb8', step=3 * size[0])
    with pytest.raises(ImageError, match=f'{size[0]}x{size[1]} pixels: expected at least 1x1'):
        to_rgb(message)


@pytest.mark.parametrize('name', SUPPORTED_ENCODINGS)
@pytest.mark.parametrize('extra', [-1, 1])
def test_data_of_another_length_is_refused(name, extra):
    message = tight(name, 8, 6)
    expected = len(message.data)
    message.data = typed_array('B', bytes(expected + extra))
    with pytest.raises(ImageError, match=f'{name} .* has {expected + extra} bytes of data: '
                                         f'expected {expected} .*; correct'):
        to_rgb(message)


@pytest.mark.parametrize('name', SUPPORTED_ENCODINGS)
def test_step_shorter_than_a_row_is_refused(name):
    message = tight(name, 8, 6)
    row_bytes = message.step
    rows = len(message.data) // row_bytes
    message.step = row_bytes - 1
    message.data = typed_array('B', bytes(rows * message.step))
    with pytest.raises(ImageError, match=f'{name} .*8x6 pixels with step {row_bytes - 1}: '
                                         f'expected at least {row_bytes} bytes.*; correct'):
        to_rgb(message)


def test_empty_data_is_refused():
    message = Image(width=4, height=2, encoding='rgb8', step=12)
    with pytest.raises(ImageError, match='has 0 bytes of data: expected 24'):
        to_rgb(message)


@pytest.mark.parametrize('name', ['nv12', 'nv21', 'nv24'])
def test_luma_without_its_chroma_is_refused(name):
    message = tight(name, 8, 6)
    message.data = message.data[:48]
    with pytest.raises(ImageError, match='has 48 bytes of data'):
        to_rgb(message)


@pytest.mark.parametrize(('name', 'size', 'side'), [
    *((name, (7, 6), 'width') for name in (*YUV422, 'nv12', 'nv21')),
    ('nv12', (8, 5), 'height'), ('nv21', (8, 5), 'height')])
def test_odd_size_is_refused_where_pixels_share_colour(name, size, side):
    message = Image(width=size[0], height=size[1], encoding=name, step=16)
    with pytest.raises(ImageError, match=f'{name} .*{size[0]}x{size[1]} pixels: expected a {side} '
                                         'that is a multiple of 2'):
        to_rgb(message)


@pytest.mark.parametrize('size', [(2, 8), (8, 2), (1, 1)])
def test_mosaic_too_small_to_interpolate_is_refused(size):
    message = Image(width=size[0], height=size[1], encoding='bayer_rggb8', step=size[0])
    message.data = typed_array('B', bytes(size[0] * size[1]))
    with pytest.raises(ImageError, match='expected at least 3x3'):
        to_rgb(message)


@pytest.mark.parametrize('size', [(8000, 8001), (64_000_001, 1), (2**32 - 1, 2**32 - 1)])
@pytest.mark.parametrize('name', ['rgb8', 'nv12', 'no such encoding'])
def test_more_than_64_million_pixels_are_refused(size, name):
    message = Image(width=size[0], height=size[1], encoding=name, step=1)
    with pytest.raises(ImageError, match=f'{size[0]}x{size[1]} pixels: expected at most 64000000'):
        to_rgb(message)


def test_64_million_pixels_are_not_too_many():
    assert MAX_PIXELS == 8000 * 8000
    with pytest.raises(ImageError, match='bytes of data'):
        to_rgb(Image(width=8000, height=8000, encoding='mono8', step=8000))


@pytest.mark.parametrize('name', ['', 'RGB8', 'rgb', ' rgb8', '32FC1', '8UC2', 'jpeg'])
def test_unknown_encoding_is_refused_with_those_that_are_known(name):
    message = image_message(name, (7, 5), picture('rgb8', 7, 5).planes)
    with pytest.raises(ImageError, match=f"encoding '{name}': expected one of rgb8, .*, nv24"):
        to_rgb(message)


def test_unknown_override_is_refused():
    with pytest.raises(ImageError, match="encoding 'rgb24': expected one of rgb8, "):
        to_rgb(tight('rgb8', 7, 5), 'rgb24')


@pytest.mark.parametrize('fault', ['ImportError', 'AttributeError'])
def test_cv_bridge_that_does_not_import_is_as_good_as_none(tmp_path, fault):
    """As one built for NumPy 1 does under NumPy 2."""
    package = tmp_path / 'cv_bridge'
    package.mkdir()
    package.joinpath('__init__.py').write_text(f'raise {fault}("numpy.core.multiarray")')
    code = ('from sensor_msgs.msg import Image\n'
            'from seg_ros.errors import ImageError\n'
            'from seg_ros.ros.messages import to_rgb\n'
            'try:\n'
            '    to_rgb(Image(width=1, height=1, encoding="nv99"))\n'
            'except ImageError as error:\n'
            '    print(error)\n')
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(tmp_path), str(root), os.environ.get('PYTHONPATH', '')])
    done = subprocess.run([sys.executable, '-c', code], env={**os.environ, 'PYTHONPATH': path},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("image message of encoding 'nv99': expected one of rgb8, ")


@pytest.mark.parametrize('name', sorted(
    {*PACKED, *BAYER, 'yuv422', 'yuv422_yuy2'} - {'8UC1', '8UC3', '8UC4', '16UC1'}))
def test_cv_bridge_agrees_where_it_is_installed(name):
    bridge = pytest.importorskip('cv_bridge').CvBridge()
    message = tight(name, 8, 6)
    # It rounds where 16 bits become 8, and does so after demosaicing.
    tolerance = (2 if name in BAYER else 1) if name in WIDE else 0
    assert difference(to_rgb(message), bridge.imgmsg_to_cv2(message, 'rgb8')) <= tolerance


@pytest.mark.parametrize(('encoding', 'shape', 'step'), [
    ('mono8', (5, 7), 7), ('rgb8', (5, 7, 3), 21), ('mono8', (1, 1), 1), ('rgb8', (1, 1, 3), 3)])
def test_array_becomes_a_message_with_unpadded_rows(encoding, shape, step):
    array = np.random.default_rng(4).integers(0, 256, shape, np.uint8)
    header = Header(stamp=Time(sec=-3, nanosec=999_999_999), frame_id='front/camera é')
    message = to_image(array, encoding, header)
    assert (message.height, message.width) == shape[:2]
    assert (message.encoding, message.step, message.is_bigendian) == (encoding, step, 0)
    assert message.data.tobytes() == array.tobytes()
    assert message.header == Header(stamp=Time(sec=-3, nanosec=999_999_999),
                                    frame_id='front/camera é')
    rgb = array if encoding == 'rgb8' else np.stack([array] * 3, axis=-1)
    assert np.array_equal(to_rgb(message), rgb)


def test_array_with_gaps_becomes_a_message_without():
    array = np.random.default_rng(5).integers(0, 256, (10, 14, 3), np.uint8)[::2, ::-2, ::-1]
    message = to_image(array, 'rgb8', Header())
    assert message.step == 21
    assert message.data.tobytes() == array.tobytes()


def test_message_keeps_its_data_when_the_array_changes():
    array = np.zeros((5, 7), np.uint8)
    message = to_image(array, 'mono8', Header())
    array[:] = 9
    assert message.data.tobytes() == bytes(35)


@pytest.mark.parametrize(('array', 'encoding', 'said'), [
    (np.zeros((5, 7), np.uint8), 'rgb8', r'\(5, 7\).*expected \(H, W, 3\)'),
    (np.zeros((5, 7, 3), np.uint8), 'mono8', r'\(5, 7, 3\).*expected \(H, W\)'),
    (np.zeros((5, 7, 4), np.uint8), 'rgb8', r'\(5, 7, 4\).*expected \(H, W, 3\)'),
    (np.zeros((5, 7), np.int64), 'mono8', 'int64.*uint8'),
    (np.zeros((5, 7, 3), np.float32), 'rgb8', 'float32.*uint8'),
    (np.zeros((0, 7), np.uint8), 'mono8', 'at least one pixel'),
    (np.zeros((5, 7), np.uint8), 'mono16', "encoding 'mono16': expected one of mono8, rgb8")])
def test_array_that_does_not_fit_the_encoding_is_refused(array, encoding, said):
    with pytest.raises(ImageError, match=said):
        to_image(array, encoding, Header())
