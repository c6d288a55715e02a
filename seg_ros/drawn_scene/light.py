"""The light of a scene: sun, sky and haze."""

from dataclasses import dataclass

import cv2
import numpy as np


@dataclass(frozen=True)
class Light:
    """Colours are (3,) float RGB; factors of 1 leave a colour as it is.

    :param ambient: factor of the light that comes from all sides.
    :param sun: factor of the light that a face turned to the sun receives on top.
    :param to_sun: unit vector towards the sun (right, up, forward).
    :param haze: colour, 0..255, that things far away fade to.
    :param haze_m: distance in metres at which 63 % has faded.
    :param zenith: colour of the sky overhead, 0..255.
    :param horizon: colour of the sky above the horizon, 0..255.
    :param clouds: share of the sky that clouds cover, 0..1.
    """

    ambient: np.ndarray
    sun: np.ndarray
    to_sun: np.ndarray
    haze: np.ndarray
    haze_m: float
    zenith: np.ndarray
    horizon: np.ndarray
    clouds: float

    @property
    def sunlit(self) -> bool:
        """Whether things cast a sharp shadow."""
        return float(self.sun.max()) > 0.2

    def factor(self, normal: tuple[float, float, float], sun_share: float = 1.0) -> np.ndarray:
        """Light on a face: (3,) float factors of its colour.

        :param normal: unit vector (right, up, forward) that the face looks to.
        :param sun_share: how much of the sun reaches it, 0 (in shadow) to 1.
        """
        toward = max(0.0, float(np.dot(normal, self.to_sun)))
        return self.ambient + self.sun * (toward * sun_share)

    def on(self, picture: np.ndarray, normal: tuple[float, float, float]) -> np.ndarray:
        """A texture (H, W, 4) uint8 as the light falls on a face that looks to ``normal``."""
        gain = np.diag(np.append(self.factor(normal), 1.0))  # the class stays
        return cv2.transform(picture, gain)

    def haze_share(self, depth: np.ndarray) -> np.ndarray:
        """How much of the colours at depths in metres has faded to the haze, 0..1 each."""
        return 1.0 - np.exp(-np.maximum(depth, 0.0) / self.haze_m)

    @property
    def ground_shadow(self) -> float:
        """Brightness of ground in shadow relative to ground in the open, 0..1."""
        lit = self.factor((0.0, 1.0, 0.0))
        return float((self.ambient / lit).mean())


def light_of(rng: np.random.Generator) -> Light:
    """Draw the weather and the time of day."""
    mood = rng.choice(3, p=(0.55, 0.27, 0.18))
    elevation = np.deg2rad(rng.uniform(32, 58) if mood == 0 else rng.uniform(22, 34))
    # Mostly along the street: a sun straight from the side would shade the street as a whole.
    azimuth = np.deg2rad(rng.uniform(12, 55)) * rng.choice((-1, 1))
    forward = np.cos(azimuth) * rng.choice((-1, 1))
    to_sun = np.array([np.sin(azimuth) * np.cos(elevation), np.sin(elevation),
                       forward * np.cos(elevation)])
    exposure = rng.uniform(0.9, 1.12)
    if mood == 0:    # sunny
        values = ((0.46, 0.50, 0.56), (0.72, 0.67, 0.58), (205, 217, 230), 320.0,
                  (82, 132, 205), (196, 216, 236), rng.uniform(0.1, 0.5))
    elif mood == 1:  # overcast
        values = ((0.86, 0.87, 0.89), (0.08, 0.08, 0.08), (208, 211, 214), 210.0,
                  (176, 183, 192), (226, 228, 230), rng.uniform(0.5, 0.9))
    else:            # dusk
        values = ((0.44, 0.43, 0.50), (0.52, 0.36, 0.22), (222, 188, 160), 260.0,
                  (96, 112, 160), (246, 204, 160), rng.uniform(0.2, 0.6))
    ambient, sun, haze, haze_m, zenith, horizon, clouds = values
    return Light(np.array(ambient) * exposure, np.array(sun) * exposure, to_sun,
                 np.array(haze, float), haze_m, np.array(zenith, float),
                 np.array(horizon, float), float(clouds))
