"""Label sets: what they accept, refuse, and give."""

import dataclasses

import numpy as np
import pytest

from seg_ros.errors import ConfigError
from seg_ros.labels import CAMVID, UNKNOWN, LabelSet

RED, BLUE = (255, 0, 0), (0, 0, 255)


def test_ids_count_up_from_zero_where_none_are_given():
    labels = LabelSet(('road', 'sky'), (RED, BLUE))
    assert labels.ids == (0, 1)
    assert len(labels) == 2


def test_palette_gives_each_id_its_colour_and_black_to_all_others():
    palette = LabelSet(('road', 'sky'), (RED, BLUE), (7, 254)).palette
    assert palette.shape == (256, 3) and palette.dtype == np.uint8
    assert palette[7].tolist() == [255, 0, 0]
    assert palette[254].tolist() == [0, 0, 255]
    assert palette.sum() == 2 * 255


def test_labels_survive_the_way_through_plain_lists():
    labels = LabelSet(('road', 'sky'), (RED, BLUE), (3, 1))
    assert LabelSet.from_dict(labels.to_dict()) == labels
    assert labels.to_dict() == {'names': ['road', 'sky'], 'ids': [3, 1],
                                'colors': [[255, 0, 0], [0, 0, 255]]}


def test_labels_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CAMVID.ids = ()  # type: ignore[misc]


def test_camvid_has_its_eleven_classes_in_order():
    assert CAMVID.names[:4] == ('Sky', 'Building', 'Pole', 'Road')
    assert CAMVID.ids == tuple(range(11))
    assert CAMVID.colors[CAMVID.names.index('Car')] == (64, 0, 128)


def test_as_many_classes_as_there_are_ids_but_unknown():
    names = tuple(f'class {i}' for i in range(UNKNOWN))
    assert len(LabelSet(names, (RED,) * UNKNOWN)) == 255
    with pytest.raises(ConfigError, match='256 classes: expected 2 to 255'):
        LabelSet((*names, 'one more'), (RED,) * 256)


@pytest.mark.parametrize(('names', 'colors', 'ids', 'said'), [
    (('road',), (RED,), (), '1 classes: expected 2 to 255'),
    ((), (), (), '0 classes'),
    (('a', 'b'), (RED,), (), '2 class names, 1 colours and 2 ids'),
    (('a', 'b'), (RED, BLUE), (1,), '2 class names, 2 colours and 1 ids'),
    (('a', ''), (RED, BLUE), (), 'non-empty text'),
    (('a', 5), (RED, BLUE), (), 'non-empty text'),
    (('a', 'a'), (RED, BLUE), (), 'class names .* occur once'),
    (('a', 'b'), (RED, BLUE), (4, 4), 'class ids .* occur once'),
    (('a', 'b'), (RED, BLUE), (0, 255), 'class id 255: expected a whole number from 0 to 254'),
    (('a', 'b'), (RED, BLUE), (-1, 0), 'class id -1'),
    (('a', 'b'), (RED, BLUE), (0, 1.0), 'class id 1.0'),
    (('a', 'b'), (RED, BLUE), (0, True), 'class id True'),
    (('a', 'b'), (RED, (0, 0)), (), r'class colour \(0, 0\): expected three numbers'),
    (('a', 'b'), (RED, (0, 0, 256)), (), 'class colour'),
    (('a', 'b'), (RED, (0, 0, -1)), (), 'class colour'),
    (('a', 'b'), (RED, (0, 0, 1.5)), (), 'class colour'),
])
def test_classes_that_do_not_fit_together_are_refused(names, colors, ids, said):
    with pytest.raises(ConfigError, match=said):
        LabelSet(names, colors, ids)


@pytest.mark.parametrize('values', [
    None, 5, 'names', [1, 2], {}, {'names': ['a', 'b']}, {'colors': [RED, BLUE]},
    {'names': 'ab', 'colors': [RED, BLUE]},  # a text is no list of names
    {'names': {'a': 1, 'b': 2}, 'colors': [RED, BLUE]},
    {'names': ['a', 'b'], 'colors': [1, 2]},
    {'names': ['a', 'b'], 'colors': 'red'},
    {'names': ['a', 'b'], 'colors': ['red', 'blu']},
    {'names': ['a', 'b'], 'colors': [RED, BLUE], 'ids': None},
    {'names': ['a', 'b'], 'colors': [RED, BLUE], 'ids': [[0], [1]]},
    {'names': [['a'], ['b']], 'colors': [RED, BLUE]},
])
def test_what_is_no_description_of_classes_is_refused(values):
    with pytest.raises(ConfigError):
        LabelSet.from_dict(values)
