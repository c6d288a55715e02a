"""Contact sheets: what is drawn where, compared to arithmetic."""

import numpy as np
import pytest

from seg_ros.labels import CAMVID, CITYSCAPES, LabelSet
from seg_ros.training.contact_sheet import draw_contact_sheet
from seg_ros.training.dataset import Sample
from seg_ros.training.sheet import stripe_void

# Ids that are no indices: a sample's classes are indices.
LABELS = LabelSet(('ground', 'wall'), ((200, 0, 0), (0, 0, 200)), (3, 200))
GREEN = (10, 210, 60)  # no shade of the ink, as which text has soft edges


def sample(height: int, width: int) -> Sample:
    """Ground in the left half, wall in the right, but void in the lower quarter."""
    target = np.zeros((height, width), np.uint8)
    target[:, width // 2:] = 1
    target[3 * height // 4:] = 255
    return Sample(np.full((height, width, 3), GREEN, np.uint8), target)


def count(sheet: np.ndarray, color: tuple[int, int, int]) -> int:
    return int((sheet == color).all(axis=-1).sum())


def first_row(sheet: np.ndarray, color: tuple[int, int, int]) -> int:
    return int((sheet == color).all(axis=-1).any(axis=1).argmax())


def test_picture_is_beside_itself_with_labels_drawn_over():
    sheet = draw_contact_sheet([('a.png', sample(400, 400))], LABELS)
    top, left = first_row(sheet, GREEN), 16
    assert (sheet[top:top + 400, left:left + 400] == GREEN).all()
    marked = sheet[top:top + 400, left + 400:left + 800]
    # 60 % of the class's colour, 40 % of the picture
    assert np.unique(marked[:300, :200].reshape(-1, 3), axis=0).tolist() == [[124, 84, 24]]
    assert np.unique(marked[:300, 200:].reshape(-1, 3), axis=0).tolist() == [[4, 84, 144]]


def test_void_is_dark_with_bright_stripes():
    rgb = np.random.default_rng(0).integers(90, 150, (40, 60, 3), np.uint8)
    target = np.zeros((40, 60), np.uint8)
    target[20:, 30:] = 255
    striped = stripe_void(rgb, target)
    void = np.zeros((40, 60), bool)
    void[20:, 30:] = True
    assert np.array_equal(striped[~void], rgb[~void])
    bright = (striped[20:, 30:] > 200).all(axis=-1)
    assert (striped[20:, 30:][~bright] < 51).all()
    assert all(0 < line.sum() < line.size for line in [*bright, *bright.T])


def test_legend_shows_each_colour_once_and_void():
    sheet = draw_contact_sheet([('a.png', sample(400, 400))], CAMVID)
    legend = sheet[:first_row(sheet, GREEN)]
    assert [count(legend, color) for color in CAMVID.colors[1:]] == [16 * 28] * 10
    assert count(legend, CAMVID.colors[0]) >= 16 * 28  # grey, as the soft edges of the names
    assert count(legend, (0, 0, 0)) > 100 and count(legend, (230, 230, 230)) > 50


@pytest.mark.parametrize(('height', 'width'), [(32, 400), (400, 32), (64, 64), (8000, 32)])
def test_long_legend_is_broken_into_lines(height, width):
    names = tuple(f'{name} of a kind' for name in CITYSCAPES.names)
    labels = LabelSet(names, CITYSCAPES.colors)
    sheet = draw_contact_sheet([('a.png', sample(height, width))], labels)
    assert all(count(sheet, color) >= 16 * 28 for color in labels.colors)


def test_longer_side_of_every_picture_is_400_pixels():
    for height, width in ((32, 64), (360, 720), (800, 1600)):
        sheet = draw_contact_sheet([('a.png', sample(height, width))], LABELS)
        at = (sheet == GREEN).all(axis=-1)
        assert at.sum() == 200 * 400 and at.any(axis=0).sum() == 400


def test_samples_stand_two_by_two():
    samples = [(f'{shade}.png', Sample(np.full((200, 400, 3), (shade, 0, 0), np.uint8),
                                       np.full((200, 400), 255, np.uint8)))
               for shade in (101, 102, 103)]
    sheet = draw_contact_sheet(samples, LABELS)
    corners = []
    for shade in (101, 102, 103):
        at = (sheet == (shade, 0, 0)).all(axis=-1)
        assert at.sum() == 200 * 400
        corners.append((int(at.any(axis=1).argmax()), int(at.any(axis=0).argmax())))
    (y, x), second, third = corners
    assert second == (y, x + 816) and third == (y + 240, x)
    # Something is written below each picture, on white paper.
    for y, x in corners:
        caption = sheet[y + 200:y + 224, x:x + 400]
        assert 20 < (caption < 128).all(axis=-1).sum() < 2000 and (caption == 255).mean() > 0.7


def test_no_sample_and_no_class_is_changed():
    before = sample(64, 64)
    given = sample(64, 64)
    draw_contact_sheet([('a.png', given)], LABELS)
    assert np.array_equal(given.rgb, before.rgb) and np.array_equal(given.target, before.target)
