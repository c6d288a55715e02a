"""Pedestrians and bicyclists."""

import cv2
import numpy as np

from seg_ros.drawn_scene import bodies
from seg_ros.drawn_scene.canvas import SHIFT, Canvas, fixed_point
from seg_ros.drawn_scene.classes import BICYCLIST, PEDESTRIAN
from seg_ros.drawn_scene.world import Thing

_NEAR_M = 1.0
_FINE_PX_M = 20.0  # pixels a metre below which hands and shoes are left out
_TURN = np.linspace(0, 2 * np.pi, 10, endpoint=False)
_RING = np.column_stack([np.cos(_TURN), -np.sin(_TURN)])
_CLOTHES = np.array([(40, 48, 72), (120, 30, 36), (196, 190, 178), (60, 84, 60), (34, 34, 38),
                     (178, 120, 50), (92, 110, 150), (150, 60, 96), (220, 210, 90)], float)
_TROUSERS = np.array([(44, 50, 70), (36, 36, 40), (96, 86, 70), (70, 76, 86)], float)
_SKIN = np.array([(226, 180, 150), (176, 126, 96), (112, 78, 60)], float)
_HAIR = np.array([(40, 30, 24), (96, 66, 40), (170, 140, 96), (120, 120, 122)], float)
_HELMET, _SHOES = (226.0, 60.0, 50.0), (34.0, 30.0, 28.0)
_TYRE = np.array((40.0, 40.0, 42.0))


class FigureBatch:
    """Figures of one kind put into perspective together, then drawn one by one.

    :param canvas: to draw on.
    :param things: at least one, all pedestrians or all cyclists.
    :param sun_shares: how much of the sun reaches each, 0..1.
    :param time_s: seconds; it moves their limbs.
    """

    def __init__(self, canvas: Canvas, things: list[Thing], sun_shares: list[float],
                 time_s: float) -> None:
        self._canvas = canvas
        self._wheels: np.ndarray | None = None
        cyclists = things[0].kind == 'cyclist'
        self._class_id = BICYCLIST if cyclists else PEDESTRIAN
        looks = np.array([thing.look for thing in things])
        places = np.array([(thing.x, 0.0, thing.s) for thing in things])[:, None]
        turns = np.array([(thing.heading, 1.0, thing.heading) for thing in things])[:, None]
        phase = 2 * np.pi * looks[:, 1]
        if cyclists:
            self._body = bodies.RIDER
            balls = bodies.riding(phase + 2 * np.pi * 1.1 * time_s)
            self._wheels = self._wheel_pixels(places, turns)
        else:
            self._body = bodies.WALKER
            pace = np.array([thing.speed for thing in things]) / 1.45
            balls = bodies.walking(phase + 2 * np.pi * pace * time_s,
                                   np.where(looks[:, 6] > 0.6, 0.62, 0.88))
            balls *= (0.92 + 0.16 * looks[:, 0])[:, None, None]
        view = canvas.view
        seen = view.to_camera(balls[..., :3] * turns + places)
        self._shown = seen[..., 2].min(1) > _NEAR_M
        np.maximum(seen[..., 2], _NEAR_M, out=seen[..., 2])
        radius = balls[..., 3] * (view.focal / seen[..., 2])
        rings = view.to_pixels(seen)[:, :, None] + _RING * radius[..., None, None]
        columns = rings[..., 0]
        self._shown &= (columns.max((1, 2)) > -1) & (columns.min((1, 2)) < canvas.image.shape[1])
        self._rings = fixed_point(rings)

        starts = np.concatenate([[0], self._body.ends[:-1]])
        depths = np.add.reduceat(seen[..., 2], starts, 1) / np.diff(np.append(
            starts, self._body.ends[-1]))
        self._depths = depths.mean(1)
        self._order = np.argsort(-depths, 1, kind='stable')
        self._starts = starts.tolist()
        self._scale = view.focal / self._depths
        self._inks = self._colored(looks, np.array(sun_shares), cyclists)

    def _colored(self, looks: np.ndarray, sun_shares: np.ndarray, cyclists: bool) -> np.ndarray:
        """Colours (P, parts, 3) of the parts, lit and hazed."""
        def pick(colors: np.ndarray, column: int) -> np.ndarray:
            return colors[(looks[:, column] * len(colors)).astype(int)]

        hair = pick(_HAIR, 5)
        if cyclists:
            hair = np.where(looks[:, 6:7] < 0.6, _HELMET, hair)
        palette = np.stack([pick(_CLOTHES, 2), pick(_TROUSERS, 3), pick(_SKIN, 4), hair,
                            np.tile(_SHOES, (len(looks), 1)), pick(_CLOTHES, 7) * .9 + 20], 1)
        light = self._canvas.light
        sun = 0.5 * max(0.0, float(light.to_sun @ (0.0, 0.25, -0.97))) + 0.5 * light.to_sun[1]
        factor = light.ambient + light.sun * (sun * sun_shares)[:, None]
        rgb = palette[:, self._body.colors] * self._body.gains[:, None] * factor[:, None]
        share = light.haze_share(self._depths)[:, None, None]
        return np.minimum(rgb, 255.0) * (1 - share) + light.haze * share

    def _wheel_pixels(self, places: np.ndarray, turns: np.ndarray) -> np.ndarray:
        """Rims (P, 2, N, 2) in fixed point."""
        turn = np.linspace(0, 2 * np.pi, 20, endpoint=False)
        rims = np.array([np.column_stack([np.zeros(20), .34 + .33 * np.sin(turn),
                                          axle + .33 * np.cos(turn)]) for axle in (-.52, .54)])
        view = self._canvas.view
        seen = view.to_camera(rims * turns[:, None] + places[:, None])
        np.maximum(seen[..., 2], _NEAR_M, out=seen[..., 2])
        return fixed_point(view.to_pixels(seen))

    def draw(self, number: int) -> None:
        """Draw the figure of this number, its furthest parts first."""
        if not self._shown[number]:
            return
        image, ends = self._canvas.image, self._body.ends
        scale = float(self._scale[number])
        if self._wheels is not None:
            light = self._canvas.light
            rgb = (_TYRE * light.ambient).tolist()
            thick = max(1, round(0.055 * scale))
            cv2.polylines(image, list(self._wheels[number]), True, (*rgb, self._class_id), thick,
                          cv2.LINE_8, SHIFT)
        fine, near = scale > _FINE_PX_M, scale > 36
        inks = self._inks[number]
        lit = np.minimum(inks * 1.15 + 3, 255).tolist()
        inks = inks.tolist()
        to_sun = self._canvas.light.to_sun[0]
        for part in self._order[number].tolist():
            if self._body.fine[part] and not fine:
                continue
            balls = self._rings[number, self._starts[part]:ends[part]]
            hull = cv2.convexHull(balls.reshape(-1, 2))
            cv2.fillConvexPoly(image, hull, (*inks[part], self._class_id), cv2.LINE_8, SHIFT)
            if near:  # the side towards the sun is brighter
                middle = hull.mean(0)
                width = hull[:, 0, 0].max() - middle[0, 0]
                inner = middle + (hull - middle) * (0.6, 0.85) + (np.sign(to_sun) * .3 * width, 0)
                cv2.fillConvexPoly(image, inner.astype(np.int32), (*lit[part], self._class_id),
                                   cv2.LINE_8, SHIFT)
