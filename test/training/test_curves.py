"""The picture of a run's metrics."""

import sys

import cv2
import numpy as np
import pytest

from seg_ros.labels import LabelSet
from seg_ros.training.curves import _apart, draw_curves

LABELS = LabelSet(('wall', 'road'), ((255, 0, 200), (0, 230, 90)))


def line(epoch: int, loss: float | None = 1.0, **scores: object) -> dict:
    return {'epoch': epoch, 'loss': loss, 'learning_rate': 0.1, **scores}


@pytest.fixture
def drawn(tmp_path):
    """Draw curves; give the picture as (H, W, 3) uint8 RGB."""
    def drawn(lines, labels=None) -> np.ndarray:
        path = tmp_path / 'curves.png'
        draw_curves(lines, path, labels)
        assert [file.name for file in tmp_path.iterdir()] == ['curves.png']
        return cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)
    return drawn


def rows_of(picture: np.ndarray, color: tuple[int, int, int]) -> np.ndarray:
    """Row of each pixel of a colour."""
    return np.nonzero((picture == color).all(axis=2))[0]


def test_classes_are_drawn_in_their_colours_the_better_above(drawn):
    lines = [line(epoch, val_miou=50.0, val_class_iou={'road': 90.0, 'wall': 10.0})
             for epoch in (1, 2, 3)]
    picture = drawn(lines, LABELS)
    wall, road = (rows_of(picture, color) for color in LABELS.colors)
    assert len(wall) > 500 and len(road) > 500
    assert road.max() < wall.min()
    assert not len(rows_of(drawn(lines), LABELS.colors[0]))  # nobody says the colours


def test_each_metric_shows(drawn):
    pictures = [drawn([line(1), second]).tobytes() for second in (
        line(2), line(2, loss=0.5), {**line(2), 'learning_rate': 0.05}, line(2, val_miou=40.0),
        line(2, drawn_miou=40.0), line(2, val_class_iou={'road': 40.0}))]
    assert len(set(pictures)) == len(pictures)


def test_epochs_without_validation_are_no_gap(drawn):
    scores = {'val_class_iou': {'wall': 50.0}}
    with_gap = drawn([line(1, **scores), line(2), line(3, **scores)], LABELS)
    whole = drawn([line(epoch, **scores) for epoch in (1, 2, 3)], LABELS)
    count = [len(rows_of(picture, LABELS.colors[0])) for picture in (with_gap, whole)]
    assert count[0] == pytest.approx(count[1], rel=0.02)  # but for the point at 2


@pytest.mark.parametrize('lines', [
    [], [line(1)], [line(1, loss=None)], [line(1, loss=None), line(2, loss=None)],
    [line(1, val_miou=0.0, val_class_iou={'wall': None, 'road': 0.0})]])
def test_little_to_draw_is_still_a_picture(drawn, lines):
    picture = drawn(lines, LABELS)
    assert picture.shape == (1000, 1500, 3)
    assert picture.std() > 5


def test_many_classes_have_room_for_their_names(drawn):
    scores = {f'class {i}': float(i % 100) for i in range(60)}
    assert drawn([line(1, val_class_iou=scores)]).shape[0] > 60 * 20


@pytest.mark.parametrize(('heights', 'gap', 'expected'), [
    ([90.0, 50.0, 10.0], 5.0, [90.0, 50.0, 10.0]),
    ([50.0, 50.0, 49.0, 20.0], 5.0, [50.0, 45.0, 40.0, 20.0]),
    ([3.0, 2.0, 1.0], 4.0, [8.0, 4.0, 0.0]),
    ([], 4.0, [])])
def test_names_are_moved_apart(heights, gap, expected):
    assert _apart(heights, gap) == expected


def test_without_matplotlib_a_line_says_so(tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, 'matplotlib.figure', None)
    draw_curves([line(1)], tmp_path / 'curves.png')
    assert 'no curves.png' in caplog.text
    assert 'pip install -r requirements/training.txt' in caplog.text
    assert not list(tmp_path.iterdir())
