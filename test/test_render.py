"""Pictures of label images, compared to arithmetic."""

import numpy as np
import pytest

from seg_ros.labels import CAMVID
from seg_ros.render import colorize, draw_overlay

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
