"""Turns of what is compared, so that all of it sees the same moods of the machine."""

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from tqdm import tqdm

# Threads of one engine's pool spin for a while after their work, and would slow down the next.
PAUSE_S = 0.005


class Subject(Protocol):
    """Something that can be timed again and again."""

    def run(self) -> Mapping[str, float]:
        """Do it once.

        :return: seconds by name of the stage, with the same stages each time.
        """


def interleave(subjects: Sequence[Subject], rounds: int,
               warm_up: int) -> list[dict[str, list[float]]]:
    """Time all subjects, once each a round; each round begins with another of them.

    :param rounds: that count.
    :param warm_up: rounds before those, which do not count.
    :return: for each subject, the seconds of each stage in each round.
    """
    times: list[dict[str, list[float]]] = [{} for _ in subjects]
    for number in tqdm(range(-warm_up, rounds), desc='measuring', unit='round', leave=False):
        for position in range(len(subjects)):
            index = (number + position) % len(subjects)
            time.sleep(PAUSE_S)
            for stage, seconds in subjects[index].run().items():
                if number >= 0:
                    times[index].setdefault(stage, []).append(seconds)
    return times
