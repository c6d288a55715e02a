"""Checkpoints: whole or not at all, and never code."""

import resource
import signal
import subprocess
import sys

import pytest
import torch

from seg_ros.errors import TrainingError
from seg_ros.training.checkpoint import load_checkpoint, save_checkpoint

KILLED_AT = 100_000  # bytes


def test_state_is_read_back(tmp_path):
    path = tmp_path / 'last.pt'
    save_checkpoint(path, {'weights': torch.arange(5.0), 'epoch': 3, 'recipe': '{}'})
    state = load_checkpoint(path)
    assert torch.equal(state['weights'], torch.arange(5.0))
    assert (state['epoch'], state['recipe']) == (3, '{}')
    assert [p.name for p in tmp_path.iterdir()] == ['last.pt']


def test_kill_in_the_middle_of_writing_leaves_the_older_state(tmp_path):
    path = tmp_path / 'last.pt'
    save_checkpoint(path, {'epoch': 1})
    code = ('import resource, signal, sys, torch; from pathlib import Path; '
            'from seg_ros.training.checkpoint import save_checkpoint; '
            'signal.signal(signal.SIGXFSZ, signal.SIG_DFL); '  # the limit is where it dies
            f'resource.setrlimit(resource.RLIMIT_FSIZE, ({KILLED_AT}, {KILLED_AT})); '
            f'save_checkpoint(Path(sys.argv[1]), {{"weights": torch.zeros({KILLED_AT})}})')
    child = subprocess.Popen([sys.executable, '-c', code, path])
    assert child.wait() == -signal.SIGXFSZ
    assert (tmp_path / f'.last.{child.pid}.part.pt').stat().st_size == KILLED_AT
    assert load_checkpoint(path) == {'epoch': 1}
    save_checkpoint(path, {'epoch': 2})
    assert load_checkpoint(path) == {'epoch': 2}


def test_full_disk_leaves_the_older_state(tmp_path):
    path = tmp_path / 'last.pt'
    save_checkpoint(path, {'epoch': 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError, match='File too large: .*last.pt'):
            save_checkpoint(path, {'epoch': 2, 'weights': torch.zeros(1_000_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert load_checkpoint(path) == {'epoch': 1}
    assert [p.name for p in tmp_path.iterdir()] == ['last.pt']


def test_missing_folder_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match='none/last.pt'):
        save_checkpoint(tmp_path / 'none' / 'last.pt', {'epoch': 1})


def test_missing_checkpoint_is_told(tmp_path):
    with pytest.raises(TrainingError, match='last.pt: no checkpoint to resume from'):
        load_checkpoint(tmp_path / 'last.pt')


@pytest.mark.parametrize('share', [0.0, 0.3, 0.99])
def test_truncated_checkpoint_is_refused(tmp_path, share):
    path = tmp_path / 'last.pt'
    save_checkpoint(path, {'weights': torch.zeros(1000)})
    data = path.read_bytes()
    path.write_bytes(data[:int(share * len(data))])
    with pytest.raises(TrainingError, match=f'{path}: damaged'):
        load_checkpoint(path)


class Bomb:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return (open, (self.path, 'w'))


def test_foreign_pickle_is_refused_and_never_run(tmp_path):
    torch.save({'epoch': Bomb(str(tmp_path / 'harm'))}, tmp_path / 'last.pt')
    with pytest.raises(TrainingError, match='damaged, or not written by seg_train'):
        load_checkpoint(tmp_path / 'last.pt')
    assert not (tmp_path / 'harm').exists()


def test_other_tensors_are_refused(tmp_path):
    torch.save(torch.zeros(3), tmp_path / 'last.pt')
    with pytest.raises(TrainingError, match='is not the state of a run'):
        load_checkpoint(tmp_path / 'last.pt')
