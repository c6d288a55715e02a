"""Shadows on the ground, and the haze before it."""

import cv2
import numpy as np

from seg_ros.drawn_scene.camera import HEIGHT_M, NEAR_M, View, clip_near
from seg_ros.drawn_scene.canvas import SHIFT, fixed_point
from seg_ros.drawn_scene.cars import SHAPES, shape_of
from seg_ros.drawn_scene.light import Light
from seg_ros.drawn_scene.world import Lot, Thing, tree_height

_FAR_M = 70.0
_TURN = np.linspace(0, 2 * np.pi, 12, endpoint=False)
_RING = np.column_stack([np.cos(_TURN), np.sin(_TURN)])

# A crown's shadow is that of a few clumps: right, forward, radius as shares of its height.
_CLUMPS = np.array(((0, 0, .21), (.17, .06, .12), (-.16, .09, .13), (-.1, -.16, .12),
                    (.11, -.15, .11), (.03, .18, .11)))


class Shadows:
    """The shadows of a moment.

    :param view: where the ground is seen from.
    :param light: in which things cast them.
    :param size: (rows, columns) of the picture.
    """

    def __init__(self, view: View, light: Light, size: tuple[int, int]) -> None:
        self._view, self._light = view, light
        self._top = min(max(0, int(view.center[1])), size[0] - 1)
        self._mask = np.full((size[0] - self._top, size[1]), 255, np.uint8)
        # Where the shadow of a point 1 m above the ground falls, from the point's foot.
        self._slip = -light.to_sun[[0, 2]] / light.to_sun[1]
        self._dark = light.ground_shadow
        self._patches: list[np.ndarray] = []
        self._shares: list[float] = []

    def add_lot(self, lot: Lot, front: float, height: float) -> None:
        """The shadow of a building.

        :param front: x of its facade.
        :param height: in metres; 0 where there is none.
        """
        if height > 0:
            x = np.array((front, front, front + 9 * lot.side, front + 9 * lot.side))
            s = lot.start + np.array((0, lot.length, lot.length, 0))
            self._sweep(np.column_stack([x, s]), height)

    def add_thing(self, thing: Thing) -> None:
        """The shadow of a thing, and the dark ground under a car."""
        if thing.s - self._view.s > _FAR_M:
            return
        at = np.array((thing.x, thing.s))
        if thing.kind == 'car':
            shape = SHAPES[shape_of(thing)]
            length, half = shape.outline[:, 0].max() - 0.1, shape.half_width[0]
            foot = np.array([(-half, -length), (half, -length), (half, length), (-half, length)])
            self._sweep(at + foot, shape.outline[:, 1].max() * 0.85)
            self._patch(at + foot * 1.05, self._dark * 0.75)
            self._patch(at + foot * 0.94, self._dark * 0.42)
        elif thing.kind == 'tree':
            height = tree_height(thing)
            self._sweep(at + _RING * 0.1, height * 0.6)
            if self._light.sunlit:
                crown = at + self._slip * height * 0.62
                for clump in _CLUMPS:
                    self._patch(crown + (clump[:2] + _RING * clump[2]) * height
                                * (1 + .35 * np.abs(self._slip)), self._dark)
        elif thing.kind in ('pedestrian', 'cyclist'):
            length = 0.75 if thing.kind == 'cyclist' else 0.2
            self._sweep(at + _RING * (0.16, length), 1.55)
            self._patch(at + _RING * (0.26, max(0.26, length)), 0.3 + 0.6 * self._dark)
        else:
            self._sweep(at + _RING[::3] * 0.09, 2.6 if thing.kind == 'sign' else 5.0)

    def _sweep(self, foot: np.ndarray, height: float) -> None:
        if self._light.sunlit:
            both = np.concatenate([foot, foot + self._slip * height]).astype(np.float32)
            self._patch(cv2.convexHull(both)[:, 0], self._dark)

    def _patch(self, ground: np.ndarray, share: float) -> None:
        """A convex patch of ground, (N, 2) metres (x, s), gets this share of the light."""
        self._patches.append(ground)
        self._shares.append(255.0 * share)

    def cast(self) -> None:
        """Let the shadows that were added since the last call fall."""
        if not self._patches:
            return
        flat = np.concatenate(self._patches)
        seen = self._view.to_camera(np.column_stack([flat[:, 0], np.zeros(len(flat)),
                                                     flat[:, 1]]))
        ends = np.cumsum([len(patch) for patch in self._patches])
        starts = ends - [len(patch) for patch in self._patches]
        depth = seen[:, 2]
        nearest, furthest = np.minimum.reduceat(depth, starts), np.maximum.reduceat(depth, starts)
        ahead = seen.copy()
        np.maximum(ahead[:, 2], NEAR_M, out=ahead[:, 2])
        pixels = fixed_point(self._view.to_pixels(ahead) - (0, self._top))
        for number in np.flatnonzero((furthest > NEAR_M) & (nearest < _FAR_M)).tolist():
            start, end = int(starts[number]), int(ends[number])
            corners = pixels[start:end]
            if nearest[number] < NEAR_M:
                near = clip_near(seen[start:end])
                corners = fixed_point(self._view.to_pixels(near) - (0, self._top))
            cv2.fillConvexPoly(self._mask, corners, self._shares[number], cv2.LINE_8, SHIFT)
        self._patches, self._shares = [], []

    def darken(self, picture: np.ndarray) -> None:
        """Darken and haze the ground of a picture (H, W, 4) uint8; its class channel stays."""
        gain = cv2.blur(self._mask, (3, 3))
        ground = picture[self._top:]
        first = self._view.center[1] - self._top
        # Haze comes with the rows that are more than 12 m away.
        far = min(len(ground), int(first + self._view.focal * HEIGHT_M / 12) + 2)
        depth = self._view.focal * HEIGHT_M / np.maximum(np.arange(far) - first, 0.05)
        share = self._light.haze_share(depth)[:, None]
        gain[:far] = gain[:far] * (1 - share).astype(np.float32)
        cv2.multiply(ground, cv2.merge([gain, gain, gain, np.full_like(gain, 255)]), ground,
                     1 / 255)
        haze = np.zeros((far, picture.shape[1], 4), np.uint8)
        haze[..., :3] = (self._light.haze * share)[:, None]
        cv2.add(ground[:far], haze, ground[:far])

    def sun_shares(self, things: list[Thing]) -> list[float]:
        """How much of the sun reaches things, from the ground that they stand on: 0..1.

        Their own shadows must not have fallen yet.
        """
        if not self._light.sunlit or not things:
            return [1.0] * len(things)
        places = np.array([(thing.x, 0.0, thing.s) for thing in things])
        seen = self._view.to_camera(places)
        depth = seen[:, 2].copy()
        np.maximum(seen[:, 2], NEAR_M, out=seen[:, 2])
        columns, rows = np.rint(self._view.to_pixels(seen)).T
        height, width = self._mask.shape
        inside = (depth > 1.0) & (columns >= 0) & (columns < width)
        rows -= self._top
        inside &= (rows >= 0) & (rows < height)
        shares = np.ones(len(things))
        values = self._mask[rows[inside].astype(int), columns[inside].astype(int)]
        shares[inside] = np.where(values > 240, 1.0, 0.15)
        return shares.tolist()
