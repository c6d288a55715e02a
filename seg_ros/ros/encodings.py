"""How the pixels of each image encoding lie in memory, and how they become RGB.

The names are those of ``sensor_msgs/image_encodings.hpp``. OpenCV converts, on views of the given
bytes: padding at the end of a row is stepped over, never copied.

- 16-bit samples are scaled to 8 bits by ``>> 8``: their high bytes are what is read, so that
  neither byte order nor a row that starts at an odd address needs a conversion of its own.
- YUV is limited-range BT.601 (Y 16..235, U and V 16..240), as OpenCV takes it.
- ``8UC3`` is BGR and ``8UC4`` is BGRA, by OpenCV's habit; ``8UC1`` and ``16UC1`` are grey.
- Bayer pictures are demosaiced bilinearly.
"""

from abc import ABC, abstractmethod
from array import array
from dataclasses import dataclass, field

import cv2
import numpy as np


@dataclass(frozen=True)
class Raster:
    """Rows of bytes with what is needed to find the pixels in them.

    :param data: at least as many bytes as ``step`` and the encoding's ``rows`` ask for.
    :param height: rows of the picture.
    :param width: pixels of a row.
    :param step: bytes from the start of a row to the start of the next, padding included.
    :param big_endian: whether the high byte of a 16-bit sample comes first.
    """

    data: array | bytes | bytearray | memoryview
    height: int
    width: int
    step: int
    big_endian: bool


@dataclass(frozen=True, kw_only=True)
class Encoding(ABC):
    """What an encoding asks of a picture's size, and its way to RGB.

    :param width_multiple: the width is a multiple of this many pixels.
    :param height_multiple: the height is a multiple of this many pixels.
    :param smallest_side: neither side is shorter than this many pixels.
    """

    width_multiple: int = 1
    height_multiple: int = 1
    smallest_side: int = 1

    @abstractmethod
    def row_bytes(self, width: int) -> int:
        """Bytes of pixels in a row of the picture: the least that ``step`` can be."""

    @abstractmethod
    def rows(self, height: int) -> int:
        """Number of times that ``step`` bytes lie in the data, colour planes included."""

    @abstractmethod
    def to_rgb(self, raster: Raster) -> np.ndarray:
        """Convert to RGB; the sizes have been checked.

        :return: (H, W, 3) uint8 RGB, C-contiguous; may be a view of the raster's data.
        """


@dataclass(frozen=True)
class Packed(Encoding):
    """The samples of a pixel lie side by side.

    :param channels: samples of one pixel.
    :param code: OpenCV's conversion to RGB; None for what is RGB already.
    :param sample_bytes: 1, or 2 for 16-bit samples.
    """

    channels: int
    code: int | None = None
    sample_bytes: int = field(default=1, kw_only=True)

    def row_bytes(self, width: int) -> int:
        return width * self.channels * self.sample_bytes

    def rows(self, height: int) -> int:
        return height

    def to_rgb(self, raster: Raster) -> np.ndarray:
        high_byte = 0 if raster.big_endian else self.sample_bytes - 1
        samples = np.ndarray((raster.height, raster.width, self.channels), np.uint8, raster.data,
                             high_byte, (raster.step, self.channels * self.sample_bytes,
                                         self.sample_bytes))
        if self.code is None or self.sample_bytes > 1:
            samples = np.ascontiguousarray(samples)  # itself, if it has no gaps
        return samples if self.code is None else cv2.cvtColor(samples, self.code)


@dataclass(frozen=True)
class HalfChroma(Encoding):
    """NV12 and NV21: a plane of Y, then a plane of interleaved U and V, one pair per 2x2 pixels.

    Rows of both planes are ``step`` bytes apart, and the U/V plane starts at ``height * step``,
    as V4L2, libcamera and RViz have it: ``height * 3 / 2`` rows of ``step`` bytes.

    :param code: OpenCV's conversion to RGB.
    """

    code: int
    width_multiple: int = field(default=2, kw_only=True)
    height_multiple: int = field(default=2, kw_only=True)

    def row_bytes(self, width: int) -> int:
        return width

    def rows(self, height: int) -> int:
        return height * 3 // 2

    def to_rgb(self, raster: Raster) -> np.ndarray:
        height, width, step = raster.height, raster.width, raster.step
        luma = np.ndarray((height, width), np.uint8, raster.data, 0, (step, 1))
        chroma = np.ndarray((height // 2, width // 2, 2), np.uint8, raster.data, height * step,
                            (step, 2, 1))
        return cv2.cvtColorTwoPlane(luma, chroma, self.code)


@dataclass(frozen=True)
class FullChroma(Encoding):
    """NV24: a plane of Y, then a plane of interleaved U and V, one pair per pixel.

    Rows of Y are ``step`` bytes apart and rows of U/V twice that, as V4L2 and libcamera have it:
    together ``height * 3`` times ``step`` bytes.
    """

    def row_bytes(self, width: int) -> int:
        return width

    def rows(self, height: int) -> int:
        return height * 3

    def to_rgb(self, raster: Raster) -> np.ndarray:
        height, width, step = raster.height, raster.width, raster.step
        luma = np.ndarray((height, width), np.uint8, raster.data, 0, (step, 1))
        chroma = np.ndarray((height, width, 2), np.uint8, raster.data, height * step,
                            (2 * step, 2, 1))
        # OpenCV has no conversion from limited-range 4:4:4. Each pixel written as a pair U Y V Y
        # goes through that of UYVY; the first pixel of each resulting pair is the answer.
        u, v = cv2.split(chroma)
        doubled = cv2.merge([u, luma, v, luma]).reshape(height, 2 * width, 2)
        doubled_rgb = cv2.cvtColor(doubled, cv2.COLOR_YUV2RGB_UYVY)
        return cv2.resize(doubled_rgb, (width, height), interpolation=cv2.INTER_NEAREST)


def _bayer(code: int, sample_bytes: int = 1) -> Packed:
    # Below 3x3 a bilinear demosaic has no neighbours to take from: OpenCV gives black.
    return Packed(1, code, sample_bytes=sample_bytes, smallest_side=3)


_UYVY = Packed(2, cv2.COLOR_YUV2RGB_UYVY, width_multiple=2)
_YUYV = Packed(2, cv2.COLOR_YUV2RGB_YUY2, width_multiple=2)

ENCODINGS: dict[str, Encoding] = {
    'rgb8': Packed(3),
    'bgr8': Packed(3, cv2.COLOR_BGR2RGB),
    'rgba8': Packed(4, cv2.COLOR_RGBA2RGB),
    'bgra8': Packed(4, cv2.COLOR_BGRA2RGB),
    'mono8': Packed(1, cv2.COLOR_GRAY2RGB),
    'rgb16': Packed(3, sample_bytes=2),
    'bgr16': Packed(3, cv2.COLOR_BGR2RGB, sample_bytes=2),
    'rgba16': Packed(4, cv2.COLOR_RGBA2RGB, sample_bytes=2),
    'bgra16': Packed(4, cv2.COLOR_BGRA2RGB, sample_bytes=2),
    'mono16': Packed(1, cv2.COLOR_GRAY2RGB, sample_bytes=2),
    '8UC1': Packed(1, cv2.COLOR_GRAY2RGB),
    '8UC3': Packed(3, cv2.COLOR_BGR2RGB),
    '8UC4': Packed(4, cv2.COLOR_BGRA2RGB),
    '16UC1': Packed(1, cv2.COLOR_GRAY2RGB, sample_bytes=2),
    # ROS names the first two rows of the mosaic from their first pixel on; OpenCV names the same
    # four pixels by the second row's second pixel first, so the letters look reversed.
    'bayer_rggb8': _bayer(cv2.COLOR_BayerBG2RGB),
    'bayer_bggr8': _bayer(cv2.COLOR_BayerRG2RGB),
    'bayer_gbrg8': _bayer(cv2.COLOR_BayerGR2RGB),
    'bayer_grbg8': _bayer(cv2.COLOR_BayerGB2RGB),
    'bayer_rggb16': _bayer(cv2.COLOR_BayerBG2RGB, 2),
    'bayer_bggr16': _bayer(cv2.COLOR_BayerRG2RGB, 2),
    'bayer_gbrg16': _bayer(cv2.COLOR_BayerGR2RGB, 2),
    'bayer_grbg16': _bayer(cv2.COLOR_BayerGB2RGB, 2),
    'yuv422': _UYVY,
    'yuv422_yuy2': _YUYV,
    'uyvy': _UYVY,
    'yuyv': _YUYV,
    'nv12': HalfChroma(cv2.COLOR_YUV2RGB_NV12),
    'nv21': HalfChroma(cv2.COLOR_YUV2RGB_NV21),
    'nv24': FullChroma(),
}
"""Every encoding that is read without help, by its exact name."""

SUPPORTED_ENCODINGS = tuple(ENCODINGS)
