"""Random views: labels move with the picture, and what lies outside is void."""

import cv2
import numpy as np
import pytest

from seg_ros.errors import ConfigError
from seg_ros.training.augment import Augmentation
from seg_ros.training.dataset import Sample

PLAIN = {'brightness': 0.0, 'contrast': 0.0, 'saturation': 0.0}


def ramp(height: int = 64, width: int = 64) -> Sample:
    """Red tells the column, green the row, the label the column."""
    rows, columns = np.mgrid[:height, :width]
    return Sample(np.dstack([4 * columns, 4 * rows, 0 * rows]).astype(np.uint8),
                  columns.astype(np.uint8))


def views(augmentation: Augmentation, sample: Sample, count: int = 60):
    for seed in range(count):
        yield augmentation(sample, np.random.default_rng(seed))


def slope(view: Sample, channel: int, axis: int) -> float:
    """Change of a colour per pixel over the part of a view that lies inside the picture."""
    known = view.target != 255
    lines = np.where(known.any(axis=1 - axis))[0][1:-1]  # the rim is mixed with grey
    middle = np.where(known.any(axis=axis))[0]
    middle = middle[len(middle) // 2]
    values = np.take(np.take(view.rgb[..., channel].astype(float), middle, axis=1 - axis), lines)
    return (values[-1] - values[0]) / (lines[-1] - lines[0])


def test_labels_move_with_the_picture_to_half_a_pixel():
    augmentation = Augmentation(crop=(64, 96), scale=(0.5, 3.0), **PLAIN)
    checked = 0
    for view in views(augmentation, ramp()):
        # Not the rim: it is mixed with grey, for half a pixel of the picture.
        inside = cv2.erode(np.uint8(view.target != 255), np.ones((5, 5), np.uint8),
                           borderType=cv2.BORDER_CONSTANT, borderValue=0) > 0
        column = view.rgb[..., 0][inside] / 4
        # Nearest takes the closest column; 0.1 for the rounding of colour and coordinates.
        assert np.abs(column - view.target[inside]).max() <= 0.5 + 0.125 + 0.1
        checked += int(inside.sum())
    assert checked > 60 * 64 * 96 / 4


def test_blocks_keep_their_label_and_colour():
    ids = np.random.default_rng(0).integers(0, 11, (6, 6)).repeat(16, axis=0).repeat(16, axis=1)
    colors = np.stack([20 * ids + 10, 255 - 20 * ids, 7 * ids], axis=-1).astype(np.uint8)
    checked = 0
    for view in views(Augmentation(crop=(64, 64), scale=(0.5, 2.0), **PLAIN),
                      Sample(colors, ids.astype(np.uint8))):
        same = np.ones((60, 60), bool)  # all labels within two pixels are equal
        for row in range(5):
            for column in range(5):
                same &= view.target[row:row + 60, column:column + 60] == view.target[2:-2, 2:-2]
        label = view.target[2:-2, 2:-2][same].astype(int)
        expected = np.stack([20 * label + 10, 255 - 20 * label, 7 * label], axis=-1)
        expected[label == 255] = 128
        assert np.array_equal(view.rgb[2:-2, 2:-2][same], expected)
        checked += int(same.sum())
    assert checked > 60 * 60 * 60 / 3


def test_scale_stays_in_its_bounds_and_fills_them():
    scales = []
    for view in views(Augmentation(crop=(64, 64), scale=(0.5, 2.0), **PLAIN), ramp()):
        across, down = 4 / abs(slope(view, 0, 1)), 4 / slope(view, 1, 0)
        assert across == pytest.approx(down, rel=0.08)  # the aspect ratio is kept
        scales.append(across)
    assert 0.47 < min(scales) < 0.6 and 1.7 < max(scales) < 2.1
    assert 0.3 < np.mean(np.array(scales) < 1) < 0.7  # halving is as frequent as doubling


def test_half_of_the_views_are_mirrored():
    slopes = [slope(view, 0, 1) for view in
              views(Augmentation(crop=(64, 64), scale=(1.0, 1.0), **PLAIN), ramp(96, 60))]
    assert 20 < sum(s < 0 for s in slopes) < 40


def test_crop_lies_inside_where_the_picture_is_larger_and_anywhere_in_it():
    sample = ramp(60, 60)
    corners = []
    for view in views(Augmentation(crop=(32, 40), scale=(1.0, 1.0), **PLAIN), sample):
        assert not (view.target == 255).any()
        corners.append((view.rgb[..., 1].min() / 4, view.target.min()))
    assert min(top for top, _ in corners) <= 3 and max(top for top, _ in corners) >= 25
    assert min(left for _, left in corners) <= 3 and max(left for _, left in corners) >= 17


def test_what_lies_outside_is_grey_and_void():
    sample = ramp(40, 40)
    for view in views(Augmentation(crop=(64, 96), scale=(1.0, 1.0), **PLAIN), sample, 10):
        void = view.target == 255
        assert void.sum() >= 64 * 96 - 41 * 41
        assert (void.sum(axis=1) < 96).sum() in (39, 40, 41)  # the whole picture is in the view
        assert np.mean(view.rgb[void] == 128) > 0.95  # but for the rim


def test_void_of_the_labels_stays_void():
    sample = Sample(np.zeros((64, 64, 3), np.uint8), np.full((64, 64), 255, np.uint8))
    view = Augmentation(crop=(32, 32))(sample, np.random.default_rng(0))
    assert (view.target == 255).all()


def test_view_is_a_matter_of_its_random_numbers_alone():
    augmentation = Augmentation(crop=(32, 48))
    one, same, other = (augmentation(ramp(), np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one.rgb, same.rgb) and np.array_equal(one.target, same.target)
    assert not np.array_equal(one.rgb, other.rgb)
    assert one.rgb.shape == (32, 48, 3) and one.target.shape == (32, 48)
    assert one.rgb.dtype == one.target.dtype == np.uint8
    assert one.rgb.flags.c_contiguous and one.target.flags.c_contiguous


def test_original_is_not_changed():
    sample = ramp()
    Augmentation(crop=(32, 32))(sample, np.random.default_rng(0))
    assert np.array_equal(sample.rgb, ramp().rgb) and np.array_equal(sample.target, ramp().target)


def flat(red: int, green: int, blue: int) -> Sample:
    rgb = np.full((64, 64, 3), (red, green, blue), np.uint8)
    return Sample(rgb, np.zeros((64, 64), np.uint8))


def colors(augmentation: Augmentation, sample: Sample) -> np.ndarray:
    """(views, 3): colour in the middle of views of a picture of one colour."""
    return np.array([view.rgb[16, 16] for view in views(augmentation, sample)], float)


def test_brightness_multiplies_within_its_bounds():
    seen = colors(Augmentation((32, 32), (1.0, 1.0), 0.5, 0.0, 0.0), flat(100, 50, 20))
    factor = seen[:, 0] / 100
    assert 0.49 < factor.min() < 0.6 and 1.4 < factor.max() < 1.51
    assert np.abs(seen - factor[:, None] * (100, 50, 20)).max() <= 1


def test_saturation_moves_towards_and_away_from_grey():
    # Grey value 0.299 * 100 + 0.587 * 50 + 0.114 * 20 = 61.53.
    seen = colors(Augmentation((32, 32), (1.0, 1.0), 0.0, 0.0, 0.5), flat(100, 50, 20))
    factor = (seen[:, 0] - 61.53) / (100 - 61.53)
    assert 0.48 < factor.min() < 0.6 and 1.4 < factor.max() < 1.52
    assert np.abs(seen[:, 2] - (61.53 + factor * (20 - 61.53))).max() <= 1.1


def test_contrast_keeps_the_mean():
    sample = flat(100, 100, 100)
    sample.rgb[:, ::2] = 60
    for view in views(Augmentation((64, 64), (1.0, 1.0), 0.0, 0.5, 0.0), sample, 20):
        low, high = int(view.rgb.min()), int(view.rgb.max())
        assert (low + high) / 2 == pytest.approx(80, abs=1)
        assert 19 <= high - low <= 61


@pytest.mark.parametrize(('values', 'said'), [
    ({'crop': (100, 96)}, 'crop height 100 must be a multiple of 8'),
    ({'crop': (96, 24)}, 'crop width 24'), ({'crop': (96.0, 96)}, 'crop height 96.0'),
    ({'crop': (10**9, 96)}, 'crop height'),
    ({'scale': (2.0, 1.0)}, 'scale .2.0, 1.0. must be two factors'),
    ({'scale': (0.0, 1)}, 'scale'), ({'scale': (1, 11)}, 'scale'),
    ({'scale': (float('nan'), 1)}, 'scale'),
    ({'brightness': 1.0}, 'brightness 1.0 must be at least 0 and below 1'),
    ({'contrast': -0.1}, 'contrast'), ({'saturation': float('nan')}, 'saturation')])
def test_unusable_values_are_refused(values, said):
    with pytest.raises(ConfigError, match=f'augmentation: {said}'):
        Augmentation(**values)


def test_balanced_crops_show_a_rare_class_as_often_as_its_share_of_the_classes():
    """A class on 0.1 % of a picture, in crops of a sixteenth of it."""
    target = np.zeros((256, 256), np.uint8)
    target[:, 128:] = 1
    target[200:208, 30:38] = 2
    sample = Sample(np.zeros((256, 256, 3), np.uint8), target)
    seen = {share: np.mean([(view.target == 2).any() for view in views(
        Augmentation(crop=(64, 64), scale=(1.0, 1.0), balanced_crops=share), sample, 600)])
        for share in (0.0, 1.0)}
    # Of 192 ** 2 places, those that meet the square have top 136..192 and left 0..38.
    by_chance = (192 - 136) * 38 / 192 ** 2
    assert seen[0.0] == pytest.approx(by_chance, abs=0.04)
    # A third of the views are drawn to it; others meet it by chance.
    assert seen[1.0] > 1 / 3 - 0.06


@pytest.mark.parametrize('scale', [0.5, 1.0, 3.0])
def test_balanced_crops_hold_the_class_that_was_drawn_at_every_scale(scale):
    target = np.full((256, 256), 255, np.uint8)
    target[200:208, 30:38] = 2  # the one class there is
    sample = Sample(np.zeros((256, 256, 3), np.uint8), target)
    augmentation = Augmentation((64, 64), (scale, scale), balanced_crops=1.0, **PLAIN)
    seen = [(view.target == 2).any() for view in views(augmentation, sample, 200)]
    # Made smaller, a pixel at the very rim of the view may be passed over.
    assert np.mean(seen) == 1 if scale >= 1 else np.mean(seen) > 0.98


@pytest.mark.parametrize('scale', [(0.5, 0.5), (1.0, 1.0), (3.0, 3.0)])
def test_balanced_crops_stay_where_plain_ones_lie(scale):
    """Inside the picture where there is room, around it where there is none."""
    augmentation = Augmentation(crop=(64, 96), scale=scale, balanced_crops=1.0, **PLAIN)
    for view in views(augmentation, Sample(np.zeros((64, 96, 3), np.uint8),
                                           np.zeros((64, 96), np.uint8))):
        known = (view.target != 255).sum()
        assert abs(known - 64 * 96 * min(scale[0], 1) ** 2) <= 64 + 96


def test_balanced_crops_of_nothing_but_void_are_plain():
    sample = Sample(np.zeros((64, 64, 3), np.uint8), np.full((64, 64), 255, np.uint8))
    view = Augmentation(crop=(32, 32), balanced_crops=1.0)(sample, np.random.default_rng(0))
    assert (view.target == 255).all()
