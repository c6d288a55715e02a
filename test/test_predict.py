"""seg_predict, run as from the command line."""

import os
import sys

import cv2
import numpy as np
import pytest
from random_models import random_model

from seg_ros.cli import predict
from seg_ros.cli.videos import Video, VideoFile
from seg_ros.drawn_scene import DrawnScene
from seg_ros.errors import EngineError, ImageError
from seg_ros.inference.engines import create_engine
from seg_ros.inference.segmenter import Segmenter
from seg_ros.picture_sources import read_picture

SCENE = DrawnScene(6, 120, 90)
FRAMES = [SCENE.frame(0.5 * index)[0] for index in range(4)]
MODEL = random_model()


@pytest.fixture
def run(model_file, monkeypatch, tmp_path):
    """Run the command; return its exit code."""
    def run(*arguments, model=model_file, out=tmp_path / 'out') -> int:
        monkeypatch.setattr(sys, 'argv', [
            'seg_predict', '--engine', 'torch', '--device', 'cpu', '-o', str(out),
            '--model', str(model), *map(str, arguments)])
        return predict.main()
    return run


def write(path, rgb: np.ndarray):
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), rgb[..., ::-1])
    return path


def write_video(path, frames):
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*'MJPG'), 10, (120, 90))
    for frame in frames:
        writer.write(np.ascontiguousarray(frame[..., ::-1]))
    writer.release()
    return path


def names(folder) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob('*') if path.is_file())


def labels_of(rgb: np.ndarray) -> np.ndarray:
    return Segmenter(MODEL, create_engine(MODEL, 'torch', 'cpu')).segment([rgb])[0].labels


def errors(capsys) -> list[str]:
    return [line for line in capsys.readouterr().err.replace('\r', '\n').splitlines()
            if 'error:' in line]


def test_a_picture_gives_its_labels_and_its_overlay(run, tmp_path, capsys):
    assert run(write(tmp_path / 'a.b.png', FRAMES[0]), '--alpha', 1) == 0
    assert names(tmp_path / 'out') == ['a.b_labels.png', 'a.b_overlay.png']
    labels = cv2.imread(str(tmp_path / 'out' / 'a.b_labels.png'), cv2.IMREAD_UNCHANGED)
    assert labels.dtype == np.uint8 and np.array_equal(labels, labels_of(FRAMES[0]))
    overlay = cv2.imread(str(tmp_path / 'out' / 'a.b_overlay.png'))[..., ::-1]
    assert np.array_equal(overlay, MODEL.spec.labels.palette[labels])
    assert '1 of 1 labelled with torch on cpu (float32)' in capsys.readouterr().out


def test_alpha_is_the_share_of_the_colour(run, tmp_path):
    assert run(write(tmp_path / 'a.png', FRAMES[0]), '--alpha', 0) == 0
    overlay = cv2.imread(str(tmp_path / 'out' / 'a_overlay.png'))[..., ::-1]
    assert np.array_equal(overlay, FRAMES[0])


def test_a_folder_gives_results_of_each_picture(run, tmp_path):
    write(tmp_path / 'in' / 'one.png', FRAMES[0])
    write(tmp_path / 'in' / 'two.JPG', FRAMES[1])
    (tmp_path / 'in' / 'notes.txt').write_text('no picture')
    assert run(tmp_path / 'in') == 0
    assert names(tmp_path / 'out') == ['one_labels.png', 'one_overlay.png', 'two_labels.png',
                                       'two_overlay.png']


def test_a_video_gives_labels_of_each_frame_and_one_overlay(run, tmp_path):
    video = write_video(tmp_path / 'drive.avi', FRAMES)
    assert run(video, '--alpha', 0) == 0
    assert names(tmp_path / 'out') == [f'drive_labels/00000{n}.png' for n in range(4)] + [
        'drive_overlay.mp4']
    overlay = Video(tmp_path / 'out' / 'drive_overlay.mp4')
    assert overlay.fps == pytest.approx(10)
    frames = list(overlay)
    assert [frame.shape for frame in frames] == [(90, 120, 3)] * 4
    assert np.abs(frames[3].astype(float) - FRAMES[3]).mean() < 12  # but for compression
    read = list(Video(video))
    labels = cv2.imread(str(tmp_path / 'out' / 'drive_labels' / '000002.png'), -1)
    assert np.array_equal(labels, labels_of(read[2]))


def test_a_shorter_video_leaves_no_labels_of_the_longer_one_before(run, tmp_path):
    assert run(write_video(tmp_path / 'drive.avi', FRAMES)) == 0
    own = tmp_path / 'out' / 'drive_labels' / 'my notes.txt'
    own.write_text('stays')
    assert run(write_video(tmp_path / 'drive.avi', FRAMES[:2])) == 0
    assert names(tmp_path / 'out') == ['drive_labels/000000.png', 'drive_labels/000001.png',
                                       'drive_labels/my notes.txt', 'drive_overlay.mp4']


def test_an_unreadable_picture_is_reported_and_the_others_are_done(run, tmp_path, capsys):
    write(tmp_path / 'in' / 'a.png', FRAMES[0])
    (tmp_path / 'in' / 'b.png').write_bytes((tmp_path / 'in' / 'a.png').read_bytes()[:300])
    (tmp_path / 'in' / 'c.png').write_bytes(b'')
    write(tmp_path / 'in' / 'd.png', FRAMES[1])
    assert run(tmp_path / 'in') == 1
    assert names(tmp_path / 'out') == ['a_labels.png', 'a_overlay.png', 'd_labels.png',
                                       'd_overlay.png']
    reported = errors(capsys)
    assert len(reported) == 2
    assert 'b.png: cannot be read as a picture' in reported[0] and 'c.png' in reported[1]


def test_no_readable_input_at_all_is_wrong_use(run, tmp_path, capsys):
    (tmp_path / 'a.png').write_bytes(b'\x89PNG\r\n\x1a\n and no more')
    assert run(tmp_path / 'a.png') == 2
    assert len(errors(capsys)) == 1


def bad_inputs(folder):
    picture = write(folder / 'good.png', FRAMES[0])
    (folder / 'text.txt').write_text('no picture')
    (folder / 'empty').mkdir()
    (folder / 'loop.png').symlink_to('loop.png')
    os.mkfifo(folder / 'pipe.png')
    write(folder / 'other' / 'good.jpg', FRAMES[1])
    write(folder / 'out' / 'x.png', FRAMES[0])
    write(folder / 'out' / 'x_labels.png', FRAMES[0])
    return {
        'loop': ([folder / 'loop.png'], 'loop.png: no such file'),
        'pipe': ([folder / 'pipe.png'], 'pipe.png: no such file'),
        'missing': ([folder / 'none.png'], 'none.png: no such file'),
        'no picture': ([picture, folder / 'text.txt'], 'text.txt: neither a picture nor a video'),
        'empty folder': ([folder / 'empty'], 'empty: no picture in this folder'),
        'same stem': ([picture, folder / 'other'], 'good.jpg: results are named by "good"'),
        'twice': ([picture, picture], 'overwrite each other'),
        'result onto input': ([folder / 'out'], 'x_labels.png: would be overwritten'),
        'alpha': ([picture, '--alpha', '1.5'], '--alpha 1.5: expected 0 to 1'),
        'alpha nan': ([picture, '--alpha', 'nan'], '--alpha nan: expected 0 to 1'),
        'device': ([picture, '--device', 'cuda:7'], "device 'cuda:7'"),
    }


@pytest.mark.parametrize('case', [
    'loop', 'pipe', 'missing', 'no picture', 'empty folder', 'same stem', 'twice',
    'result onto input', 'alpha', 'alpha nan', 'device'])
def test_wrong_use_is_one_line_before_any_work(run, tmp_path, capsys, case):
    arguments, message = bad_inputs(tmp_path)[case]
    before = names(tmp_path)
    assert run(*arguments) == 2
    captured = capsys.readouterr().err.splitlines()
    assert len(captured) == 1 and message in captured[0]
    assert captured[0].startswith('seg_predict: error: ')
    assert names(tmp_path) == before


def test_a_file_in_the_place_of_the_folder_is_refused(run, tmp_path, capsys):
    picture = write(tmp_path / 'a.png', FRAMES[0])
    assert run(picture, out=picture) == 2
    assert 'a.png: is a file; give a folder with -o' in capsys.readouterr().err


def test_a_write_that_fails_names_the_file_that_was_wanted(run, tmp_path, capsys):
    (tmp_path / 'out' / 'a_labels.png').mkdir(parents=True)
    assert run(write(tmp_path / 'a.png', FRAMES[0])) == 1
    assert f'{tmp_path}/out/a_labels.png: ' in capsys.readouterr().err
    assert names(tmp_path) == ['a.png']


def test_a_missing_model_is_refused(run, tmp_path, capsys):
    assert run(write(tmp_path / 'a.png', FRAMES[0]), model=tmp_path / 'none.safetensors') == 2
    assert 'none.safetensors: no such model file' in capsys.readouterr().err


def test_pictures_of_other_kinds_are_converted(tmp_path):
    values = np.arange(48 * 64, dtype=np.uint16).reshape(48, 64) * 20
    cv2.imwrite(str(tmp_path / 'grey16.png'), values)
    grey = read_picture(tmp_path / 'grey16.png')
    assert grey.shape == (48, 64, 3) and grey.dtype == np.uint8
    assert np.abs(grey - (values / 256)[..., None]).max() <= 1
    cv2.imwrite(str(tmp_path / 'grey8.png'), values.astype(np.uint8))
    assert np.array_equal(read_picture(tmp_path / 'grey8.png'),
                          np.repeat(values.astype(np.uint8)[..., None], 3, axis=2))
    bgra = np.dstack([FRAMES[0][..., ::-1], np.full((90, 120), 7, np.uint8)])
    cv2.imwrite(str(tmp_path / 'alpha.png'), bgra)
    assert np.array_equal(read_picture(tmp_path / 'alpha.png'), FRAMES[0])
    color16 = FRAMES[0][..., ::-1].astype(np.uint16) * 256 + 99
    cv2.imwrite(str(tmp_path / 'color16.png'), color16)
    assert np.abs(read_picture(tmp_path / 'color16.png').astype(int) - FRAMES[0]).max() <= 1


def test_a_cut_jpeg_is_refused_and_not_filled_with_grey(run, tmp_path, capsys):
    cv2.imwrite(str(tmp_path / 'a.jpg'), FRAMES[0])
    data = (tmp_path / 'a.jpg').read_bytes()
    (tmp_path / 'a.jpg').write_bytes(data[:len(data) // 2])
    assert run(tmp_path / 'a.jpg') != 0
    assert 'a.jpg: cannot be read as a picture (the JPEG is cut off' in errors(capsys)[0]
    assert names(tmp_path / 'out') == []


def test_an_interrupted_video_leaves_no_half_file(tmp_path):
    with pytest.raises(KeyboardInterrupt), VideoFile(tmp_path / 'film', 10.0) as video:
        video.write(FRAMES[0])
        raise KeyboardInterrupt
    assert names(tmp_path) == []


def test_a_failure_underway_leaves_no_half_file(run, tmp_path, monkeypatch, capsys):
    def fail(*_: object) -> None:
        raise EngineError('torch on cuda:0: out of memory')
    monkeypatch.setattr(predict, 'draw_overlay', fail)
    assert run(write_video(tmp_path / 'drive.avi', FRAMES)) == 1
    assert names(tmp_path / 'out') == []
    assert errors(capsys) == ['seg_predict: error: torch on cuda:0: out of memory']


def test_a_video_without_frames_is_refused(tmp_path):
    (tmp_path / 'a.mp4').write_bytes(b'no video')
    with pytest.raises(ImageError, match=r'a.mp4: cannot be read as a video'):
        Video(tmp_path / 'a.mp4')
