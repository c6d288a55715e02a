"""seg_train under torchrun: two processes, one run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def together(*arguments: object) -> tuple[int, str, str]:
    environment = {**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': os.pathsep.join(
        [str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])])}
    done = subprocess.run(
        [sys.executable, '-m', 'torch.distributed.run', '--standalone', '--nproc-per-node', '2',
         '-m', 'seg_ros.training.train', '--device', 'cpu', '--threads', '1',
         *map(str, arguments)],
        env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def metrics_of(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / 'metrics.jsonl').read_text().splitlines()]


def test_two_processes_leave_one_run_folder_and_go_on_with_it(camvid, recipe_file, tmp_path):
    out = tmp_path / 'run'
    for epochs, options in ((1, ()), (2, ('--resume',))):
        recipe = recipe_file(epochs=epochs, validate_every=1)
        code, printed, err = together(recipe, '--data', camvid, '--out', out, *options)
        assert code == 0, err
        assert printed.count('done: ') == 1  # one of both speaks
        assert [line['epoch'] for line in metrics_of(out)] == [*range(1, epochs + 1)]
    assert (out / 'best.safetensors').exists() and (out / 'worst_pictures.png').exists()


@pytest.mark.parametrize('fault', ['picture', 'folder'])
def test_fault_is_told_once_and_ends_both(camvid, recipe_file, tmp_path, fault):
    """One that the first process meets while the other waits for it."""
    out = tmp_path / 'run'
    if fault == 'picture':
        (camvid / 'val' / '000.png').write_bytes(b'no picture')
        said = ('val/000.png: cannot be read as a picture (OpenCV does not know or take it); '
                'restore or remove it')
    else:
        out.write_text('not a folder')
        said = 'run: cannot be made: File exists; give another --out'
    code, _, err = together(recipe_file(epochs=1), '--data', camvid, '--out', out)
    lines = [line for line in err.replace('\r', '\n').splitlines() if 'seg_train: error:' in line]
    assert code == 1 and len(lines) == 1 and said in lines[0], err


def test_folds_are_trained_by_both(camvid, recipe_file, tmp_path):
    for split, name in (('train', 'a'), ('val', 'b')):
        for folder in (split, f'{split}annot'):
            for path in list((camvid / folder).iterdir()):
                path.rename(path.with_name(f'{name}_{path.name}'))
    # A fold has two pictures, one for each process: BatchNorm needs a larger crop for it.
    recipe = recipe_file(epochs=1, augmentation={'crop': [128, 128]})
    arguments = recipe, '--data', camvid, '--out', tmp_path / 'folds', '--folds'
    tables = []
    for _ in range(2):  # the second time nothing is left to do
        code, printed, err = together(*arguments)
        assert code == 0, err
        tables.append(printed.splitlines()[-5:])
    assert tables[0] == tables[1] and tables[0][0] == '| run | mIoU |'
