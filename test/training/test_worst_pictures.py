"""The sheet of the pictures that a network labels worst."""

import cv2
import numpy as np
import pytest
import torch
from random_models import normalised, random_model

from seg_ros.drawn_scene import DrawnScene
from seg_ros.labels import LabelSet
from seg_ros.training.dataset import DataFolder
from seg_ros.training.sheet import GAP_PX, LINE_PX
from seg_ros.training.worst_pictures import TILE_PX, WRONG, draw_worst

COLORS = ((250, 10, 10), (10, 250, 10), (10, 10, 250), (250, 250, 10), (250, 10, 250))
LABELS = LabelSet(('a', 'b', 'c', 'd', 'e'), COLORS, (3, 0, 9, 200, 1))
MODEL = random_model(labels=LABELS)
FRAMES = [DrawnScene(3, 96, 64).frame(time_s)[0] for time_s in (0.0, 4.0, 8.0, 12.0)]
SCALE = TILE_PX // 96  # pixels of the sheet a pixel of a picture


def predicted(rgb: np.ndarray) -> np.ndarray:
    """Class index of each pixel, by the network itself."""
    with torch.no_grad():
        logits = MODEL.network(normalised(MODEL.spec, torch.from_numpy(rgb)[None]))
    return logits.argmax(dim=1)[0].numpy().astype(np.uint8)


@pytest.fixture
def write_data(tmp_path):
    """Write pictures with their labels, given by class index; 255 is void."""
    def write(truths, frames=FRAMES) -> DataFolder:
        pairs = []
        ids = np.full(256, 255, np.uint8)
        ids[:len(LABELS)] = LABELS.ids
        for index, (rgb, truth) in enumerate(zip(frames, truths, strict=True)):
            pair = tmp_path / f'{index}.png', tmp_path / f'{index}_labels.png'
            cv2.imwrite(str(pair[0]), rgb[..., ::-1])
            cv2.imwrite(str(pair[1]), ids[truth])
            pairs.append(pair)
        return DataFolder(tmp_path, 'val', tuple(pairs), LABELS, frozenset())
    return write


@pytest.fixture
def sheet(tmp_path):
    """Draw the sheet of a data set as (H, W, 3) uint8 RGB."""
    def draw(data: DataFolder, count: int) -> np.ndarray:
        path = tmp_path / 'sheet.png'
        draw_worst(MODEL.network, MODEL.spec, data, path, count)
        return cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)
    return draw


def tile(sheet: np.ndarray, row_from_below: int, column: int) -> np.ndarray:
    """One picture of the sheet, at its own size, where all are 96x64 pixels."""
    row = LINE_PX + 64 * SCALE + GAP_PX
    y = len(sheet) - row_from_below * row + LINE_PX
    x = GAP_PX + column * (TILE_PX + GAP_PX)
    return sheet[y:y + 64 * SCALE, x:x + TILE_PX][SCALE // 2::SCALE, SCALE // 2::SCALE]


def spoiled(truth: np.ndarray, rows: int) -> np.ndarray:
    """Make the first rows wrong: each pixel of another class."""
    truth = truth.copy()
    truth[:rows] = (truth[:rows] + 1) % len(LABELS)
    return truth


def test_pictures_whose_labels_were_made_wrong_come_first_the_worst_at_the_top(write_data, sheet):
    truths = [predicted(rgb) for rgb in FRAMES]
    truths[1], truths[2] = spoiled(truths[1], 20), spoiled(truths[2], 50)
    picture = sheet(write_data(truths), 2)
    assert (tile(picture, 2, 0) == FRAMES[2]).all()
    assert (tile(picture, 1, 0) == FRAMES[1]).all()
    for row_from_below, rows in ((2, 50), (1, 20)):
        wrong = (tile(picture, row_from_below, 3) == WRONG).all(axis=2)
        assert wrong[:rows].mean() > 0.99 and wrong[rows:].mean() < 0.01


def test_truth_and_prediction_have_the_colours_of_their_classes(write_data, sheet):
    truth = spoiled(predicted(FRAMES[0]), 64)
    picture = sheet(write_data([truth], FRAMES[:1]), 1)
    for column, ids in ((1, truth), (2, predicted(FRAMES[0]))):
        expected = 0.4 * FRAMES[0] + 0.6 * np.array(COLORS)[ids]
        assert (np.abs(tile(picture, 1, column) - expected).max(axis=2) <= 1).mean() > 0.99


def test_void_pixels_are_never_wrong(write_data, sheet):
    truths = [spoiled(predicted(rgb), 40) for rgb in FRAMES[:2]]
    truths[0][:, :80] = 255
    picture = sheet(write_data(truths, FRAMES[:2]), 2)
    places = [place for place in (1, 2) if (tile(picture, place, 0) == FRAMES[0]).all()]
    wrong = (tile(picture, places[0], 3) == WRONG).all(axis=2)
    assert not wrong[:, :80].any() and wrong[:40, 80:].mean() > 0.99


def test_classes_that_the_truth_does_not_hold_do_not_count(write_data, sheet):
    found = predicted(FRAMES[0])
    # All right, though four of the five classes have no pixel that counts.
    perfect = np.where(found == np.bincount(found.ravel()).argmax(), found, np.uint8(255))
    faulty = spoiled(predicted(FRAMES[1]), 5)
    picture = sheet(write_data([perfect, faulty], FRAMES[:2]), 2)
    assert (tile(picture, 2, 0) == FRAMES[1]).all()
    assert (tile(picture, 1, 0) == FRAMES[0]).all()


def test_pictures_of_nothing_but_void_are_left_out(write_data, sheet):
    void = np.full((64, 96), 255, np.uint8)
    few = sheet(write_data([void, predicted(FRAMES[1])], FRAMES[:2]), 8)
    assert (tile(few, 1, 0) == FRAMES[1]).all()
    none = sheet(write_data([void], FRAMES[:1]), 8)
    assert len(few) - len(none) == LINE_PX + 64 * SCALE + GAP_PX


def test_large_and_upright_pictures_are_made_to_fit(write_data, sheet):
    large = cv2.resize(FRAMES[0], (640, 1280))
    picture = sheet(write_data([np.zeros((1280, 640), np.uint8)], [large]), 1)
    legend = picture.shape[0] - (LINE_PX + TILE_PX + GAP_PX)
    assert 0 < legend < 120
    shown = picture[legend + LINE_PX:-GAP_PX, GAP_PX:GAP_PX + 240].astype(int)
    assert np.abs(shown - cv2.resize(large, (240, 480), interpolation=cv2.INTER_AREA)).max() <= 1


def test_legend_and_captions_are_written(write_data, sheet):
    picture = sheet(write_data([predicted(FRAMES[0])], FRAMES[:1]), 1)
    top = picture[:-(64 * SCALE + GAP_PX)]
    assert all((top == color).all(axis=2).sum() > 200 for color in COLORS)
    caption = top[-LINE_PX:]
    assert (caption < 128).sum() > 300
