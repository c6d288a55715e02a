"""Class ids, names and colours."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from seg_ros.errors import ConfigError

UNKNOWN = 255
"""Id of a pixel whose class is not known: never a class of its own, void in training."""


@dataclass(frozen=True)
class LabelSet:
    """The classes that a network tells apart, in the order of its output channels.

    :param names: one non-empty, unique name per class.
    :param colors: one (red, green, blue) per class, each 0..255.
    :param ids: the class id published for each channel, 0..254, unique; default 0, 1, 2, ...
    :raises ConfigError: the three do not describe the same classes.
    """

    names: tuple[str, ...]
    colors: tuple[tuple[int, int, int], ...]
    ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.ids:
            object.__setattr__(self, 'ids', tuple(range(len(self.names))))
        if not 2 <= len(self.names) <= UNKNOWN:
            raise ConfigError(f'{len(self.names)} classes: expected 2 to {UNKNOWN}')
        if not len(self.names) == len(self.colors) == len(self.ids):
            raise ConfigError(f'{len(self.names)} class names, {len(self.colors)} colours and '
                              f'{len(self.ids)} ids: give one of each per class')
        if not all(isinstance(name, str) and name for name in self.names):
            raise ConfigError(f'class names {self.names!r}: each must be non-empty text')
        for what, values in (('name', self.names), ('id', self.ids)):
            if len(set(values)) != len(values):
                raise ConfigError(f'class {what}s {list(values)}: each must occur once')
        for id_ in self.ids:
            if type(id_) is not int or not 0 <= id_ < UNKNOWN:
                raise ConfigError(f'class id {id_!r}: expected a whole number from 0 to 254')
        for color in self.colors:
            if len(color) != 3 or any(type(c) is not int or not 0 <= c <= 255 for c in color):
                raise ConfigError(f'class colour {color!r}: expected three numbers, 0 to 255')

    def __len__(self) -> int:
        return len(self.names)

    @property
    def palette(self) -> np.ndarray:
        """Colour of each possible id: (256, 3) uint8 RGB; ids without a class are black."""
        palette = np.zeros((256, 3), np.uint8)
        palette[list(self.ids)] = self.colors
        return palette

    @property
    def index_of_id(self) -> np.ndarray:
        """Place in the list of classes of each possible id: (256,) uint8; 255 without a class."""
        index_of_id = np.full(256, UNKNOWN, np.uint8)
        index_of_id[list(self.ids)] = np.arange(len(self))
        return index_of_id

    def to_dict(self) -> dict[str, list]:
        """Plain lists for JSON and YAML; ``from_dict`` reads them back."""
        return {'names': list(self.names), 'colors': [list(color) for color in self.colors],
                'ids': list(self.ids)}

    @classmethod
    def from_dict(cls, values: Mapping) -> 'LabelSet':
        """Read what ``to_dict`` wrote.

        :raises ConfigError: a key is missing or a value is not a list.
        """
        try:
            lists = values['names'], values['colors'], values.get('ids', [])
            if not all(isinstance(value, list | tuple) for value in lists):
                raise TypeError('not a list')  # text would be taken apart into letters
            names, colors, ids = lists
            return cls(tuple(names), tuple(tuple(color) for color in colors), tuple(ids))
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigError('classes: expected lists "names", "colors" and, if wanted, "ids", '
                              f'got {values!r}') from error


CAMVID = LabelSet(
    names=('Sky', 'Building', 'Pole', 'Road', 'Pavement', 'Tree', 'SignSymbol', 'Fence', 'Car',
           'Pedestrian', 'Bicyclist'),
    colors=((128, 128, 128), (128, 0, 0), (192, 192, 128), (128, 64, 128), (60, 40, 222),
            (128, 128, 0), (192, 128, 128), (64, 64, 128), (64, 0, 128), (64, 64, 0),
            (0, 128, 192)))
"""The eleven classes of CamVid in their usual order and colours."""

CITYSCAPES = LabelSet(
    names=('road', 'sidewalk', 'building', 'wall', 'fence', 'pole', 'traffic light',
           'traffic sign', 'vegetation', 'terrain', 'sky', 'person', 'rider', 'car', 'truck',
           'bus', 'train', 'motorcycle', 'bicycle'),
    colors=((128, 64, 128), (244, 35, 232), (70, 70, 70), (102, 102, 156), (190, 153, 153),
            (153, 153, 153), (250, 170, 30), (220, 220, 0), (107, 142, 35), (152, 251, 152),
            (70, 130, 180), (220, 20, 60), (255, 0, 0), (0, 0, 142), (0, 0, 70), (0, 60, 100),
            (0, 80, 100), (0, 0, 230), (119, 11, 32)))
"""The nineteen evaluated classes of Cityscapes: train ids 0 to 18, in their usual colours."""
