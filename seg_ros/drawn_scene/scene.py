"""The drawn scene: a street seen from a car, with the class of each pixel."""

import cv2
import numpy as np

from seg_ros.drawn_scene.buildings import Buildings
from seg_ros.drawn_scene.camera import Drive, View
from seg_ros.drawn_scene.canvas import Canvas
from seg_ros.drawn_scene.foliage import tree
from seg_ros.drawn_scene.ground import Ground
from seg_ros.drawn_scene.light import light_of
from seg_ros.drawn_scene.noise import grain
from seg_ros.drawn_scene.painter import draw_lots, draw_things
from seg_ros.drawn_scene.shadows import Shadows
from seg_ros.drawn_scene.sky import fit_sky, sky
from seg_ros.drawn_scene.street import street_of
from seg_ros.drawn_scene.world import World
from seg_ros.errors import ConfigError

SMALLEST, LARGEST = 32, 8192
_NOISE_PX = 320


class DrawnScene:
    """A street that a car drives along; the same seed draws the same street.

    :param seed: which street, light and traffic; 0 or more.
    :param width: of the picture in pixels, 32 to 8192.
    :param height: of the picture in pixels, 32 to 8192.
    :raises ConfigError: one of them is out of its range.
    """

    def __init__(self, seed: int, width: int = 640, height: int = 480) -> None:
        _check(seed, width, height)
        self._size = (height, width)
        rng = np.random.default_rng((seed, 1))
        self._street, self._light = street_of(rng), light_of(rng)
        self._drive = Drive(rng.uniform(4.0, 7.5), -self._street.lane / 2 - 0.1,
                            rng.uniform(0, 2 * np.pi))
        self._mirrored = bool(rng.random() < 0.3)  # traffic keeps right
        self._world = World(seed, self._street, self._drive.speed)
        self._trees = [tree(np.random.default_rng((seed, 2, kind)), self._light)
                       for kind in range(3)]
        self._ground = Ground(np.random.default_rng((seed, 3)), self._street, self._light)
        self._buildings = Buildings(seed, self._street, self._light, self._trees)
        self._sky = fit_sky(sky(np.random.default_rng((seed, 5)), self._light), width, height)
        self._noise = _sensor_noise(np.random.default_rng((seed, 6)), height, width)

    def frame(self, time_s: float) -> tuple[np.ndarray, np.ndarray]:
        """The scene at a moment; the same moment gives the same arrays.

        :param time_s: seconds since the start, any finite number.
        :return: (H, W, 3) uint8 RGB picture and (H, W) uint8 class ids, 0..10, of
            ``seg_ros.labels.CAMVID``.
        :raises ConfigError: the time is not finite.
        """
        if not np.isfinite(time_s):
            raise ConfigError(f'time {time_s} s: expected a finite number of seconds')
        view = self._drive.view(time_s, self._size[1], self._size[0])
        picture = np.empty((*self._size, 4), np.uint8)
        self._draw_sky(picture, view)
        self._ground.draw(picture, view)
        lots = self._world.lots(view.s)
        things = self._world.things(view.s, time_s)
        shadows = Shadows(view, self._light, self._size)
        for lot in lots:
            shadows.add_lot(lot, self._buildings.front(lot), self._buildings.height(lot))
        shadows.cast()
        sun_shares = shadows.sun_shares(things)
        for thing in things:
            shadows.add_thing(thing)
        shadows.cast()
        shadows.darken(picture)
        canvas = Canvas(picture, view, self._light)
        draw_lots(canvas, self._buildings.parts(lots))
        draw_things(canvas, things, sun_shares, self._trees, time_s)
        return self._developed(picture, time_s)

    def _draw_sky(self, picture: np.ndarray, view: View) -> None:
        rows, columns = self._sky.shape[:2]
        end = min(self._size[0], max(1, int(np.floor(view.center[1])) + 1))
        start = (columns - self._size[1]) // 2 + round(np.tan(view.yaw) * view.focal)
        start = min(max(start, 0), columns - self._size[1])
        picture[:end] = self._sky[rows - end:, start:start + self._size[1]]

    def _developed(self, picture: np.ndarray, time_s: float) -> tuple[np.ndarray, np.ndarray]:
        """What the sensor makes of the drawing: blur of under a pixel, noise."""
        labels = np.ascontiguousarray(picture[..., 3])
        rgb = cv2.cvtColor(picture, cv2.COLOR_RGBA2RGB)
        rgb = cv2.GaussianBlur(rgb, (3, 3), 0.55)
        height, width = self._size
        down, right = np.random.default_rng(abs(round(time_s * 1e6))).integers(0, 64, 2)
        noise = self._noise[down:down + height, right:right + width]
        rgb = cv2.addWeighted(rgb, 1.0, noise, 1.0, -128.0)
        if self._mirrored:
            rgb, labels = cv2.flip(rgb, 1), cv2.flip(labels, 1)
        return rgb, labels


def _sensor_noise(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Noise around 128, larger than the picture so that each frame takes another part."""
    deviation = rng.uniform(1.5, 4.0)
    speckles = 128 + deviation * grain(rng, _NOISE_PX, 3 * _NOISE_PX)
    speckles = speckles.reshape(_NOISE_PX, _NOISE_PX, 3).round().astype(np.uint8)
    times = (-(-(height + 64) // _NOISE_PX), -(-(width + 64) // _NOISE_PX), 1)
    return np.tile(speckles, times)


def _check(seed: int, width: int, height: int) -> None:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ConfigError(f'seed {seed!r}: expected a whole number, 0 or more')
    for what, pixels in (('width', width), ('height', height)):
        if (isinstance(pixels, bool) or not isinstance(pixels, (int, np.integer))
                or not SMALLEST <= pixels <= LARGEST):
            raise ConfigError(f'{what} {pixels!r}: expected {SMALLEST} to {LARGEST} pixels')
