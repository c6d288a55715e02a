"""Textures: pictures with a class, at several sizes, faded by haze."""

import cv2
import numpy as np

from seg_ros.drawn_scene.light import Light

_HAZE_STEPS = 40


def pyramid(picture: np.ndarray) -> list[np.ndarray]:
    """The picture at its size, half of it, a quarter ...: for things further away."""
    sizes = [picture]
    while len(sizes) < 6 and min(sizes[-1].shape[:2]) >= 8:
        height, width = sizes[-1].shape[:2]
        sizes.append(cv2.resize(sizes[-1], (width // 2, height // 2),
                                interpolation=cv2.INTER_AREA))
    return sizes


class Texture:
    """A picture of one class that lies on something.

    :param picture: (h, w, 4) uint8, RGB and class id.
    :param light: whose haze fades it.
    """

    def __init__(self, picture: np.ndarray, light: Light) -> None:
        self._light = light
        self._sizes = pyramid(picture)
        self._rows = [size.shape[0] for size in self._sizes]
        self._hazed: dict[tuple[int, int], np.ndarray] = {}
        self._edge = [*picture[..., :3].mean((0, 1)).tolist(), int(picture[0, 0, 3])]

    @property
    def edge(self) -> list[float]:
        """What lies around the picture: its mean colour and its class."""
        return self._edge

    def level(self, length_px: float) -> int:
        """Number of the smallest size with about ``length_px`` rows."""
        for number in range(len(self._rows) - 1, 0, -1):
            if self._rows[number] >= 0.8 * length_px:
                return number
        return 0

    def at(self, level: int, depth: float) -> np.ndarray:
        """The picture of a level as seen from ``depth`` metres away, (h, w, 4) uint8."""
        # The haze comes in steps, so that few pictures are kept and each is made once.
        step = round(_HAZE_STEPS * float(self._light.haze_share(np.array(depth))))
        if step == 0:
            return self._sizes[level]
        if (level, step) not in self._hazed:
            share = step / _HAZE_STEPS
            gain = np.diag([1 - share] * 3 + [1.0])  # the class does not fade
            offset = np.append(self._light.haze * share, 0.0)
            self._hazed[level, step] = cv2.transform(self._sizes[level], np.c_[gain, offset])
        return self._hazed[level, step]


class Cutout:
    """A flat thing with a ragged outline that always faces the camera.

    :param texture: its colours and class, also beyond the outline.
    :param mask: (h, w) uint8, 255 where it is solid and 0 elsewhere.
    """

    def __init__(self, texture: Texture, mask: np.ndarray) -> None:
        self.texture = texture
        self.masks = pyramid(mask)
