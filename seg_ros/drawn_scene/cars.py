"""Cars as solids: a side outline, extruded, with panes, lights and wheels."""

from dataclasses import dataclass

import numpy as np

from seg_ros.drawn_scene.classes import CAR
from seg_ros.drawn_scene.solids import Placed, Solid
from seg_ros.drawn_scene.world import Thing

_GLASS = np.array((46.0, 56.0, 66.0))
_TYRE = np.array((30.0, 30.0, 32.0))
_NONE = np.zeros(3)
_COLORS = np.array([(168, 24, 26), (34, 62, 128), (196, 198, 202), (30, 32, 36), (228, 228, 226),
                    (112, 118, 124), (30, 88, 66), (146, 150, 158), (70, 92, 128),
                    (198, 160, 60)], float)
_UNDER, _SHELL, _FLANK, _PANE, _WHEEL, _END = range(6)  # order of drawing
_TURN = np.linspace(0, 2 * np.pi, 14, endpoint=False)
_RING = np.column_stack([np.cos(_TURN), np.sin(_TURN)])


@dataclass(frozen=True)
class Shape:
    """A kind of car.

    :param outline: (forward, up) of its side from the rear bumper over the roof to the front.
    :param panes: indices of the outline's segments that are glass.
    :param belt: index of the first and last point of the part above the doors.
    :param half_width: of the body and of the roof.
    :param axles: forward place of the wheels.
    :param van: only the front door has a pane.
    """

    outline: np.ndarray
    panes: tuple[int, int]
    belt: tuple[int, int]
    half_width: tuple[float, float]
    axles: tuple[float, float]
    van: bool = False

    def width_at(self, up: np.ndarray) -> np.ndarray:
        """Half its width at heights above the ground."""
        body, roof = self.half_width
        low, high = self.outline[self.belt[0], 1], self.outline[:, 1].max()
        return body - (body - roof) * np.clip((up - low) / (high - low), 0, 1)


SHAPES = (
    Shape(np.array([(-2.0, .24), (-2.08, .55), (-2.0, .95), (-1.62, 1.42), (0.1, 1.47),
                    (0.9, .97), (1.9, .82), (2.05, .56), (1.98, .24)]),
          (2, 4), (2, 5), (.86, .68), (-1.3, 1.3)),
    Shape(np.array([(-2.3, .24), (-2.38, .58), (-2.28, .95), (-1.55, 1.0), (-0.95, 1.42),
                    (0.25, 1.45), (1.05, .98), (2.1, .82), (2.28, .56), (2.2, .24)]),
          (3, 5), (3, 6), (.88, .66), (-1.4, 1.42)),
    Shape(np.array([(-2.5, .28), (-2.55, .7), (-2.5, 1.15), (-2.4, 2.15), (1.1, 2.2),
                    (1.85, 1.2), (2.4, 1.0), (2.55, .6), (2.45, .28)]),
          (2, 4), (2, 5), (.98, .9), (-1.6, 1.6), True),
)


def shape_of(thing: Thing) -> int:
    """The kind of car that a thing is: which of ``SHAPES``."""
    return 0 if thing.look[0] < 0.48 else 1 if thing.look[0] < 0.84 else 2


def place_car(thing: Thing, sun_share: float) -> Placed:
    """A car, moving or parked."""
    paint = _COLORS[int(thing.look[1] * len(_COLORS))] * (0.85 + 0.3 * thing.look[2])
    return Placed(_SOLIDS[shape_of(thing)], thing.x, thing.s, thing.heading, paint, sun_share)


def _solid(shape: Shape) -> Solid:
    solid = Solid()
    _add_underside(solid, shape)
    _add_shell(solid, shape)
    for side in (-1.0, 1.0):
        _add_flank(solid, shape, side)
    _add_end(solid, shape, rear=True)
    _add_end(solid, shape, rear=False)
    return solid


def _add_underside(solid: Solid, shape: Shape) -> None:
    """Wheels seen from an end, and the dark under the bumpers."""
    half, bottom = shape.half_width[0] - 0.08, shape.outline[0, 1]
    for axle in shape.axles:
        for x in (-half, half):
            left, right = x - 0.11, x + 0.11
            solid.add(np.array([(left, 0, axle), (right, 0, axle), (right, .4, axle),
                                (left, .4, axle)]), _TYRE, CAR, group=_UNDER)
    for end, look in ((shape.outline[0, 0], -1.0), (shape.outline[-1, 0], 1.0)):
        solid.add(np.array([(-half, bottom - .06, end), (half, bottom - .06, end),
                            (half, bottom + .1, end), (-half, bottom + .1, end)]),
                  _TYRE * 1.2, CAR, out=(0, 0, look), shade=(0, 0, 0), group=_UNDER)


def _add_shell(solid: Solid, shape: Shape) -> None:
    """Rear, roof, bonnet and front: the outline across the car."""
    points = shape.outline
    widths = shape.width_at(points[:, 1])
    for i in range(len(points) - 1):
        (z0, y0), (z1, y1) = points[i], points[i + 1]
        out = np.array((0.0, z1 - z0, -(y1 - y0))) / np.hypot(z1 - z0, y1 - y0)
        w0, w1 = widths[i], widths[i + 1]
        quad = np.array([(-w0, y0, z0), (w0, y0, z0), (w1, y1, z1), (-w1, y1, z1)])
        bumper = i in (0, len(points) - 2)
        solid.add(quad, _NONE, CAR, out=out, paint=0.72 if bumper else 1.0, group=_SHELL)
        middle = quad.mean(0)
        if i in shape.panes:
            pane = middle + (quad - middle) * (0.88, 0.84, 0.84)
            solid.add(pane, _GLASS + 30 * out[1], CAR, out=out, shade=(0, .6, 0), group=_PANE)
            # The sky mirrors in one half of it.
            solid.add(pane[[0, 1, 2]] * (0.9, 1, 1) + (0.03, 0, 0), _GLASS + 66 * out[1], CAR,
                      out=out, shade=(0, .6, 0), group=_PANE + 1, fine=True)
        elif not bumper and abs(out[2]) > 0.5:  # the upright ends get darker below
            bottom, top = (quad[:2], quad[[3, 2]]) if y1 > y0 else (quad[[3, 2]], quad[:2])
            low = np.concatenate([bottom, (bottom + 0.35 * (top - bottom))[::-1]])
            solid.add(low, _NONE, CAR, out=out, paint=0.86, group=_PANE, fine=True)


def _add_flank(solid: Solid, shape: Shape, side: float) -> None:
    points = shape.outline
    body = shape.half_width[0]
    first, last = shape.belt
    out = (side, 0.0, 0.0)

    def at(outline: np.ndarray, beyond: float = 0.0) -> np.ndarray:
        width = shape.width_at(outline[:, 1]) + beyond
        return np.column_stack([side * width, outline[:, 1], outline[:, 0]])

    lower = np.concatenate([points[:first + 1], points[last:]])
    solid.add(at(lower), _NONE, CAR, out=out, paint=0.95, group=_FLANK, convex=False)
    for low, high, paint, fine in ((0.0, .17, .55, False), (.17, .30, .84, True),
                                   (.58, .64, 1.12, True)):
        band = np.array([points[0] + (-.03, low), points[0] + (-.03, high),
                         points[-1] + (.03, high), points[-1] + (.03, low)])
        solid.add(at(band), _NONE, CAR, out=out, paint=paint, group=_FLANK + 1, fine=fine)
    upper = points[first:last + 1]
    solid.add(at(upper), _NONE, CAR, out=out, shade=(side * .9, .4, 0), paint=1.0, group=_FLANK,
              convex=False)
    middle = upper.mean(0)
    pane = middle + (upper - middle) * (0.84, 0.74)
    if shape.van:
        pane[:2, 0] = 0.2
    solid.add(at(pane, .005), _GLASS + 18, CAR, out=out, shade=(0, .7, 0), group=_PANE,
              convex=False)
    low, high = pane[:, 1].min(), pane[:, 1].max()
    pillar = np.array([(-.32, low), (-.2, low), (-.25, high), (-.37, high)])
    solid.add(at(pillar, .01), _NONE, CAR, out=out, paint=0.8, group=_PANE + 1, fine=True)
    for handle in (-.1, -1.05):
        solid.add(at(np.array([(handle, .86), (handle + .2, .86), (handle + .2, .82),
                               (handle, .82)]), .01), _NONE, CAR, out=out, paint=.5,
                  group=_PANE + 1, fine=True)
    for axle in shape.axles:
        for number, (radius, rgb, paint) in enumerate((
                (.38, _NONE, .25), (.33, _TYRE, 0), (.2, _TYRE * 4.6, 0), (.08, _TYRE * 2, 0))):
            ring = np.maximum(_RING * radius + (axle, .33), (-9, 0))
            circle = np.column_stack([np.full(14, side * (body + .02)), ring[:, 1], ring[:, 0]])
            solid.add(circle, rgb, CAR, out=out, shade=(side * .8, .3, 0), paint=paint,
                      group=_WHEEL + number, fine=number in (0, 3))


def _add_end(solid: Solid, shape: Shape, rear: bool) -> None:
    """Lights, plate and grille of an end."""
    points, half = shape.outline, shape.half_width[0]
    (z0, y0), (z1, y1) = (points[1], points[2]) if rear else (points[-2], points[-3])
    look = (0.0, 0.0, -1.0 if rear else 1.0)
    beyond = 0.02 * look[2]

    def patch(left: float, right: float, low: float, high: float, rgb: tuple[int, int, int],
              fine: bool = False, above: int = 0) -> None:
        quad = [(x, y0 + (y1 - y0) * share, z0 + (z1 - z0) * share + beyond)
                for x, share in ((left, low), (right, low), (right, high), (left, high))]
        solid.add(np.array(quad), rgb, CAR, out=look, group=_END + 5 + above, fine=fine)

    if rear:
        patch(-half * .6, half * .6, -.95, -.35, (52, 52, 54), True)
    else:
        patch(-half * .5, half * .5, .25, .8, (38, 40, 42))
    for side in (-1, 1):
        edges = sorted((side * half * .62, side * half * .97))
        patch(edges[0], edges[1], .35, .9, (206, 22, 20) if rear else (246, 246, 232))
        middle = sorted((side * half * .66, side * half * .82))
        patch(middle[0], middle[1], .45, .62, (240, 190, 150) if rear else (255, 255, 255), True,
              1)
    patch(-.27, .27, .05, .38, (226, 196, 60) if rear else (236, 236, 232), False, 1)
    for left in (-.2, -.07, .08):  # letters
        patch(left, left + .1, .14, .3, (50, 48, 40), True, 2)


_SOLIDS = [_solid(shape) for shape in SHAPES]
