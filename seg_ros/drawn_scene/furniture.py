"""Lamp posts, traffic lights and signs as solids."""

import numpy as np

from seg_ros.drawn_scene.classes import POLE, SIGN
from seg_ros.drawn_scene.solids import Placed, Solid
from seg_ros.drawn_scene.world import Thing

_TURN = np.linspace(0, 2 * np.pi, 20, endpoint=False)
_ROUND = np.column_stack([np.cos(_TURN), np.sin(_TURN)])
_TRIANGLE = np.array([(0, 1.0), (0.95, -0.65), (-0.95, -0.65)])
_SQUARE = np.array([(-.9, -.9), (.9, -.9), (.9, .9), (-.9, .9)])
_ARROW = np.array([(0, .25), (.17, .04), (.06, .04), (.06, -.24), (-.06, -.24), (-.06, .04),
                   (-.17, .04)])
_RED, _WHITE = (196, 26, 30), (238, 238, 234)
_BLUE, _GREEN = (24, 70, 160), (16, 100, 62)
_DARK, _GREY, _NONE = (36, 38, 40), (130, 134, 136), (0, 0, 0)
_LAMP_M = 7.0
_PAINTS = np.array((_GREY, (46, 66, 58)), float)


class _Builder(Solid):
    """A solid of a round post and of plates that face the traffic."""

    def __init__(self) -> None:
        super().__init__()
        self._plates = 0

    def post(self, radius: float, height: float, rgb: tuple[float, ...],
             paint: float = 0.0) -> None:
        """Add a post of three stripes, as the light falls on a cylinder."""
        for left, right, side in ((-1.0, -0.3, -0.8), (-0.3, 0.35, 0.0), (0.35, 1.0, 0.8)):
            x = radius * np.array((left, right, right * 0.75, left * 0.75))
            self.add(np.column_stack([x, (0, 0, height, height), np.zeros(4)]), rgb, POLE,
                     shade=(side, 0.1, -0.6), paint=paint)

    def plate(self, outline: np.ndarray, up: float, rgb: tuple[float, ...],
              class_id: int = SIGN, right: float = 0.0, paint: float = 0.0) -> None:
        """Add a plate in front of the ones before."""
        self._plates += 1
        points = np.column_stack([right + outline[:, 0], up + outline[:, 1],
                                  np.full(len(outline), -0.05)])
        self.add(points, rgb, class_id, shade=(0.0, 0.35, -0.75), group=self._plates,
                 convex=outline is not _ARROW, paint=paint, fine=self._plates > 4)


def place_lamp(thing: Thing, sun_share: float) -> Placed:
    """A lamp post with an arm over the road."""
    return Placed(_LAMPS[thing.x > 0], thing.x, thing.s, 1,
                  _PAINTS[int(thing.look[1] < 0.4)], sun_share, 0.9 + 0.2 * thing.look[0])


def place_lights(thing: Thing, sun_share: float) -> Placed:
    """Traffic lights; their case counts as a sign."""
    return Placed(_LIGHTS[int(thing.look[0] * 3)], thing.x, thing.s, 1, np.zeros(3), sun_share)


def place_sign(thing: Thing, sun_share: float) -> Placed:
    """A traffic sign on its post."""
    return Placed(_SIGNS[int(thing.look[0] * len(_SIGNS))], thing.x, thing.s, 1, np.zeros(3),
                  max(sun_share, 0.4), 0.96 + 0.1 * thing.look[1])


def _lamp(inward: float) -> Solid:
    solid = _Builder()
    solid.post(0.11, _LAMP_M, _NONE, 1.0)
    reach = 1.5 * inward
    solid.plate(np.array([(0, -.06), (reach, .18), (reach, .3), (0, .06)]), _LAMP_M, _NONE, POLE,
                paint=1.0)
    solid.plate(np.array([(reach * .8, .1), (reach * 1.35, .2), (reach * 1.35, .36),
                          (reach * .8, .34)]), _LAMP_M, _NONE, POLE, paint=0.7)
    return solid


def _lights(lit: int) -> Solid:
    solid = _Builder()
    solid.post(0.09, 2.5, _GREY)
    solid.plate(_SQUARE * (0.36, 0.72), 2.9, _DARK)
    for row, color in enumerate(((230, 40, 30), (240, 170, 40), (40, 210, 110))):
        gain = 1.5 if row == lit else 0.3
        solid.plate(_ROUND * 0.15, 3.3 - 0.4 * row, tuple(gain * part for part in color))
    return solid


def _signs() -> list[Solid]:
    # All are symmetric: where traffic keeps right the picture is the mirrored one.
    limit, warning, follow, places, crossing = signs = [_Builder() for _ in range(5)]
    for solid in signs:
        solid.post(0.05, 2.75, _GREY)
    limit.plate(_ROUND * .42, 2.5, _RED)
    limit.plate(_ROUND * .31, 2.5, _WHITE)
    for right in (-.11, .11):
        limit.plate(_SQUARE * (.08, .16), 2.5, _DARK, right=right)
        limit.plate(_SQUARE * (.03, .10), 2.5, _WHITE, right=right)
    warning.plate(_TRIANGLE * .55, 2.5, _RED)
    warning.plate(_TRIANGLE * .36, 2.5, _WHITE)
    warning.plate(_SQUARE * (.035, .13), 2.48, _DARK)
    follow.plate(_ROUND * .43, 2.5, _WHITE)
    follow.plate(_ROUND * .40, 2.5, _BLUE)
    follow.plate(_ARROW, 2.5, _WHITE)
    places.plate(_SQUARE * (.95, .5), 2.5, _WHITE)
    places.plate(_SQUARE * (.91, .46), 2.5, _GREEN)
    for row, length in ((.2, .6), (0, .45), (-.2, .66)):
        places.plate(_SQUARE * (length * .8, .05), 2.5 + row, _WHITE, right=-.1)
    crossing.plate(_SQUARE * (.40, .46), 2.5, _WHITE)
    crossing.plate(_SQUARE * (.36, .42), 2.5, _BLUE)
    crossing.plate(_TRIANGLE * .33, 2.46, _WHITE)
    crossing.plate(_SQUARE * (.035, .12), 2.40, _DARK)
    crossing.plate(_ROUND * .045, 2.57, _DARK)
    return list(signs)


_LAMPS = (_lamp(1.0), _lamp(-1.0))
_LIGHTS = [_lights(lit) for lit in range(3)]
_SIGNS = _signs()
