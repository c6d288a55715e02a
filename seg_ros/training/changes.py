"""What has changed between the checkpoint of a run and its going on, for the user."""

from collections.abc import Iterator, Mapping
from typing import Any

from seg_ros.training.dataset import DataFolder


def changes_of_recipe(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Name the keys with other values; more epochs are what one goes on for.

    :param was: the recipe as plain values, with every default.
    :param now: likewise.
    """
    keys = [key for key in now if was.get(key) != now[key] and key != 'epochs']
    if keys:
        yield f'the recipe has changed since the run began: {", ".join(keys)}'


def changes_of_pictures(was: Mapping[str, Any] | None, now: DataFolder) -> Iterator[str]:
    """Say so if other pictures are trained on.

    :param was: what :func:`pictures_as_values` gave; None in older checkpoints.
    """
    values = pictures_as_values(now)
    if was and was != values:
        others = ' of other names' if was['count'] == values['count'] else ''
        yield ('the pictures have changed since the run began: there were '
               f'{was["count"]}, now there are {values["count"]}{others}')


def pictures_as_values(pictures: DataFolder) -> dict[str, Any]:
    """What a checkpoint keeps of the pictures that it was trained on."""
    return {'count': len(pictures), 'names': pictures.digest_of_names()}
