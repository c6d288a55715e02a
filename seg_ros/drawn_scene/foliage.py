"""Cut-outs of trees."""

import cv2
import numpy as np

from seg_ros.drawn_scene.classes import TREE
from seg_ros.drawn_scene.light import Light
from seg_ros.drawn_scene.noise import cloudy, grain, textured, with_class
from seg_ros.drawn_scene.texture import Cutout, Texture

_HEIGHT, _WIDTH = 320, 256
_LEAVES = ((74, 104, 48), (96, 116, 52), (58, 88, 50), (112, 118, 60))


def tree(rng: np.random.Generator, light: Light) -> Cutout:
    """A tree with a trunk below and a crown above, as tall as the texture."""
    rows, columns = np.ogrid[0:_HEIGHT, 0:_WIDTH]
    sun_x, sun_y = float(light.to_sun[0]), float(light.to_sun[1])
    depth = np.full((_HEIGHT, _WIDTH), -1.0, np.float32)
    shade = np.zeros((_HEIGHT, _WIDTH), np.float32)
    for _ in range(26):  # clumps of leaves around the middle of the crown
        angle, reach = rng.uniform(0, 2 * np.pi), 78 * np.sqrt(rng.random())
        x, y = _WIDTH / 2 + reach * np.cos(angle), 120 + reach * np.sin(angle)
        radius = rng.uniform(24, 44)
        part = (slice(max(0, int(y - radius)), int(y + radius) + 1),
                slice(max(0, int(x - radius)), int(x + radius) + 1))
        across = ((columns[:, part[1]] - x) / radius).astype(np.float32)
        up = ((y - rows[part[0]]) / radius).astype(np.float32)
        bulge = 1 - across ** 2 - up ** 2
        front = bulge > np.maximum(depth[part], 0)
        depth[part] = np.where(front, bulge, depth[part])
        shade[part] = np.where(front, 0.5 * (across * sun_x + up * sun_y), shade[part])
    ragged = 0.16 * cloudy(rng, _HEIGHT, _WIDTH, (3, 5, 9))
    crown = depth + ragged > 0.12
    leaves = 0.95 + shade + 0.17 * cloudy(rng, _HEIGHT, _WIDTH, (2, 4, 8))
    leaves *= 1.08 - 0.35 * np.clip((rows - 60) / 160, 0, 1)  # darker below
    leaves *= np.where(grain(rng, _HEIGHT, _WIDTH) < -1.5, 0.55, 1)  # gaps
    color = np.array(_LEAVES[rng.integers(len(_LEAVES))], np.float32) * rng.uniform(0.85, 1.2)
    lit = light.factor((0.0, 0.7, -0.7))
    picture = textured(color * lit, np.clip(leaves, 0.25, 1.7).astype(np.float32))

    trunk = np.zeros((_HEIGHT, _WIDTH), np.uint8)
    middle = _WIDTH // 2
    cv2.fillPoly(trunk, [np.array([(middle - 9, _HEIGHT), (middle - 5, 120), (middle + 5, 120),
                                   (middle + 9, _HEIGHT)], np.int32)], 1)
    bark = (1 + 0.14 * cloudy(rng, _HEIGHT, _WIDTH, (3, 7))
            + 0.035 * (columns - middle) * np.sign(sun_x))
    bare = (trunk > 0) & ~crown
    picture[bare] = bark[bare][:, None] * (np.array((92, 76, 60)) * lit)
    mask = np.where(crown | (trunk > 0), 255, 0).astype(np.uint8)
    return Cutout(Texture(with_class(picture, TREE), light), mask)
