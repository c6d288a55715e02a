"""seg_bag with a label map: other ids, names and colours."""

import json
import os
import sys

import numpy as np
import pytest
import yaml
from bags import image, images_on, pixels, write_bag
from random_models import random_model

from seg_ros.bag import command
from seg_ros.drawn_scene import DrawnScene
from seg_ros.inference.engines import create_engine
from seg_ros.inference.segmenter import Segmenter
from seg_ros.labels import CAMVID

RGB, _ = DrawnScene(6, 120, 90).frame(0.0)
MODEL = random_model()


@pytest.fixture
def run(model_file, monkeypatch, tmp_path):
    """Label a bag of one picture by a map of these entries; return the exit code."""
    def run(entries: list[dict]) -> int:
        write_bag(tmp_path / 'in', [('/image', image(RGB), 5)])
        (tmp_path / 'map.yaml').write_text(yaml.safe_dump({'classes': entries}))
        monkeypatch.setattr(sys, 'argv', [
            'seg_bag', *(str(tmp_path / name) for name in ('in', 'out')), '--model',
            str(model_file), '--engine', 'torch', '--device', 'cpu', '--label-map',
            str(tmp_path / 'map.yaml'), '--json', str(tmp_path / 'summary.json')])
        return command.main()
    return run


def entry(name: str, id_: int, sources, color: tuple[int, int, int]) -> dict:
    return {'name': name, 'id': id_, 'color': list(color), 'from': list(sources)}


def test_labels_and_overlay_follow_the_map(run, tmp_path, capsys):
    segmenter = Segmenter(MODEL, create_engine(MODEL, 'torch', 'cpu'))
    ids = segmenter.segment([RGB])[0].labels
    commonest, second, third = np.argsort(np.bincount(ids.flat))[::-1][:3]
    a, b = (CAMVID.names[index] for index in (commonest, third))
    dropped = CAMVID.names[second]
    rest = [name for name in CAMVID.names if name not in (a, b, dropped)]
    assert run([entry('A AND B', 200, [a, b], (10, 20, 30)),
                entry('REST', 0, rest, (250, 0, 250))]) == 0

    expected = np.zeros(ids.shape, np.uint8)
    expected[(ids == commonest) | (ids == third)] = 200
    expected[ids == second] = 255
    labels, = images_on(tmp_path / 'out', '/segmentation/labels')
    assert np.array_equal(pixels(labels), expected)
    overlay, = images_on(tmp_path / 'out', '/segmentation/overlay')
    for id_, color in ((200, (10, 20, 30)), (0, (250, 0, 250))):
        seen = expected == id_
        assert seen.any()
        assert np.abs(pixels(overlay)[seen] - (0.5 * RGB[seen] + 0.5 * np.array(color))
                      ).max() <= 0.5
    assert np.array_equal(pixels(overlay)[expected == 255], RGB[expected == 255])

    assert json.loads((tmp_path / 'summary.json').read_text())['classes'] == {
        'names': ['A AND B', 'REST'], 'ids': [200, 0], 'colors': [[10, 20, 30], [250, 0, 250]]}
    assert f'of the classes of the model, {dropped} become unknown' in capsys.readouterr().err


def test_a_class_that_the_model_lacks_is_refused_and_nothing_is_written(run, tmp_path, capsys):
    assert run([entry('GROUND', 1, ['Rode'], (1, 2, 3)), entry('CAR', 2, ['Car'], (4, 5, 6))]) == 2
    said, = capsys.readouterr().err.splitlines()
    assert said.startswith(f'seg_bag: error: {tmp_path / "map.yaml"}: entry 1 (GROUND): ')
    assert 'Rode' in said and f'Known: {", ".join(CAMVID.names)}' in said
    assert sorted(os.listdir(tmp_path)) == ['in', 'map.yaml']
