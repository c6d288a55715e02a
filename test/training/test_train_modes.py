"""seg_train's ways of doing something else than one run from scratch."""

import json
import shutil
import sys

import cv2
import numpy as np
import pytest
import torch
import yaml

from seg_ros.model_file import load_model
from seg_ros.training import train


@pytest.fixture
def seg_train(monkeypatch, capsys):
    """Run the command's main(); give exit code, output, and error output."""
    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, 'argv', ['seg_train', '--device', 'cpu', *map(str, arguments)])
        code = train.main()
        printed = capsys.readouterr()
        assert 'Traceback' not in printed.err
        return code, printed.out, printed.err
    return run


def metrics_of(out):
    return [json.loads(line) for line in (out / 'metrics.jsonl').read_text().splitlines()]


def test_run_folder_tells_all_of_the_run(camvid, recipe_file, tmp_path, seg_train):
    out = tmp_path / 'run'
    recipe = recipe_file(epochs=2)
    assert seg_train(recipe, '--data', camvid, '--out', out)[0] == 0
    assert sorted(path.name for path in out.iterdir()) == [
        'best.safetensors', 'curves.png', 'last.pt', 'last.safetensors', 'log.txt',
        'metrics.jsonl', 'recipe.yaml', 'tensorboard', 'versions.json', 'worst_pictures.png']
    written = yaml.safe_load((out / 'recipe.yaml').read_text())
    assert written['seed'] == 3
    arguments = {**yaml.safe_load(recipe.read_text())['arguments'], 'activation': 'relu',
                 'bounded': True, 'complementary': False}  # the constructor's defaults
    assert written['arguments'] == load_model(out / 'last.safetensors').spec.arguments == arguments
    assert json.loads((out / 'versions.json').read_text())['torch'] == torch.__version__
    log = (out / 'log.txt').read_text()
    assert 'epoch 2' in log and 'the network trains on cpu, in float32\n' in log
    for name in ('curves.png', 'worst_pictures.png'):
        assert cv2.imread(str(out / name)).std() > 10, name


def test_gpu_is_used_where_there_is_one_and_no_device_is_named(camvid, recipe_file, tmp_path,
                                                               monkeypatch):
    out = tmp_path / 'run'
    monkeypatch.setattr(sys, 'argv', ['seg_train', str(recipe_file(epochs=1)), '--data',
                                      str(camvid), '--out', str(out)])
    assert train.main() == 0
    device = 'cuda:0' if torch.cuda.is_available() else 'cpu'
    assert f'the network trains on {device}, in float32\n' in (out / 'log.txt').read_text()


def test_check_finds_nothing_wrong_and_trains_nothing(camvid, recipe_file, tmp_path, seg_train):
    out = tmp_path / 'run'
    code, printed, _ = seg_train(recipe_file(), '--data', camvid, '--out', out, '--check')
    assert code == 0 and 'Bicyclist' in printed
    assert [path.name for path in out.iterdir()] == ['contact_sheet.png']


def test_check_of_faulty_data_ends_with_1(camvid, recipe_file, tmp_path, seg_train):
    (camvid / 'trainannot' / '001.png').unlink()
    code, printed, _ = seg_train(recipe_file(), '--data', camvid, '--out', tmp_path / 'run',
                                 '--check')
    assert code == 1 and 'trainannot/001.png' in printed


def test_init_starts_from_the_weights_and_statistics_of_the_file(camvid, recipe_file, tmp_path,
                                                                 seg_train):
    first, second = tmp_path / 'first', tmp_path / 'second'
    assert seg_train(recipe_file(epochs=1), '--data', camvid, '--out', first)[0] == 0
    for path in (camvid / 'train').iterdir():  # darker pictures have another mean
        cv2.imwrite(str(path), cv2.imread(str(path)) // 2)
    still = recipe_file(epochs=1, learning_rate=0, seed=9)  # nothing but BatchNorm moves
    code, printed, _ = seg_train(still, '--data', camvid, '--out', second,
                                 '--init', first / 'last.safetensors')
    assert code == 0 and 'its weights are kept' in printed
    before, after = (load_model(out / 'last.safetensors') for out in (first, second))
    assert before.spec.mean == after.spec.mean
    theirs = dict(before.network.named_parameters())
    for name, parameter in after.network.named_parameters():
        assert torch.allclose(parameter, theirs[name], atol=1e-6), name


def test_run_that_began_with_init_goes_on_with_the_statistics_of_the_file(
        camvid, recipe_file, tmp_path, seg_train):
    first, second = tmp_path / 'first', tmp_path / 'second'
    assert seg_train(recipe_file(epochs=1), '--data', camvid, '--out', first)[0] == 0
    for path in (camvid / 'train').iterdir():
        cv2.imwrite(str(path), cv2.imread(str(path)) // 2)
    assert seg_train(recipe_file(epochs=1), '--data', camvid, '--out', second,
                     '--init', first / 'last.safetensors')[0] == 0
    assert seg_train(recipe_file(epochs=2), '--data', camvid, '--out', second, '--resume')[0] == 0
    before, after = (load_model(out / 'last.safetensors').spec for out in (first, second))
    assert (after.mean, after.std) == (before.mean, before.std)
    assert after.provenance['epochs'] == 2
    assert after.provenance['start'] == before.provenance


def test_init_on_other_classes_replaces_the_head(camvid, plain, recipe_file, tmp_path, seg_train):
    first, second = tmp_path / 'first', tmp_path / 'second'
    assert seg_train(recipe_file(epochs=1), '--data', camvid, '--out', first)[0] == 0
    code, printed, _ = seg_train(recipe_file(epochs=1), '--data', plain, '--out', second,
                                 '--init', first / 'last.safetensors')
    assert code == 0 and 'but for those of classify, which begin anew' in printed
    assert load_model(second / 'last.safetensors').spec.labels.names == ('ground', 'wall')


@pytest.mark.parametrize('options', [
    ('--resume', '--init', 'x.safetensors'), ('--resume', '--check'), ('--resume', '--folds'),
    ('--check', '--init', 'x.safetensors'), ('--resume', '--profile')])
def test_options_that_do_not_go_together_are_refused(camvid, recipe_file, tmp_path, seg_train,
                                                     options):
    code, _, err = seg_train(recipe_file(), '--data', camvid, '--out', tmp_path / 'run', *options)
    assert code == 2 and 'they do not go together' in err
    assert not (tmp_path / 'run').exists()


def test_resumed_run_keeps_the_order_of_its_classes(plain, recipe_file, tmp_path, seg_train):
    arguments = '--data', plain, '--out', tmp_path / 'run'
    assert seg_train(recipe_file(epochs=1), *arguments)[0] == 0
    classes = plain / 'classes.yaml'
    values = yaml.safe_load(classes.read_text())
    classes.write_text(yaml.safe_dump({**values, 'ids': values['ids'][::-1]}))
    code, _, err = seg_train(recipe_file(epochs=2), *arguments, '--resume')
    assert code == 1 and 'or of other classes' in err


def test_resumed_run_says_what_has_changed(camvid, recipe_file, tmp_path, seg_train):
    arguments = '--data', camvid, '--out', tmp_path / 'run'
    assert seg_train(recipe_file(epochs=1), *arguments)[0] == 0
    for folder in ('train', 'trainannot'):
        (camvid / folder / '004.png').unlink()
    code, printed, _ = seg_train(recipe_file(epochs=2, class_balance=1), *arguments, '--resume')
    assert code == 0
    assert 'the recipe has changed since the run began: class_balance\n' in printed
    assert 'the pictures have changed since the run began: there were 5, now there are 4\n' in (
        printed)


def test_epochs_of_the_command_line_replace_those_of_the_recipe(camvid, recipe_file, tmp_path,
                                                                seg_train):
    out = tmp_path / 'run'
    arguments = recipe_file(epochs=5), '--data', camvid, '--out', out, '--epochs'
    code, _, err = seg_train(*arguments, 0)
    assert code == 2 and '--epochs: epochs 0: expected 1 to ' in err
    assert not out.exists()
    assert seg_train(*arguments, 1)[0] == 0
    assert len(metrics_of(out)) == 1
    assert yaml.safe_load((out / 'recipe.yaml').read_text())['epochs'] == 1


def test_what_is_trained_on_is_not_scored_on(camvid, recipe_file, tmp_path, seg_train):
    out = tmp_path / 'run'
    recipe = recipe_file(epochs=2, splits=['train', 'val'])
    assert seg_train(recipe, '--data', camvid, '--out', out)[0] == 0
    assert all('val_miou' not in line for line in metrics_of(out))
    provenance = load_model(out / 'last.safetensors').spec.provenance
    assert provenance['data'] == 'camvid, train + val' and provenance['validation'] == {}
    assert not (out / 'worst_pictures.png').exists()
    assert not (out / 'best.safetensors').exists()


@pytest.fixture
def two_drives(camvid):
    """The CamVid folder with pictures of the sequences a (train) and b (val)."""
    for split, name in (('train', 'a'), ('val', 'b')):
        for folder in (split, f'{split}annot'):
            for path in list((camvid / folder).iterdir()):
                path.rename(path.with_name(f'{name}_{path.name}'))
    return camvid


def test_folds_go_on_where_they_stopped(two_drives, recipe_file, tmp_path, seg_train):
    out = tmp_path / 'folds'
    arguments = recipe_file(epochs=1), '--data', two_drives, '--out', out, '--folds'
    code, printed, _ = seg_train(*arguments)
    assert code == 0
    rows = printed.splitlines()[-5:]
    assert [row.split(' | ')[0] for row in rows] == [
        '| run', '|---|---:|', '| without a', '| without b', '| mean, standard deviation']
    assert rows == (out / 'table.md').read_text().splitlines()
    for name in ('without_a', 'without_b'):
        assert metrics_of(out / name)[-1]['epoch'] == 1
    kept = (out / 'without_a' / 'last.safetensors').read_bytes()
    shutil.rmtree(out / 'without_b')
    (out / 'without_a' / 'worst_pictures.png').unlink()  # as if killed before the very end
    code, printed, _ = seg_train(*arguments)
    assert code == 0 and printed.splitlines()[-5:] == rows
    assert (out / 'without_a' / 'last.safetensors').read_bytes() == kept
    assert (out / 'without_a' / 'worst_pictures.png').exists()
    other = recipe_file(epochs=1, class_balance=1), *arguments[1:]
    code, _, err = seg_train(*other)
    assert code == 2 and 'without_a: holds a run of another recipe' in err


def test_variants_are_trained_and_compared(camvid, recipe_file, tmp_path, seg_train):
    file = tmp_path / 'variants.yaml'
    file.write_text('shared: {epochs: 1}\nseeds: [1, 2]\n'
                    'variants: {plain: {}, with terms: {class_terms: conditioned}}\n')
    out = tmp_path / 'study'
    code, printed, _ = seg_train(recipe_file(), '--data', camvid, '--out', out, '--variants', file)
    assert code == 0
    names = ['plain_seed_1', 'plain_seed_2', 'with_terms_seed_1', 'with_terms_seed_2']
    scores = [metrics_of(out / name)[-1]['val_miou'] for name in names]
    assert printed.splitlines()[-2:] == [
        f'| plain | {scores[0]:.1f} | {scores[1]:.1f} | {np.mean(scores[:2]):.1f} |',
        f'| with terms | {scores[2]:.1f} | {scores[3]:.1f} | {np.mean(scores[2:]):.1f} |']


def test_profile_measures_and_leaves_no_run(camvid, recipe_file, tmp_path, seg_train):
    out = tmp_path / 'run'
    code, printed, _ = seg_train(recipe_file(), '--data', camvid, '--out', out, '--profile')
    assert code == 0 and 'waiting for data' in printed
    assert not out.exists()


def test_two_ways_at_once_are_refused(camvid, recipe_file, tmp_path, seg_train, capsys):
    with pytest.raises(SystemExit, match='2'):
        seg_train(recipe_file(), '--data', camvid, '--out', tmp_path, '--check', '--folds')
    assert 'not allowed with argument' in capsys.readouterr().err
