"""Pictures of label images, compared to arithmetic."""

import numpy as np
import pytest

from seg_ros.labels import CAMVID, CITYSCAPES, LabelSet
from seg_ros.render import colorize, draw_legend, draw_overlay

PALETTE = CAMVID.palette


@pytest.fixture
def labels() -> np.ndarray:
    return np.random.default_rng(0).choice([*range(11), 77, 255], (37, 53)).astype(np.uint8)


@pytest.fixture
def rgb() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (37, 53, 3), np.uint8)


def test_each_pixel_gets_the_colour_of_its_class():
    colors = colorize(np.array([[0, 3, 10], [255, 77, 4]], np.uint8), PALETTE)
    assert colors.tolist() == [[[128, 128, 128], [128, 64, 128], [0, 128, 192]],
                               [[0, 0, 0], [0, 0, 0], [60, 40, 222]]]


def test_colours_of_a_large_picture_follow_the_palette(labels):
    palette = np.random.default_rng(2).integers(0, 256, (256, 3), np.uint8)
    assert np.array_equal(colorize(labels, palette), palette[labels])
    assert np.array_equal(colorize(labels[::2, 1::3], palette), palette[labels[::2, 1::3]])


@pytest.mark.parametrize('alpha', [0.25, 0.5, 0.8])
def test_overlay_mixes_picture_and_colour(rgb, labels, alpha):
    mixed = (1 - alpha) * rgb + alpha * PALETTE[labels].astype(float)
    expected = np.where((labels == 255)[..., None], rgb, mixed)
    overlay = draw_overlay(rgb, labels, PALETTE, alpha)
    assert overlay.dtype == np.uint8 and overlay.shape == rgb.shape
    assert np.abs(overlay - expected).max() <= 0.51  # rounded to the nearest


def test_overlay_reaches_from_the_picture_to_the_colours(rgb, labels):
    assert np.array_equal(draw_overlay(rgb, labels, PALETTE, 0.0), rgb)
    full = draw_overlay(rgb, labels, PALETTE, 1.0)
    known = labels != 255
    assert np.array_equal(full[known], PALETTE[labels[known]])
    assert np.array_equal(full[~known], rgb[~known])


def test_inputs_are_not_changed(rgb, labels):
    before = rgb.copy(), labels.copy(), PALETTE.copy()
    overlay = draw_overlay(rgb, labels, PALETTE, 0.5)
    overlay[:] = 0
    assert np.array_equal(rgb, before[0]) and np.array_equal(labels, before[1])
    assert np.array_equal(PALETTE, before[2])


@pytest.mark.parametrize('size', [(1, 1), (1, 4), (4, 1), (2, 3)])
def test_small_pictures_are_no_special_case(size):
    labels = np.arange(size[0] * size[1], dtype=np.uint8).reshape(size)
    labels[-1, -1] = 255
    rgb = np.full((*size, 3), 10, np.uint8)
    overlay = draw_overlay(rgb, labels, PALETTE, 1.0)
    expected = PALETTE[labels]
    expected[-1, -1] = 10
    assert np.array_equal(overlay, expected)


def test_read_only_and_sliced_arrays_are_taken(rgb, labels):
    rgb.flags.writeable = labels.flags.writeable = False
    overlay = draw_overlay(rgb[:, 5:30], labels[:, 5:30], PALETTE, 0.5)
    assert np.array_equal(overlay, draw_overlay(rgb, labels, PALETTE, 0.5)[:, 5:30])


@pytest.mark.parametrize(('labels', 'size'), [
    (CAMVID, (480, 640)), (CAMVID, (240, 320)), (CITYSCAPES, (1080, 1920)),
    (CITYSCAPES, (150, 640))])
def test_legend_shows_every_class_below_or_beside_the_one_before(labels, size):
    picture = np.full((*size, 3), 1, np.uint8)  # of no class
    draw_legend(picture, labels)
    before = (0.0, 0.0)
    for color in labels.colors:
        rows, columns = np.nonzero((picture == color).all(2))
        assert len(rows) >= 30
        center = columns.mean(), rows.mean()
        assert center[1] > before[1] or center[0] > before[0]
        before = center
    assert (picture[:, size[1] // 2:] == 1).all(), 'it stays in its corner'


def test_legend_leaves_the_rest_of_the_picture_alone_and_darkens_what_is_under_it():
    picture = np.full((480, 640, 3), 240, np.uint8)
    draw_legend(picture, CAMVID)
    changed = (picture != 240).any(2)
    rows, columns = np.nonzero(changed)
    box = changed[rows.min():rows.max() + 1, columns.min():columns.max() + 1]
    assert box.mean() > 0.99  # the grey of a letter's edge may be that of the picture
    assert len(rows) < 0.15 * changed.size
    assert (picture[changed] == 80).all(1).mean() > 0.4  # a third


@pytest.mark.parametrize('size', [(1, 1), (1, 640), (640, 1), (20, 20), (30, 2000), (32, 64)])
def test_classes_for_which_there_is_no_room_are_left_out(size):
    many = LabelSet(tuple(f'class number {n}' for n in range(255)), ((9, 9, 9),) * 255)
    for labels in (CAMVID, many):
        draw_legend(np.zeros((*size, 3), np.uint8), labels)
