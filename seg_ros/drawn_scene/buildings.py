"""Lots: buildings, fences and gardens beside the street."""

from functools import cached_property

import numpy as np

from seg_ros.drawn_scene import facade
from seg_ros.drawn_scene.cutouts import Standing
from seg_ros.drawn_scene.light import Light
from seg_ros.drawn_scene.planes import Plane
from seg_ros.drawn_scene.street import LOT_M, STYLES, Street
from seg_ros.drawn_scene.texture import Cutout, Texture
from seg_ros.drawn_scene.world import Lot

_DEEP_M = 9.0
_FENCE_M = (1.75, 1.45, 1.1)
_WALLS = _ROOFS = 2
_UP = np.array((0.0, 1.0, 0.0))
_GABLE = ((0.5, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 1.0))


class Buildings:
    """The facades, walls, roofs and fences of a street in a light.

    :param seed: of the street.
    :param street: where its lots begin.
    :param light: that falls on them.
    :param trees: that grow in its gardens.
    """

    def __init__(self, seed: int, street: Street, light: Light, trees: list[Cutout]) -> None:
        self._seed = seed
        self._street = street
        self._light = light
        self._trees = trees
        self._textures: dict[tuple[str, int, int], Texture] = {}

    def height(self, lot: Lot) -> float:
        """Height in metres of the wall of a lot's building, 0 without one."""
        return _floors(lot.style) * facade.FLOOR_M if lot.built else 0.0

    def front(self, lot: Lot) -> float:
        """Place across the street of the front of a lot's building."""
        return self._street.fronts[lot.side > 0] + lot.side * lot.setback

    def parts(self, lots: list[Lot]) -> list[Plane | Standing]:
        """The parts of lots, the furthest first.

        :param lots: the furthest first.
        """
        nearer = {(lot.side, round(lot.start / LOT_M)): lot for lot in lots}
        return [part for lot in lots
                for part in self._lot(lot, nearer.get((lot.side, round(lot.start / LOT_M) - 1)))]

    def _lot(self, lot: Lot, nearer: Lot | None) -> list[Plane | Standing]:
        border = self._street.fronts[lot.side > 0]
        parts: list[Plane | Standing] = []
        if lot.built:
            covered = (nearer is not None and nearer.built and nearer.length == LOT_M
                       and self.height(nearer) >= self.height(lot)
                       and nearer.setback <= lot.setback)
            parts = self._building(lot, covered)
        for beyond, s, height, kind in lot.trees:
            parts.append(Standing(self._trees[kind], border + lot.side * beyond, s,
                                  (height * 0.8, height)))
        if lot.fence >= 0:
            up = _UP * _FENCE_M[lot.fence]
            parts.append(Plane(self._texture('fence', lot.fence, lot.side),
                               np.array((border, 0.0, lot.start)) + up,
                               np.array((0.0, 0.0, LOT_M)), -up))
        return parts

    def _building(self, lot: Lot, covered: bool) -> list[Plane | Standing]:
        """A building; the wall between it and the nearer one is left out where it is covered."""
        up = _UP * self.height(lot)
        deep = np.array((lot.side * _DEEP_M, 0.0, 0.0))
        corner = np.array((self.front(lot), 0.0, lot.start)) + up
        parts: list[Plane | Standing] = []
        if lot.ridge:
            rise = _UP * lot.ridge
            parts.append(Plane(self._texture('wall', lot.style % _WALLS), corner + rise, deep,
                               -rise, _GABLE))
            eaves = np.array((-lot.side * 0.35, -0.25, 0.0)) - deep / 2 - rise
            parts.append(Plane(self._texture('roof', lot.style % _ROOFS, lot.side),
                               corner + deep / 2 + rise, np.array((0.0, 0.0, lot.length)), eaves))
        if not covered:
            parts.append(Plane(self._texture('wall', lot.style % _WALLS), corner, deep, -up))
        share = lot.length / LOT_M  # a narrow building shows less of the facade
        parts.append(Plane(self._texture('front', lot.style, lot.side), corner,
                           np.array((0.0, 0.0, LOT_M)), -up,
                           ((0.0, 0.0), (share, 0.0), (share, 1.0), (0.0, 1.0))))
        return parts

    def _texture(self, what: str, number: int, side: int = 0) -> Texture:
        """A texture as the light falls on its side of the street; made when first seen."""
        key = (what, number, side)
        if key not in self._textures:
            picture = self._pictures[what, number]
            toward = {'wall': (0.0, 0.0, -1.0), 'roof': (-side * 0.6, 0.8, 0.0),
                      'front': (-float(side), 0.0, 0.0), 'fence': (-float(side), 0.0, 0.0)}[what]
            self._textures[key] = Texture(self._light.on(picture, toward), self._light)
        return self._textures[key]

    @cached_property
    def _pictures(self) -> dict[tuple[str, int], np.ndarray]:
        rng = np.random.default_rng((self._seed, 4))
        pictures = {('front', style): facade.facade(rng, _floors(style))
                    for style in range(STYLES)}
        pictures.update({('wall', number): facade.side_wall(rng) for number in range(_WALLS)})
        pictures.update({('roof', number): facade.roof(rng) for number in range(_ROOFS)})
        pictures.update({('fence', kind): facade.fence(rng, kind) for kind in range(3)})
        return pictures


def _floors(style: int) -> int:
    return 2 + style % 3
