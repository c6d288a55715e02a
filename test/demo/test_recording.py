"""The files that the demo leaves behind."""

import json

import cv2
import numpy as np
import pytest

from seg_ros.demo.recording import Recorder, prepare_folder
from seg_ros.errors import ConfigError
from seg_ros.labels import CAMVID

SIZE = (48, 64)


def overlay(grey: int, size: tuple[int, int] = SIZE) -> np.ndarray:
    return np.full((*size, 3), grey, np.uint8)


def test_samples_are_spread_over_the_run_with_exact_ids_and_colours(tmp_path):
    recorder = Recorder(10.0)
    for second in range(10):
        recorder.add(second, np.full(SIZE, second, np.uint8), overlay(second))
    written = recorder.write(tmp_path, CAMVID, 5.0, {'fps': 5.0})
    # Of four samples the first is wanted at 0 s and the last at 9 s: at 0, 3, 6 and 9.
    for number, second in enumerate((0, 3, 6, 9), 1):
        labels = cv2.imread(str(tmp_path / f'labels_{number}.png'), cv2.IMREAD_UNCHANGED)
        assert labels.shape == SIZE and set(np.unique(labels)) == {second}
        color = cv2.imread(str(tmp_path / f'color_{number}.png'))
        assert tuple(color[0, 0, ::-1]) == CAMVID.colors[second]
        assert cv2.imread(str(tmp_path / f'overlay_{number}.png'))[0, 0, 0] == second
    assert json.loads((tmp_path / 'summary.json').read_text()) == {'fps': 5.0}
    assert sorted(written) == sorted(tmp_path.iterdir())


@pytest.mark.parametrize('size', [(48, 64), (49, 65)])
def test_video_plays_the_overlays_in_order_at_their_rate(tmp_path, size):
    recorder = Recorder(2.0)
    for number in range(8):
        recorder.add(number / 4, np.zeros(size, np.uint8), overlay(30 * number, size))
    recorder.write(tmp_path, None, 4.0, {})
    capture = cv2.VideoCapture(str(tmp_path / 'overlay.mp4'))
    assert capture.get(cv2.CAP_PROP_FPS) == pytest.approx(4.0)
    greys = []
    while (frame := capture.read()[1]) is not None:
        greys.append(frame.mean())
    assert np.allclose(greys, [30 * number for number in range(8)], atol=4)


def test_video_takes_overlays_of_different_sizes(tmp_path):
    recorder = Recorder(2.0)
    for number, size in enumerate((SIZE, (96, 128), (30, 40))):
        recorder.add(number / 10, np.zeros(size, np.uint8), overlay(100, size))
    recorder.write(tmp_path, CAMVID, 10.0, {})
    capture = cv2.VideoCapture(str(tmp_path / 'overlay.mp4'))
    assert [capture.read()[1].shape for _ in range(3)] == [(*SIZE, 3)] * 3


def test_earlier_results_are_replaced_and_other_files_stay(tmp_path):
    folder = tmp_path / 'demo_output'
    prepare_folder(folder)
    for name in ('overlay_3.png', 'summary.json', 'overlay.mp4', 'node.log', 'my_notes.txt',
                 'overlay_17.png'):
        (folder / name).write_text('old')
    prepare_folder(folder)
    assert sorted(path.name for path in folder.iterdir()) == ['my_notes.txt', 'overlay_17.png']


def test_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / 'demo_output').write_text('mine')
    with pytest.raises(ConfigError, match='demo_output: cannot be written'):
        prepare_folder(tmp_path / 'demo_output')
