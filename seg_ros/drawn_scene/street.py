"""The measures and the character of a street."""

from dataclasses import dataclass

import numpy as np

LOT_M = 14.0
"""Length of street that one lot takes on its side."""

STYLES = 6
"""How many kinds of facade a street has."""


@dataclass(frozen=True)
class Street:
    """Measures in metres, right positive, the middle of the road at 0; traffic keeps left.

    :param lane: width of a lane.
    :param kerbs: x of the left and right kerb.
    :param fronts: x of the left and right end of the pavement, where lots begin.
    :param parking: whether cars park on the left and right.
    :param built: share of lots with a building.
    :param greenery: share of places for a street tree that have one.
    :param people: how busy it is, about 0.7 to 1.3.
    """

    lane: float
    kerbs: tuple[float, float]
    fronts: tuple[float, float]
    parking: tuple[bool, bool]
    built: float
    greenery: float
    people: float


def street_of(rng: np.random.Generator) -> Street:
    """Draw the measures of a street."""
    lane = rng.uniform(2.9, 3.5)
    parking = (bool(rng.random() < 0.6), bool(rng.random() < 0.75))
    kerbs = [lane + (2.15 if parked else rng.uniform(0.3, 0.9)) for parked in parking]
    fronts = [kerb + rng.uniform(2.2, 3.6) for kerb in kerbs]
    return Street(lane, (-kerbs[0], kerbs[1]), (-fronts[0], fronts[1]), parking,
                  rng.uniform(0.62, 0.85), rng.uniform(0.25, 0.6), rng.uniform(0.8, 1.3))
