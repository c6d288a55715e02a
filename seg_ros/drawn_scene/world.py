"""What stands and moves where in the street.

The street is an endless row of cells. What a cell holds depends on the seed and the cell's number
alone, so that a moment looks the same whichever moments were asked for before. Things that move
ride belts: rows of cells that glide along the street at one speed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from seg_ros.drawn_scene.street import LOT_M, STYLES, Street

AHEAD_M = 120.0
"""How far ahead there are buildings."""

_THINGS_M = 85.0   # further away they are a pixel or two
_PEOPLE_M = 55.0
_BEHIND_M = 6.0
_CELL_M = 8.0


@dataclass(frozen=True)
class Lot:
    """A piece of ground beside the pavement.

    :param side: -1 left, 1 right.
    :param start: s where it begins.
    :param length: metres along the street that its building or fence takes.
    :param setback: metres from the pavement to the building.
    :param built: whether a building stands on it.
    :param style: which facade, 0..STYLES - 1.
    :param ridge: height of the roof above the wall; 0 is a flat roof.
    :param fence: kind of fence towards the pavement, -1 for none.
    :param trees: (x beyond the pavement, s, height, kind) of each tree.
    """

    side: int
    start: float
    length: float
    setback: float
    built: bool
    style: int
    ridge: float
    fence: int
    trees: tuple[tuple[float, float, float, int], ...]


@dataclass(frozen=True)
class Thing:
    """Something that stands or moves on the street.

    :param kind: 'lamp', 'sign', 'lights', 'tree', 'car', 'pedestrian' or 'cyclist'.
    :param x: place across the street in metres.
    :param s: place along the street in metres.
    :param heading: 1 forward, -1 towards the camera.
    :param speed: metres per second along its heading; 0 stands.
    :param look: random numbers, 0..1, that choose its size, shape and colours.
    """

    kind: str
    x: float
    s: float
    heading: int
    speed: float
    look: np.ndarray


@dataclass(frozen=True)
class Belt:
    """A row of cells that moves along the street.

    :param row: number of the row, unique in a street.
    :param kind: of its things.
    :param x: places across the street, (from, to).
    :param velocity: metres per second forward.
    :param cell_m: length of a cell.
    :param share: of cells that hold a thing.
    """

    row: int
    kind: str
    x: tuple[float, float]
    velocity: float
    cell_m: float
    share: float

    def draw(self, rng: np.random.Generator, cell: int) -> list[Thing]:
        """What a cell holds, where it is at time 0."""
        if rng.random() >= self.share:
            return []
        s = (cell + rng.uniform(0.15, 0.85)) * self.cell_m
        heading = 1 if self.velocity > 0 else -1
        return [Thing(self.kind, rng.uniform(*self.x), s, heading, abs(self.velocity),
                      rng.random(8))]


class World:
    """Everything in a street.

    :param seed: not negative.
    :param street: its measures.
    :param camera_speed: metres per second; the car ahead keeps its distance.
    """

    def __init__(self, seed: int, street: Street, camera_speed: float) -> None:
        self._seed = seed
        self._street = street
        self._belts = _belts(np.random.default_rng((seed, 7)), street, camera_speed)
        self._drawn: dict[tuple[int, int], list] = {}

    def lots(self, s: float) -> list[Lot]:
        """Lots around a camera at ``s``, the furthest first."""
        first, last = int((s - _BEHIND_M) // LOT_M) - 1, int((s + AHEAD_M) // LOT_M)
        return [lot for cell in range(last, first - 1, -1) for side in (-1, 1)
                for lot in self._cell(2 + side, cell, partial(_draw_lot, self._street, side))]

    def things(self, s: float, time_s: float) -> list[Thing]:
        """Things around a camera at ``s``, in no order."""
        low, high = s - _BEHIND_M, s + _THINGS_M
        found = [thing for cell in range(int(low // _CELL_M), int(high // _CELL_M) + 1)
                 for side in (-1, 1)
                 for thing in self._cell(12 + side, cell,
                                         partial(_draw_standing, self._street, side))]
        for belt in self._belts:
            reach = high if belt.kind == 'car' else s + _PEOPLE_M
            shift = belt.velocity * time_s
            first, last = (int((end - shift) // belt.cell_m) for end in (low, reach))
            for cell in range(first, last + 1):
                found += [replace(thing, s=thing.s + shift)
                          for thing in self._cell(belt.row, cell, belt.draw)]
        return found

    def _cell(self, row: int, cell: int, draw: Callable[..., list]) -> list:
        """What a cell of a row holds: drawn when it is first asked for."""
        key = (row, cell)
        if key not in self._drawn:
            if len(self._drawn) > 4096:  # a drive has no end, memory has
                self._drawn.clear()
            # Seeds must not be negative; the cells behind the start are.
            number = cell if cell >= 0 else (1 << 40) - cell
            self._drawn[key] = draw(np.random.default_rng((self._seed, row, number)), cell)
        return self._drawn[key]


def _draw_lot(street: Street, side: int, rng: np.random.Generator, cell: int) -> list[Lot]:
    gap = 0.0 if rng.random() < 0.6 else rng.uniform(1.5, 3.5)
    built = rng.random() < street.built
    setback = rng.uniform(2.0, 3.5) if rng.random() < 0.4 else rng.uniform(0.0, 0.3)
    fence = int(rng.integers(3)) if setback > 1.0 or not built else -1
    ridge = rng.uniform(2.0, 3.5) if rng.random() < 0.65 else 0.0
    trees = []
    if not built:
        trees = [(rng.uniform(2.5, 8.0), cell * LOT_M + at * LOT_M / 3 + rng.uniform(1, 4),
                  rng.uniform(5.0, 9.5), int(rng.integers(3))) for at in (2, 1, 0)]
    elif setback > 1.0 and rng.random() < 0.5:
        trees = [(setback * 0.5, (cell + rng.uniform(0.2, 0.6)) * LOT_M, rng.uniform(2.5, 4.5),
                  int(rng.integers(3)))]
    return [Lot(side, cell * LOT_M, LOT_M - gap if built else LOT_M, setback, built,
                int(rng.integers(STYLES)), ridge, fence, tuple(trees))]


def _draw_standing(street: Street, side: int, rng: np.random.Generator, cell: int,
                   ) -> list[Thing]:
    kerb = street.kerbs[side > 0]
    things = []

    def put(kind: str, x: float, share_of_cell: float, heading: int = 1) -> None:
        things.append(Thing(kind, x, (cell + share_of_cell) * _CELL_M, heading, 0.0,
                            rng.random(8)))

    if (cell + (side > 0)) % 2 == 0:
        put('lamp', kerb + side * 0.35, 0.1)
    if rng.random() < 0.5:
        put('sign', kerb + side * rng.uniform(0.35, 0.6), rng.uniform(0.35, 0.5))
    if cell % 9 == 4 and rng.random() < 0.7:
        put('lights', kerb + side * 0.4, 0.3)
    if rng.random() < street.greenery:
        put('tree', kerb + side * rng.uniform(0.7, 1.0), rng.uniform(0.6, 0.8))
    if street.parking[side > 0] and rng.random() < 0.6:
        put('car', kerb - side * 1.08, 0.5, heading=-side)
    return things


def _belts(rng: np.random.Generator, street: Street, camera_speed: float) -> list[Belt]:
    left, right = street.kerbs
    busy = street.people
    rows = [
        ('car', (street.lane * 0.5,) * 2, -rng.uniform(7, 10), 26.0, 0.75),
        ('car', (-street.lane * 0.5,) * 2, camera_speed, 38.0, 0.85),
        # About as fast as the camera: a cyclist seen is seen for a while.
        ('cyclist', (-street.lane - 0.1,) * 2, camera_speed * rng.uniform(0.8, 0.95), 17.0,
         0.75 * busy),
        ('cyclist', (street.lane - 0.3, street.lane), -rng.uniform(3.5, 5), 30.0, 0.7 * busy),
    ]
    for front, kerb in ((street.fronts[0], left), (street.fronts[1], right)):
        near, far = kerb + 0.3 * (front - kerb), kerb + 0.85 * (front - kerb)
        span = (min(near, far), max(near, far))
        rows.append(('pedestrian', span, rng.uniform(1.1, 1.6), 9.0, 0.42 * busy))
        rows.append(('pedestrian', span, -rng.uniform(1.1, 1.6), 9.0, 0.42 * busy))
    return [Belt(100 + number, kind, x, velocity, cell_m, share)
            for number, (kind, x, velocity, cell_m, share) in enumerate(rows)]


def tree_height(thing: Thing) -> float:
    """Height of a street tree in metres."""
    return float(4.5 + 3.5 * thing.look[0])
