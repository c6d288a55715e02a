"""What a run leaves behind, and what of it survives a kill, a full disk and --resume."""

import dataclasses
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tiny_model import SPEC, tiny_network

from seg_ros import __version__
from seg_ros.errors import ConfigError, TrainingError
from seg_ros.model_file import load_model, save_model
from seg_ros.training.checkpoint import save_checkpoint
from seg_ros.training.folder_lock import lock_folder
from seg_ros.training.recipe import load_recipe
from seg_ros.training.run_folder import LOGGER, RunFolder


@pytest.fixture
def folder(tmp_path):
    """A new run's folder, opened."""
    with RunFolder(tmp_path / 'run').open(resume=False) as folder:
        yield folder


@contextmanager
def full_disk(limit: int):
    """Refuse to write files that are larger."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def validate(folder: RunFolder, epoch: int, miou: float) -> None:
    """Do what a run does in an epoch, up to its checkpoint."""
    provenance = {'epochs': epoch, 'validation': {'val_miou': miou}}
    save_model(folder.last, tiny_network(), dataclasses.replace(SPEC, provenance=provenance))
    folder.add_epoch({'epoch': epoch, 'loss': 1.5, 'val_miou': miou})


def train(folder: RunFolder, epoch: int, miou: float) -> None:
    validate(folder, epoch, miou)
    folder.checkpoint.write_text(f'state after epoch {epoch}')
    folder.keep_best()


def resumed(folder: RunFolder, epochs: int) -> RunFolder:
    """Take up the run as a new process does that reads a checkpoint of so many epochs."""
    folder.close()
    folder = RunFolder(folder.path).open(resume=True)
    folder.start_after(epochs)
    return folder


def best_of(folder: RunFolder) -> tuple[int, float]:
    """Epoch and score of the best model file, as it tells them itself."""
    provenance = load_model(folder.best).spec.provenance
    return provenance['epochs'], provenance['validation']['val_miou']


def test_each_epoch_is_one_line(folder):
    folder.start_after(0)
    lines = [{'epoch': 1, 'loss': None}, {'epoch': 2, 'loss': 0.1, 'val_class_iou': {'é': 1.5}}]
    for line in lines:
        folder.add_epoch(line)
    text = (folder.path / 'metrics.jsonl').read_text()
    assert [json.loads(line) for line in text.splitlines()] == folder.lines() == lines


def test_lines_ahead_of_the_checkpoint_and_half_ones_are_dropped(folder):
    for epoch in (1, 2, 3):
        folder.add_epoch({'epoch': epoch, 'loss': 1 / epoch})
    whole = folder.metrics.read_bytes().splitlines(keepends=True)
    folder.metrics.write_bytes(b''.join(whole) + b'{"epoch": 4, "lo')
    assert [line['epoch'] for line in folder.lines()] == [1, 2, 3]
    folder.start_after(2)
    assert folder.metrics.read_bytes() == whole[0] + whole[1]
    folder.add_epoch({'epoch': 3, 'loss': 7.0})
    assert folder.lines()[2:] == [{'epoch': 3, 'loss': 7.0}]


def test_full_disk_names_the_file_and_the_run_goes_on_afterwards(folder):
    folder.start_after(0)
    train(folder, 1, 20.0)
    with full_disk(100_000), pytest.raises(TrainingError, match=(
            'run/metrics.jsonl: cannot be written .*free some space.*then go on with --resume')):
        folder.add_epoch({'epoch': 2, 'text': 'long' * 100_000})
    assert folder.metrics.stat().st_size == 100_000  # the line is left half
    again = resumed(folder, 1)
    train(again, 2, 30.0)
    again.close()
    assert [line['epoch'] for line in again.lines()] == [1, 2]


def test_folder_that_vanished_is_named_with_its_remedy(folder):
    folder.start_after(0)
    train(folder, 1, 20.0)
    shutil.rmtree(folder.path)
    with pytest.raises(TrainingError, match='run/metrics.jsonl: .*bring the folder back, then go'):
        folder.add_epoch({'epoch': 2})
    with pytest.raises(TrainingError, match='run/log.txt: .*No such file'):
        LOGGER.info('a word')
    with (pytest.raises(TrainingError, match=r'run/last.safetensors: .*\(No such file or '
                        r'directory\); bring the folder back, then go on with --resume'),
          folder.writing(folder.last)):
        save_model(folder.last, tiny_network(), SPEC)
    assert not folder.path.exists()


def test_full_disk_in_a_model_file_or_checkpoint_is_told_as_in_any_other_file(folder):
    train(folder, 1, 20.0)
    for path, write in ((folder.last, lambda: save_model(folder.last, tiny_network(), SPEC)),
                        (folder.checkpoint, lambda: save_checkpoint(
                            folder.checkpoint, {'weights': torch.zeros(100_000)}))):
        before = path.read_bytes()
        with (full_disk(10_000), pytest.raises(
                TrainingError, match=f'{path}: cannot be written .File too large.; free some '
                                     'space or make it writable, then go on with --resume'),
              folder.writing(path)):
            write()
        assert path.read_bytes() == before


def test_fault_before_the_first_checkpoint_asks_for_a_new_start(folder):
    folder.versions.mkdir()
    with pytest.raises(TrainingError, match='versions.json: cannot be written .*start again'):
        folder.write_versions('cpu')


def test_best_is_the_highest_score_and_the_first_of_equals(folder):
    folder.start_after(0)
    best = []
    for epoch, miou in enumerate((10.0, 30.0, 20.0, 30.0, 31.0), start=1):
        train(folder, epoch, miou)
        best.append(best_of(folder))
    assert best == [(1, 10.0), (2, 30.0), (2, 30.0), (2, 30.0), (5, 31.0)]


def test_epoch_without_validation_does_not_touch_the_best(folder):
    folder.start_after(0)
    folder.add_epoch({'epoch': 1, 'loss': 3.0})
    folder.keep_best()
    assert not folder.best.exists()
    train(folder, 2, 10.0)
    folder.best.unlink()
    folder.add_epoch({'epoch': 3, 'loss': 2.0})
    folder.keep_best()
    assert not folder.best.exists()


def test_best_survives_resume(folder):
    folder.start_after(0)
    train(folder, 1, 30.0)
    again = resumed(folder, 1)
    train(again, 2, 25.0)
    assert best_of(again) == (1, 30.0)
    train(again, 3, 35.0)
    again.close()
    assert best_of(again) == (3, 35.0)


def test_kill_between_checkpoint_and_best_is_made_good_on_resume(folder):
    folder.start_after(0)
    train(folder, 1, 10.0)
    validate(folder, 2, 40.0)
    folder.checkpoint.write_text('state after epoch 2')
    assert best_of(folder) == (1, 10.0)
    resumed(folder, 2).close()
    assert best_of(folder) == (2, 40.0)


def test_best_of_an_epoch_that_a_kill_undid_does_not_count(folder):
    folder.start_after(0)
    train(folder, 1, 10.0)
    validate(folder, 2, 40.0)  # no checkpoint
    again = resumed(folder, 1)
    assert best_of(again) == (1, 10.0)
    train(again, 2, 5.0)  # not the same again, as on another device
    again.close()
    assert best_of(again) == (1, 10.0)


def test_damaged_last_model_does_not_keep_a_run_from_going_on(folder):
    folder.start_after(0)
    train(folder, 1, 10.0)
    folder.last.write_bytes(b'damaged')
    resumed(folder, 1).close()
    assert best_of(folder) == (1, 10.0)


def events(folder: RunFolder) -> dict[str, list[tuple[int, float]]]:
    """Steps and values of each tag, as TensorBoard reads them."""
    reader = EventAccumulator(str(folder.tensorboard))
    reader.Reload()
    return {tag: [(event.step, event.value) for event in reader.Scalars(tag)]
            for tag in reader.Tags()['scalars']}


def test_tensorboard_reads_what_the_lines_say(folder):
    folder.start_after(0)
    folder.add_epoch({'epoch': 1, 'loss': None, 'learning_rate': 0.5})
    folder.add_epoch({'epoch': 2, 'loss': 0.25, 'learning_rate': 0.125, 'val_miou': 62.5,
                      'val_pixel_accuracy': 90.0, 'drawn_miou': 75,
                      'val_class_iou': {'Sky': 87.5, 'Fence': None}})
    # Read while the run goes on, as it may be killed at any moment.
    assert events(folder) == {
        'learning_rate': [(1, 0.5), (2, 0.125)], 'loss': [(2, 0.25)], 'val_miou': [(2, 62.5)],
        'val_pixel_accuracy': [(2, 90.0)], 'drawn_miou': [(2, 75.0)],
        'val_class_iou/Sky': [(2, 87.5)]}


def test_full_disk_is_one_error_for_tensorboard_too(folder, capfd):
    folder.start_after(0)
    for epoch in range(1, 40):
        folder.add_epoch({'epoch': epoch, 'loss': 1.0})
    written, = folder.tensorboard.iterdir()
    before = events(folder)
    with full_disk(written.stat().st_size + 20), pytest.raises(
            TrainingError, match='/tensorboard: cannot be written .*free some space'):
        folder.add_epoch({'epoch': 40, 'loss': 1.0})
    assert capfd.readouterr() == ('', '')
    assert events(folder) == before  # half an event is none


def test_epoch_that_is_trained_again_has_one_point_in_tensorboard(folder):
    folder.start_after(0)
    for epoch, loss in ((1, 4.0), (2, 2.0), (3, 1.0)):
        folder.add_epoch({'epoch': epoch, 'loss': loss})
    folder.checkpoint.touch()
    again = resumed(folder, 2)
    again.add_epoch({'epoch': 3, 'loss': 0.5})
    again.close()
    assert events(again) == {'loss': [(1, 4.0), (2, 2.0), (3, 0.5)]}


def test_without_tensorboard_a_line_says_so_and_the_run_goes_on(folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'torch.utils.tensorboard', None)
    folder.start_after(0)
    folder.add_epoch({'epoch': 1, 'loss': 1.0})
    said = capsys.readouterr().out
    assert said.count('\n') == 1 and 'pip install -r requirements/training.txt' in said
    assert len(folder.lines()) == 1 and not folder.tensorboard.exists()


def test_what_is_printed_is_logged_with_its_time_and_goes_on_after_resume(folder, capsys):
    folder.checkpoint.touch()
    LOGGER.info('first words')
    again = resumed(folder, 0)
    LOGGER.warning('last words: é')
    again.close()
    LOGGER.info('said to nobody')
    assert capsys.readouterr().out == 'first words\nlast words: é\n'
    time = r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d'
    assert re.fullmatch(f'{time} first words\n{time} last words: é\n',
                        again.log.read_text(encoding='utf-8'))


@pytest.mark.parametrize(('error', 'said'), [
    (TrainingError('no luck'), ' error: no luck\n'), (KeyboardInterrupt(), ' interrupted\n')])
def test_what_ends_a_run_is_logged_and_left_to_the_command_to_print(tmp_path, capsys, error, said):
    folder = RunFolder(tmp_path)
    with pytest.raises(type(error)), folder.open(resume=False):
        raise error
    LOGGER.info('said to nobody')
    assert folder.log.read_text().endswith(said)
    assert capsys.readouterr().out == ''


def test_recipe_is_kept_whole(folder, recipe):
    values = recipe(seed=9)
    folder.write_recipe(values)
    assert load_recipe(folder.recipe) == values
    assert 'seed: 9\n' in folder.recipe.read_text()


def test_versions_are_those_of_this_process(folder, capsys):
    folder.write_versions('cpu')
    values = json.loads(folder.versions.read_text())
    head = subprocess.run(['git', 'rev-parse', 'HEAD'], cwd=Path(__file__).parent, text=True,
                          capture_output=True).stdout.strip()
    commit = values.pop('commit')
    assert commit is None or commit.removesuffix('-dirty') == head
    processor = values.pop('processor')
    assert processor and isinstance(processor, str)
    assert values.pop('opencv').count('.') >= 2
    assert values == {'seg_ros': __version__, 'python': platform.python_version(),
                      'torch': torch.__version__, 'numpy': np.__version__,
                      'threads': torch.get_num_threads(), 'device': 'cpu'}
    assert f'torch {torch.__version__}, ' in capsys.readouterr().out
    assert f'torch {torch.__version__}, ' in folder.log.read_text()


def test_a_run_is_neither_overwritten_nor_taken_up_by_mistake(tmp_path):
    with pytest.raises(ConfigError, match='last.pt: no checkpoint to resume from'):
        RunFolder(tmp_path / 'run').open(resume=True)
    assert not (tmp_path / 'run').exists()
    for names, remedy in ((('best.safetensors',), 'move its files away'),
                          (('last.safetensors', 'metrics.jsonl'), 'move its files away'),
                          (('last.pt',), 'go on with it by --resume')):
        folder = tmp_path / names[0]
        folder.mkdir()
        for name in names:
            (folder / name).write_text('{"epoch": 1}\n{"epoch": 2}\n')
        with pytest.raises(ConfigError, match=f'holds a run; {remedy} or give another --out'):
            RunFolder(folder).open(resume=False)
    (tmp_path / 'file').touch()
    with pytest.raises(ConfigError, match='file/run: cannot be made: Not a directory'):
        RunFolder(tmp_path / 'file' / 'run').open(resume=False)


def test_a_run_that_ended_before_its_first_checkpoint_begins_anew(tmp_path):
    (tmp_path / 'last.safetensors').touch()
    (tmp_path / 'metrics.jsonl').write_text('{"epoch": 1}\n')
    RunFolder(tmp_path).open(resume=False).close()


def test_folder_is_one_run_s_at_a_time(tmp_path):
    for resume in (False, True):
        with RunFolder(tmp_path).open(resume) as first:
            LOGGER.info('the first goes on')
            for second in (False, True)[:1 + resume]:
                with pytest.raises(ConfigError, match=(
                        f'{tmp_path}: another seg_train is writing its run there; wait for it')):
                    RunFolder(tmp_path).open(second)
        assert first.log.read_text().endswith('the first goes on\n')
        first.checkpoint.touch()


def test_lock_ends_with_the_process_that_held_it(tmp_path):
    code = ('import os, sys; from pathlib import Path; from seg_ros.training.folder_lock import '
            'lock_folder; lock_folder(Path(sys.argv[1])); os.kill(os.getpid(), 9)')
    assert subprocess.run([sys.executable, '-c', code, tmp_path]).returncode == -9
    os.close(lock_folder(tmp_path))


def test_files_that_a_kill_left_half_are_removed(tmp_path):
    (tmp_path / '.last.4711.part.safetensors').write_bytes(b'half')
    (tmp_path / 'notes.txt').write_text('of the user')
    with RunFolder(tmp_path).open(resume=False):
        assert [path.name for path in tmp_path.iterdir()] == ['notes.txt']
