"""seg_train as a user runs it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from seg_ros.labels import CAMVID
from seg_ros.model_file import load_model
from seg_ros.training import train
from seg_ros.training.checkpoint import load_checkpoint

ROOT = Path(__file__).parents[2]


def start(*arguments: object) -> subprocess.Popen:
    environment = {**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': os.pathsep.join(
        [str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])])}
    return subprocess.Popen(
        [sys.executable, '-m', 'seg_ros.training.train', '--device', 'cpu', '--threads', '1',
         *map(str, arguments)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def seg_train(*arguments: object) -> tuple[int, str, str]:
    process = start(*arguments)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.fixture
def run_in_process(monkeypatch, capsys):
    """Run the command's main(); give exit code and what it said on the error output."""
    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, 'argv', ['seg_train', '--device', 'cpu', *map(str, arguments)])
        code = train.main()
        return code, capsys.readouterr().err
    return run


def metrics_of(out: Path) -> list[dict]:
    path = out / 'metrics.jsonl'
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(out: Path, epochs: int, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 60
    while len(metrics_of(out)) < epochs:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def error_line(err: str) -> str:
    """The command's one line; what stands before it is progress bars and OpenCV's own words."""
    assert 'Traceback' not in err
    lines = [line for line in err.replace('\r', '\n').split('\n') if 'seg_train: error:' in line]
    assert len(lines) == 1, err
    return lines[0]


def test_killed_and_resumed_run_ends_as_the_uninterrupted_one(camvid, recipe_file, tmp_path,
                                                              run_in_process):
    recipe = recipe_file(epochs=20, validate_every=8)
    whole, cut = tmp_path / 'whole', tmp_path / 'new' / 'cut'
    process = start(recipe, '--data', camvid, '--out', cut)
    wait_for(cut, 2, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = len(metrics_of(cut))

    code, out, err = seg_train(recipe, '--data', camvid, '--out', cut, '--resume')
    assert code == 0, err
    assert out.splitlines()[-1] == f'done: {cut / "last.safetensors"}'
    assert run_in_process(recipe, '--data', camvid, '--out', whole)[0] == 0
    assert left < 20  # it was killed underway

    assert [line['epoch'] for line in metrics_of(cut)] == list(range(1, 21))
    for ours, theirs in zip(metrics_of(cut), metrics_of(whole), strict=True):
        assert {**ours, 'seconds': 0} == {**theirs, 'seconds': 0}
    assert [line['epoch'] for line in metrics_of(cut) if 'val_miou' in line] == [8, 16, 20]
    ours, theirs = (load_checkpoint(out / 'last.pt') for out in (cut, whole))
    for part in ('network', 'averaged'):
        assert all(torch.equal(ours[part][name], tensor) for name, tensor in theirs[part].items())

    model = load_model(cut / 'last.safetensors')
    assert model.spec.labels == CAMVID
    assert model.spec.training_size == (64, 64)
    assert model.spec.provenance['epochs'] == 20
    assert model.spec.provenance['validation']['val_miou'] == metrics_of(cut)[-1]['val_miou']
    assert all(torch.equal(model.network.state_dict()[name], tensor)
               for name, tensor in ours['averaged'].items())


class Harm(threading.Thread):
    """Does harm to a run in this process once it has ended an epoch more, on its way to the next.
    """

    def __init__(self, out: Path, harm: Callable[[], object]) -> None:
        super().__init__()
        self.log = out / 'log.txt'
        self.harm = harm
        self.before = self.epochs()
        self.start()

    def epochs(self) -> int:
        return self.log.read_text().count(' epoch ') if self.log.exists() else 0

    def run(self) -> None:
        deadline = time.monotonic() + 60
        while self.epochs() == self.before and time.monotonic() < deadline:
            time.sleep(0.001)
        self.harm()


def test_harm_underway_ends_the_run_with_one_line_and_it_goes_on(camvid, recipe_file, tmp_path,
                                                                 run_in_process):
    out, away = tmp_path / 'run', tmp_path / 'away'
    picture, labels = camvid / 'train' / '001.png', camvid / 'trainannot' / '003.png'
    good, known, other = picture.read_bytes(), labels.read_bytes(), tmp_path / 'other.png'
    cv2.imwrite(str(other), np.full((64, 64), 77, np.uint8))
    arguments = recipe_file(epochs=10_000, validate_every=1), '--data', camvid, '--out', out
    resume: tuple[str, ...] = ()
    for harm, mend, said in (
            (lambda: picture.write_bytes(b''), lambda: picture.write_bytes(good),
             f'{picture}: cannot be read as a picture (OpenCV does not know or take it); '
             'restore or remove it'),
            (lambda: other.rename(labels), lambda: labels.write_bytes(known),
             f'{labels}: class ids [77] are neither a class'),
            (lambda: camvid.rename(away), lambda: away.rename(camvid),
             f'its folder is gone, of the way to it {tmp_path} is left; bring it back'),
            (lambda: out.rename(away), lambda: away.rename(out),
             ': cannot be written (No such file or directory); bring the folder back')):
        harming = Harm(out, harm)
        code, err = run_in_process(*arguments, *resume)
        harming.join()
        assert code == 1
        assert said in error_line(err)
        assert error_line(err).endswith('then go on with --resume')
        mend()
        resume = '--resume',

    epochs = load_checkpoint(out / 'last.pt')['epoch'] + 1
    recipe = recipe_file(epochs=epochs, validate_every=10_000)
    assert run_in_process(recipe, *arguments[1:], '--resume')[0] == 0
    assert metrics_of(out)[-1]['epoch'] == len(metrics_of(out)) == epochs > 4


def test_validation_picture_that_cannot_be_read_is_told_before_training(
        camvid, recipe_file, tmp_path, run_in_process):
    picture = sorted((camvid / 'val').iterdir())[-1]
    picture.write_bytes(picture.read_bytes()[:40])
    out = tmp_path / 'run'
    code, err = run_in_process(recipe_file(), '--data', camvid, '--out', out)
    assert code != 0 and f'{picture}: cannot be read as a picture' in error_line(err)
    assert not (out / 'metrics.jsonl').exists()


def test_interrupted_run_says_so_without_traceback(camvid, recipe_file, tmp_path):
    process = start(recipe_file(epochs=10_000), '--data', camvid, '--out', tmp_path / 'run')
    wait_for(tmp_path / 'run', 1, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert 'Traceback' not in err and err.rstrip().endswith('seg_train: interrupted')


def test_wrong_use_is_one_line_and_code_2(tmp_path):
    code, out, err = seg_train(tmp_path / 'none.yaml', '--data', tmp_path, '--out', tmp_path / 'o')
    assert (code, out) == (2, '')
    assert err == (f'seg_train: error: {tmp_path}/none.yaml: No such file or directory; give the '
                   'path of a recipe, e.g. config/train_camvid.yaml\n')
    assert not (tmp_path / 'o').exists()


def test_existing_run_is_not_overwritten(camvid, recipe_file, tmp_path, run_in_process):
    out = tmp_path / 'run'
    arguments = recipe_file(epochs=1), '--data', camvid, '--out', out
    assert run_in_process(*arguments)[0] == 0
    before = {path: path.read_bytes() for path in out.rglob('*') if path.is_file()}
    code, err = run_in_process(*arguments)
    assert code == 2
    assert f'{out}: holds a run; go on with it by --resume or give another --out' in err
    assert {path: path.read_bytes() for path in out.rglob('*') if path.is_file()} == before
    assert run_in_process(*arguments, '--resume')[0] == 0  # nothing is left to do
    assert len(metrics_of(out)) == 1


def test_plain_layout_trains_with_its_own_classes(plain, recipe_file, tmp_path, run_in_process):
    out = tmp_path / 'run'
    assert run_in_process(recipe_file(epochs=2), '--data', plain, '--out', out)[0] == 0
    spec = load_model(out / 'last.safetensors').spec
    assert spec.labels.names == ('ground', 'wall') and spec.labels.ids == (3, 200)
    assert set(metrics_of(out)[-1]['val_class_iou']) == {'ground', 'wall'}


def test_mean_and_deviation_are_those_of_the_pictures(plain, recipe_file, tmp_path,
                                                      run_in_process):
    out = tmp_path / 'run'
    for split in ('train', 'val'):
        (plain / 'images' / split / 'b.JPG').unlink()
    recipe = recipe_file(epochs=1, augmentation={'crop': [64, 72]})
    assert run_in_process(recipe, '--data', plain, '--out', out)[0] == 0
    # Red of the four equal quarters is (20 id + 10) mod 256 for the ids 3, 200, 9, 255.
    red = [70, 170, 190, 246]
    mean = sum(red) / 4
    spec = load_model(out / 'last.safetensors').spec
    assert spec.mean[0] == pytest.approx(mean, abs=0.01)
    assert spec.std[0] == pytest.approx((sum((r - mean) ** 2 for r in red) / 4) ** 0.5, abs=0.01)


def test_lines_of_a_run_that_never_reached_a_checkpoint_are_dropped(
        camvid, recipe_file, tmp_path, run_in_process):
    out = tmp_path / 'run'
    out.mkdir()
    (out / 'metrics.jsonl').write_text('{"epoch": 1}\n{"epo')  # killed before the checkpoint
    assert run_in_process(recipe_file(epochs=1), '--data', camvid, '--out', out)[0] == 0
    assert [line['epoch'] for line in metrics_of(out)] == [1]


@pytest.mark.parametrize(('changed', 'more', 'said'), [
    ({'epoch': 3}, (), 'unknown key epoch; did you mean epochs?'),
    ({'architecture': 'unet'}, (), 'recipe.yaml: unknown architecture unet; did you mean'),
    ({'arguments': {'depth': 11}}, ('--check',), 'recipe.yaml: unknown key arguments.depth; '),
    ({}, ('--data', 'none'), '/none: no such folder; give the data set with --data'),
    ({}, ('--data', '.'), 'has neither train/ with trainannot/'),
    ({}, ('--resume',), 'run/last.pt: no checkpoint to resume from'),
    ({}, ('--out', 'file'), '/file: cannot be made: File exists; give another --out'),
    ({}, ('--out', 'file/run'), '/file/run: cannot be made: Not a directory'),
    ({}, ('--device', 'tpu9'), '--device tpu9: '),
    ({}, ('--workers', '0'), 'expected 1 or more workers'),
    ({}, ('--threads', '-1'), '0 or more threads')])
def test_fault_of_the_user_is_one_line_and_code_2(camvid, recipe_file, tmp_path, run_in_process,
                                                  monkeypatch, changed, more, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'file').touch()
    code, err = run_in_process(recipe_file(**changed), '--data', camvid, '--out', 'run', *more)
    assert code == 2
    assert said in error_line(err)


def test_drawn_scenes_with_other_classes_are_refused(plain, recipe_file, run_in_process, tmp_path):
    code, err = run_in_process(recipe_file(drawn_share=0.5), '--data', plain,
                               '--out', tmp_path / 'run')
    assert code == 2
    assert 'this data set has ground, wall; set drawn_share to 0' in error_line(err)


def test_checkpoint_of_other_classes_is_refused(camvid, plain, recipe_file, tmp_path,
                                                run_in_process):
    out = tmp_path / 'run'
    assert run_in_process(recipe_file(epochs=1), '--data', camvid, '--out', out)[0] == 0
    code, err = run_in_process(recipe_file(epochs=2), '--data', plain, '--out', out, '--resume')
    assert code == 1
    assert 'last.pt: is the checkpoint of another network' in error_line(err)


@pytest.mark.skipif(torch.cuda.is_available(), reason='the fault is a missing GPU')
def test_missing_gpu_is_told(camvid, recipe_file, tmp_path, run_in_process):
    code, err = run_in_process(recipe_file(), '--data', camvid, '--out', tmp_path / 'run',
                               '--device', 'cuda')
    assert code == 2
    assert 'use cpu, or cuda where torch finds a GPU' in error_line(err)
