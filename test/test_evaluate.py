"""seg_evaluate, run as from the command line."""

import json
import subprocess
import sys

import cv2
import numpy as np
import pytest
import torch
import yaml
from random_models import normalised, random_model

from seg_ros.drawn_scene import DrawnScene
from seg_ros.labels import CAMVID, LabelSet
from seg_ros.model_file import save_model
from seg_ros.training import evaluate, validation
from seg_ros.training.confusion_picture import CELL_PX, draw_confusion

LABELS = LabelSet(CAMVID.names[:5], CAMVID.colors[:5], (3, 0, 9, 200, 1))
MODEL = random_model(labels=LABELS)
FRAMES = [DrawnScene(3, 96, 64).frame(time_s)[0] for time_s in (0.0, 4.0)]


def predicted(rgb: np.ndarray) -> np.ndarray:
    """Channel of each pixel, by the trained network itself."""
    with torch.no_grad():
        logits = MODEL.network(normalised(MODEL.spec, torch.from_numpy(rgb)[None]))
    return logits.argmax(dim=1)[0].numpy().astype(np.uint8)


@pytest.fixture
def run(model_file, monkeypatch):
    """Run the command; return its exit code."""
    def run(*arguments) -> int:
        monkeypatch.setattr(sys, 'argv', [
            'seg_evaluate', '--engine', 'torch', '--precision', 'float32', '--model',
            str(model_file), *map(str, arguments)])
        return evaluate.main()
    return run


def write_data(root, truths, names=LABELS.names):
    """Pictures whose labels are given by class index, with ids 10, 11, ... and void 99."""
    for kind in ('images', 'labels'):
        (root / kind / 'val').mkdir(parents=True)
    for index, (rgb, truth) in enumerate(zip(FRAMES, truths, strict=True)):
        cv2.imwrite(str(root / 'images' / 'val' / f'{index}.png'), rgb[..., ::-1])
        ids = np.where(truth == 255, 99, truth + 10).astype(np.uint8)
        cv2.imwrite(str(root / 'labels' / 'val' / f'{index}.png'), ids)
    (root / 'classes.yaml').write_text(yaml.safe_dump({
        'names': list(names), 'colors': [[0, 0, 0]] * len(names),
        'ids': list(range(10, 10 + len(names))), 'void': [99]}))
    return root


def test_scores_are_those_of_pixels_counted_one_by_one(run, tmp_path, model_file, capsys):
    truths = [predicted(rgb) for rgb in FRAMES]
    truths[0][:10] = (truths[0][:10] + 1) % 5  # wrong
    truths[1][:, 80:] = 255                    # void
    truths[1][truths[1] == 4] = 3              # a class that never occurs in that truth
    data = write_data(tmp_path / 'data', truths)
    assert run('--data', data, '--json', tmp_path / 's.json', '--png', tmp_path / 's.png') == 0

    confusion = np.zeros((5, 5), int)
    for rgb, truth in zip(FRAMES, truths, strict=True):
        for true, found in zip(truth.flat, predicted(rgb).flat, strict=True):
            if true != 255:
                confusion[true, found] += 1
    scores = json.loads((tmp_path / 's.json').read_text())
    assert list(scores) == ['miou', 'pixel_accuracy', 'per_class_iou', 'confusion', 'images',
                            'model', 'engine', 'precision']
    assert confusion.sum() == 64 * (96 + 80)
    # One pixel in a thousand may fall the other way where two logits are equal but for rounding.
    counted = np.array(scores['confusion'])
    assert np.abs(counted - confusion).sum() / 2 <= 0.001 * confusion.sum()
    right = np.diag(counted)
    iou = 100 * right / (counted.sum(axis=0) + counted.sum(axis=1) - right)
    assert scores['miou'] == pytest.approx(iou[confusion.sum(axis=1) > 0].mean(), abs=0.02)
    assert scores['pixel_accuracy'] == pytest.approx(100 * right.sum() / confusion.sum(), abs=0.02)
    for name, value in zip(LABELS.names, iou, strict=True):
        assert scores['per_class_iou'][name] == pytest.approx(value, abs=0.05)
    assert (scores['images'], scores['model']) == (2, str(model_file))
    assert (scores['engine'], scores['precision']) == ('torch', 'float32')

    table = capsys.readouterr().out
    assert all(name in table for name in LABELS.names)
    assert f'{scores["miou"]:.2f}' in table and f'{scores["pixel_accuracy"]:.2f}' in table
    assert cv2.imread(str(tmp_path / 's.png')).shape[0] > 5 * CELL_PX
    assert sorted(path.name for path in tmp_path.iterdir()) == ['data', 's.json', 's.png']


def test_class_that_never_occurs_has_no_score(run, tmp_path, capsys):
    truths = [np.where(predicted(rgb) == 2, 1, predicted(rgb)) for rgb in FRAMES]
    data = write_data(tmp_path / 'data', truths)
    assert run('--data', data, '--json', tmp_path / 's.json') == 0
    scores = json.loads((tmp_path / 's.json').read_text())
    assert scores['per_class_iou']['Pole'] is None
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith('Pole'))
    assert line.split() == ['Pole', '-', '0.00']


@pytest.mark.parametrize('names', [('a', 'b', 'c', 'd', 'e'), LABELS.names[::-1],
                                   LABELS.names[:4]])
def test_data_of_other_classes_is_refused(run, tmp_path, capsys, names):
    truth = np.zeros((64, 96), np.uint8)
    data = write_data(tmp_path / 'data', [truth, truth], names)
    assert run('--data', data) == 2
    error = capsys.readouterr().err
    assert error.count('\n') == 1 and f'labels of data, val {", ".join(names)}' in error
    assert 'Sky, Building, Pole, Road, Pavement' in error


@pytest.mark.parametrize('option', ['--json', '--png'])
def test_a_missing_folder_of_the_results_is_said_before_the_work(run, tmp_path, capsys, option):
    assert run('--drawn', option, tmp_path / 'none' / 'file') == 2
    assert f'{tmp_path}/none: no such folder' in capsys.readouterr().err


def test_a_folder_in_the_place_of_the_results_is_said_before_the_work(run, tmp_path, capsys):
    assert run('--drawn', '--json', tmp_path) == 2
    assert f'{tmp_path}: is a folder' in capsys.readouterr().err


def test_labels_that_are_all_void_are_no_score(run, tmp_path, capsys):
    void = np.full((64, 96), 255, np.uint8)
    assert run('--data', write_data(tmp_path / 'data', [void, void])) == 2
    assert 'all pixels are void' in capsys.readouterr().err


def test_missing_data_is_refused(run, tmp_path, capsys):
    assert run('--data', tmp_path / 'none') == 2
    assert 'none: no such folder' in capsys.readouterr().err


def test_the_drawn_scene_is_scored_with_the_classes_of_camvid(run, tmp_path, monkeypatch, capsys):
    assert run('--drawn') == 2  # this model tells only five classes apart
    assert 'the drawn scene' in capsys.readouterr().err
    for module in (evaluate, validation):
        monkeypatch.setattr(module, 'DRAWN_SEEDS', range(1))
    model = random_model()
    save_model(tmp_path / 'm.safetensors', model.network, model.spec)
    assert run('--drawn', '--model', tmp_path / 'm.safetensors', '--json',
               tmp_path / 's.json') == 0
    scores = json.loads((tmp_path / 's.json').read_text())
    assert scores['images'] == 2
    assert np.sum(scores['confusion']) == 2 * 360 * 480
    truth = np.concatenate([DrawnScene(0, 480, 360).frame(t)[1].ravel() for t in (1.0, 8.5)])
    assert np.sum(scores['confusion'], axis=1).tolist() == np.bincount(
        truth, minlength=11).tolist()


def test_cells_of_the_confusion_picture_are_darker_the_larger_their_share():
    counts = np.array([[90, 10, 0], [0, 0, 50], [0, 0, 0]])
    picture = draw_confusion(counts, ('sky', 'road', 'a long name'))
    assert picture.dtype == np.uint8 and picture.shape[2] == 3
    top, left = (picture.shape[0] - 12 - 3 * CELL_PX, picture.shape[1] - 12 - 3 * CELL_PX)

    def brightness(row: int, column: int) -> int:  # beside the number
        return int(picture[top + row * CELL_PX + 4, left + column * CELL_PX + 4].sum())

    assert brightness(1, 2) < brightness(0, 0) < brightness(0, 1) < brightness(0, 2) == 765
    assert brightness(2, 0) == brightness(2, 2) == 765  # a class without pixels


def test_commands_without_ros_do_not_import_it():
    code = ('import sys, seg_ros.training.evaluate, seg_ros.cli.predict; '
            'sys.exit(any(name.startswith("rclpy") for name in sys.modules))')
    assert subprocess.run([sys.executable, '-c', code], timeout=120).returncode == 0
