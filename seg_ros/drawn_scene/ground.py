"""The ground: its textures seen from above and how they lie in the picture."""

import cv2
import numpy as np

from seg_ros.drawn_scene.camera import HEIGHT_M, View
from seg_ros.drawn_scene.classes import PAVEMENT, ROAD
from seg_ros.drawn_scene.light import Light
from seg_ros.drawn_scene.noise import cloudy, grain, textured
from seg_ros.drawn_scene.street import Street

_PERIOD_M = 32
_HALF_M = 11          # the textures reach this far to both sides
_ACROSS = 32          # pixels a metre across the street
_ALONG = 24           # and along it
_LEVELS = ((1, 1), (1, 4), (2, 16), (4, 48))   # each coarser: across, along


class Ground:
    """Road and pavement of a street in a light."""

    def __init__(self, rng: np.random.Generator, street: Street, light: Light) -> None:
        texture = light.on(_texture(rng, street), (0.0, 1.0, 0.0))
        # Rows run towards the camera in the picture, so the first row is the furthest.
        self._levels = []
        for across, along in _LEVELS:
            level = cv2.resize(texture, (texture.shape[1] // across, texture.shape[0] // along),
                               interpolation=cv2.INTER_AREA)
            self._levels.append(np.concatenate([level] * (2 if along == 1 else 4 + along // 8)))

    def draw(self, picture: np.ndarray, view: View) -> None:
        """Fill the rows below the horizon of (H, W, 4) uint8."""
        height, width = picture.shape[:2]
        base = view.focal * HEIGHT_M
        top = max(0, int(np.floor(view.center[1])) + 1)
        # A level serves the rows in which one pixel spans at most about 1.5 of its texels.
        ends = [view.center[1] + base / np.sqrt(base * 1.5 * along / _ALONG)
                for _, along in _LEVELS[:-1]] + [top]
        bottom = height
        for level, (across, along), end in zip(self._levels, _LEVELS, ends, strict=True):
            start = min(bottom, max(top, int(end)))
            if start < bottom:
                matrix = self._matrix(view, level.shape[0], across, along)
                matrix = np.array([[1, 0, 0], [0, 1, -start], [0, 0, 1]]) @ matrix
                cv2.warpPerspective(level, matrix, (width, bottom - start),
                                    dst=picture[start:bottom], flags=cv2.INTER_LINEAR,
                                    borderMode=cv2.BORDER_REPLICATE)
            bottom = start

    @staticmethod
    def _matrix(view: View, rows: int, across: int, along: int) -> np.ndarray:
        """Texture pixels to picture pixels."""
        # One metre behind the camera lies inside the last period, the nearest one.
        nearest = np.floor((view.s - 1.0) / _PERIOD_M) * _PERIOD_M
        step_x, step_s = across / _ACROSS, along / _ALONG
        origin = (-_HALF_M + step_x / 2, 0.0, nearest + (rows - 0.5) * step_s)
        plane = np.array(((step_x, 0, 0), (0, 0, -step_s), origin))
        return view.homographies(plane[None])[0]


def _texture(rng: np.random.Generator, street: Street) -> np.ndarray:
    """One period seen from above, (rows, columns, 4) uint8 RGB and class id, unlit."""
    rows, columns = _PERIOD_M * _ALONG, 2 * _HALF_M * _ACROSS
    x = (np.arange(columns) + 0.5) / _ACROSS - _HALF_M
    left, right = street.kerbs
    on_road = (x > left) & (x < right)
    first, last = np.flatnonzero(on_road)[[0, -1]]

    gain, color = _slabs(rng, rows, columns)
    colors = np.tile(color, (columns, 1))
    gain[:, first:last + 1] = _asphalt(rng, street, rows, x[first:last + 1])
    asphalt = rng.uniform(84, 118) * (1 + rng.uniform(-0.02, 0.02, 3))
    colors[on_road] = asphalt
    beyond_kerb = np.minimum(np.abs(x - left + 0.08), np.abs(x - right - 0.08))
    kerb = beyond_kerb < 0.09
    gain[:, kerb] = 1 + 0.25 * (gain[:, kerb] - 1)
    gain[::_ALONG, kerb] *= 0.7
    colors[kerb] = rng.uniform(150, 185)
    gutter = np.minimum(np.abs(x - left - 0.08), np.abs(x - right + 0.08)) < 0.09
    gain[:, gutter] *= 0.72

    planes = [cv2.convertScaleAbs(gain * colors[:, part].astype(np.float32)) for part in range(3)]
    classes = np.where(on_road, ROAD, PAVEMENT).astype(np.uint8)
    texture = cv2.merge([*planes, np.tile(classes, (rows, 1))])
    _markings(texture, rng, street, x)
    return texture


def _asphalt(rng: np.random.Generator, street: Street, rows: int, x: np.ndarray) -> np.ndarray:
    """Brightness (rows, columns) float32 of the road, 1 on average."""
    gain = 1 + 0.055 * grain(rng, rows, len(x)) + 0.04 * cloudy(rng, rows, len(x), (3, 24, 96))
    tracks = np.exp(-((np.abs(np.abs(x) - street.lane / 2) - 0.75) / 0.3) ** 2)
    gain -= 0.07 * tracks.astype(np.float32)
    for _ in range(int(rng.integers(3, 8))):  # patches of newer asphalt
        top, long = rng.integers(0, rows - 100), rng.integers(40, 100)
        side, wide = rng.integers(0, len(x) - 80), rng.integers(24, 80)
        gain[top:top + long, side:side + wide] *= rng.uniform(0.78, 0.92)
    for _ in range(int(rng.integers(2, 7))):  # cracks, sealed with tar
        steps = np.cumsum(rng.normal(0, 2.2, rows // 8)) + rng.integers(0, len(x))
        start = int(rng.integers(0, len(steps) // 2))
        line = np.column_stack([steps, np.arange(len(steps)) * 8])[start:start + 40]
        cv2.polylines(gain, [line.astype(np.int32)], False, 0.72, int(rng.integers(1, 3)))
    for _ in range(2):  # manholes
        at = (int(rng.integers(20, len(x) - 20)), int(rng.integers(20, rows - 20)))
        axes = (int(0.33 * _ACROSS), int(0.33 * _ALONG))
        cv2.ellipse(gain, at, axes, 0, 0, 360, 0.66, -1)
        for offset in range(-6, 7, 3):
            cv2.line(gain, (at[0] - 7, at[1] + offset), (at[0] + 7, at[1] + offset), 0.85, 1)
        cv2.ellipse(gain, at, axes, 0, 0, 360, 0.95, 1)
    return gain


def _markings(texture: np.ndarray, rng: np.random.Generator, street: Street, x: np.ndarray,
              ) -> None:
    rows = texture.shape[0]
    worn = np.float32(0.84) + 0.10 * cloudy(rng, rows, texture.shape[1], (2, 12))

    def paint(columns: np.ndarray, start: int, stop: int, color: tuple[int, int, int]) -> None:
        first, last = np.flatnonzero(columns)[[0, -1]]
        tone = textured(color, np.minimum(worn[start:stop, first:last + 1], 1.08))
        texture[start:stop, first:last + 1, :3] = tone

    dash = int(rng.choice((2, 4)) * _ALONG)
    for start in range(0, rows, 2 * dash):
        paint(np.abs(x) < 0.07, start, start + dash, (228, 228, 224))
    for kerb, parked in zip(street.kerbs, street.parking, strict=True):
        inward = -np.sign(kerb)
        if parked:
            edge = kerb + inward * 2.15
            for start in range(0, rows, _ALONG * 2):
                paint(np.abs(x - edge) < 0.05, start, start + _ALONG, (220, 220, 217))
        elif rng.random() < 0.6:
            for offset in (0.25, 0.42):
                paint(np.abs(x - kerb - inward * offset) < 0.045, 0, rows, (212, 176, 62))


def _slabs(rng: np.random.Generator, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Brightness (rows, columns) float32 and colour (3,) of the pavement."""
    color = np.array(((150, 146, 140), (164, 152, 138), (150, 134, 124))[rng.integers(3)],
                     float) * rng.uniform(0.92, 1.12)
    size = int(rng.choice((12, 16, 24)))
    each = 0.05 * grain(rng, rows // size + 1, columns // size + 1)
    gain = cv2.resize(each, None, fx=size, fy=size, interpolation=cv2.INTER_NEAREST)
    gain = 1 + gain[:rows, :columns] + 0.04 * grain(rng, rows, columns)
    gain += 0.045 * cloudy(rng, rows, columns, (40, 120))
    gain[::size] *= 0.74
    gain[:, ::size] *= 0.74
    return gain, color
