"""Painter's algorithm: what is further away is drawn first.

All things of a kind are put into perspective in one go, which is what makes a frame fast; then
they are drawn one by one in the order of their distance.
"""

from collections.abc import Callable

import numpy as np

from seg_ros.drawn_scene.canvas import Canvas
from seg_ros.drawn_scene.cars import place_car
from seg_ros.drawn_scene.cutouts import CutoutBatch, Standing
from seg_ros.drawn_scene.figures import FigureBatch
from seg_ros.drawn_scene.furniture import place_lamp, place_lights, place_sign
from seg_ros.drawn_scene.planes import Plane, PlaneBatch
from seg_ros.drawn_scene.solids import SolidBatch
from seg_ros.drawn_scene.texture import Cutout
from seg_ros.drawn_scene.world import Thing, tree_height

_PLACE = {'car': place_car, 'lamp': place_lamp, 'lights': place_lights, 'sign': place_sign}


def draw_lots(canvas: Canvas, parts: list[Plane | Standing]) -> None:
    """Draw the parts of lots in the order given."""
    planes = [part for part in parts if isinstance(part, Plane)]
    standing = [part for part in parts if isinstance(part, Standing)]
    plane_batch, cutout_batch = PlaneBatch(canvas, planes), CutoutBatch(canvas, standing)
    plane = cutout = 0
    for part in parts:
        if isinstance(part, Plane):
            plane_batch.draw(plane)
            plane += 1
        else:
            cutout_batch.draw(cutout)
            cutout += 1


def draw_things(canvas: Canvas, things: list[Thing], sun_shares: list[float],
                trees: list[Cutout], time_s: float) -> None:
    """Draw what stands and moves on the street, the furthest first.

    :param sun_shares: how much of the sun reaches each thing, 0..1.
    :param trees: what street trees look like.
    :param time_s: seconds; it moves limbs.
    """
    view = canvas.view
    places = np.array([(thing.x - view.x, thing.s - view.s) for thing in things]).reshape(-1, 2)
    depths = places @ (np.sin(view.yaw), np.cos(view.yaw))
    # What is this far to the side is out of sight even if it is 6 m long.
    reach = 0.55 * canvas.image.shape[1] / view.focal
    seen = (depths > -3.0) & (np.abs(places[:, 0]) < reach * depths + 5.0)
    order = [number for number in np.argsort(-depths, kind='stable').tolist() if seen[number]]

    draw: dict[int, tuple[Callable[[int], None], int]] = {}
    for kinds in (tuple(_PLACE), ('tree',), ('pedestrian',), ('cyclist',)):
        numbers = [number for number in order if things[number].kind in kinds]
        if numbers:
            some = [things[number] for number in numbers]
            batch = _batch(canvas, some, [sun_shares[number] for number in numbers], trees,
                           time_s)
            draw.update({number: (batch.draw, place) for place, number in enumerate(numbers)})
    for number in order:
        draw_one, place = draw[number]
        draw_one(place)


def _batch(canvas: Canvas, things: list[Thing], sun_shares: list[float], trees: list[Cutout],
           time_s: float) -> SolidBatch | CutoutBatch | FigureBatch:
    kind = things[0].kind
    if kind == 'tree':
        return CutoutBatch(canvas, [
            Standing(trees[int(thing.look[1] * len(trees))], thing.x, thing.s,
                     (tree_height(thing) * 0.8, tree_height(thing))) for thing in things])
    if kind in ('pedestrian', 'cyclist'):
        return FigureBatch(canvas, things, sun_shares, time_s)
    return SolidBatch(canvas, [_PLACE[thing.kind](thing, share)
                               for thing, share in zip(things, sun_shares, strict=True)])
