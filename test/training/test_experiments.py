"""Comparing runs: variants of a recipe, and sequences left out in turn."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from seg_ros.errors import ConfigError
from seg_ros.networks import build_network
from seg_ros.training.dataset import sequence_of
from seg_ros.training.experiments import (
    Experiment,
    leave_sequences_out,
    read_variants,
    write_table,
)
from seg_ros.training.recipe import load_recipe
from seg_ros.training.run import RunData


@pytest.fixture
def recipe(recipe_file):
    return load_recipe(recipe_file())


@pytest.fixture
def variants_file(tmp_path):
    def write(values):
        path = tmp_path / 'variants.yaml'
        path.write_text(yaml.safe_dump(values, sort_keys=False))
        return path
    return write


@pytest.fixture
def sequences(camvid):
    """The CamVid folder with names of sequences: a, b, c, d of 1, 2, 3, 4 pictures."""
    def copy(split, names):
        sources = sorted((camvid / split).iterdir())
        for folder in (split, f'{split}annot'):
            for index, name in enumerate(names):
                source = camvid / folder / sources[index % len(sources)].name
                shutil.copy(source, camvid / folder / f'{name}_{index}.png')
            for source in sources:
                (camvid / folder / source.name).unlink()
    copy('train', 'abbcdd')
    copy('val', 'ccdd')
    return camvid


def names_of(data):
    return sorted(picture.name[0] for picture, _ in data.pairs)


def test_variants_are_the_recipe_with_their_changes_for_each_seed(recipe, variants_file, camvid):
    path = variants_file({
        'shared': {'epochs': 2, 'augmentation': {'scale': [1.0, 2.0]}}, 'seeds': [4, 5],
        'variants': {'plain': {}, 'Lovasz': {'lovasz_weight': 1},
                     'small crop': {'augmentation': {'crop': [32, 40]}}}})
    experiments = read_variants(path, recipe, camvid)
    assert [(e.group, e.repeat, e.recipe.seed) for e in experiments] == [
        (name, f'seed {seed}', seed) for name in ('plain', 'Lovasz', 'small crop')
        for seed in (4, 5)]
    plain, lovasz, crop = (experiments[index].recipe for index in (0, 2, 4))
    assert (plain.epochs, plain.lovasz_weight, lovasz.lovasz_weight) == (2, 0.0, 1.0)
    assert plain.arguments == recipe.arguments
    assert crop.augmentation.crop == (32, 40) and crop.augmentation.scale == (1.0, 2.0)
    assert plain.augmentation.crop == recipe.augmentation.crop
    assert [len(e.data.train) for e in experiments] == [5] * 6
    assert len({e.folder for e in experiments}) == 6


def test_variant_with_a_seed_of_its_own_is_told_by_it(recipe, variants_file, camvid):
    path = variants_file({'seeds': [1], 'variants': {'plain': {}, 'again': {'seed': 2}}})
    assert [e.repeat for e in read_variants(path, recipe, camvid)] == ['seed 1', 'seed 2']


def test_arguments_of_the_network_are_changed_one_by_one(recipe, variants_file, camvid):
    path = variants_file({'variants': {'wide': {'arguments': {'pyramid': 24}}}})
    wide, = read_variants(path, recipe, camvid)
    assert wide.recipe.arguments == {**recipe.arguments, 'pyramid': 24}


@pytest.mark.parametrize(('values', 'said'), [
    ({'variants': {'x': {'epoch': 3}}}, 'x: unknown key epoch; did you mean epochs?'),
    ({'variants': {'x': {'epochs': 0}}}, 'x: epochs 0: expected 1 to'),
    ({'variants': {'x': {'augmentation': {'crops': 1}}}}, 'did you mean augmentation.crop?'),
    ({'variants': {'x': 5}}, 'x: expected "key: value" lines, got 5'),
    ({'variant': {}}, 'unknown key variant; did you mean variants?'),
    ({'variants': {}}, 'variants: expected names'), ({'seeds': [1]}, 'variants: expected names'),
    ({'seeds': 3, 'variants': {'x': {}}}, 'seeds: expected a list of numbers, got 3'),
    ({'seeds': ['a'], 'variants': {'x': {}}}, "seeds: seed: expected int, got 'a'"),
    ({'variants': {'x': {'splits': ['train', 'val']}}}, 'x: with val among splits nothing is'),
    ([1], 'expected shared, seeds, variants')])
def test_fault_in_a_file_of_variants_names_file_and_key(recipe, variants_file, camvid, values,
                                                        said):
    path = variants_file(values)
    with pytest.raises(ConfigError) as caught:
        read_variants(path, recipe, camvid)
    assert str(caught.value).startswith(str(path)) and said in str(caught.value)


def test_each_fold_is_scored_on_sequences_that_it_has_not_seen(recipe, sequences):
    folds = leave_sequences_out(recipe, sequences, 3)
    # The longest first, each to the emptiest fold: d (4), c (3), b (2), then a (1) joins b.
    assert [names_of(fold.data.validation) for fold in folds] == [
        list('dddd'), list('ccc'), list('abb')]
    for fold in folds:
        seen = {sequence_of(picture) for picture, _ in fold.data.train.pairs}
        assert not seen & {sequence_of(picture) for picture, _ in fold.data.validation.pairs}
        assert len(fold.data.train) + len(fold.data.validation) == 10
    assert [fold.group for fold in folds] == ['without d', 'without c', 'without a, b']


def test_no_more_folds_than_sequences(recipe, sequences):
    assert len(leave_sequences_out(recipe, sequences, 9)) == 4


def test_one_sequence_cannot_be_left_out(recipe, camvid):
    for split in ('train', 'val'):
        for folder in (split, f'{split}annot'):
            for path in list((camvid / folder).iterdir()):
                path.rename(path.with_name(f'drive_{path.name}'))
    with pytest.raises(ConfigError, match='all pictures are of one sequence, drive'):
        leave_sequences_out(recipe, camvid, 3)


def test_table_gives_each_seed_and_the_mean(recipe, tmp_path):
    data = RunData(None, None)
    experiments = [Experiment(group, f'seed {seed}', recipe, data)
                   for group in ('plain', 'Lovasz') for seed in (1, 2)]
    results = [{'epoch': 4, 'val_miou': value} for value in (50.0, 51.0, 52.26, 53.0)]
    table = write_table(experiments, results, tmp_path)
    assert table.splitlines() == [
        '| run | seed 1 | seed 2 | mIoU |', '|---|---:|---:|---:|',
        '| plain | 50.0 | 51.0 | 50.5 |', '| Lovasz | 52.3 | 53.0 | 52.6 |']
    assert (tmp_path / 'table.md').read_text() == table + '\n'
    assert json.loads((tmp_path / 'results.json').read_text())[2] == {
        'group': 'Lovasz', 'repeat': 'seed 1', 'epoch': 4, 'val_miou': 52.26}


def test_table_of_one_seed_takes_no_mean_over_variants(recipe, tmp_path):
    experiments = [Experiment(name, f'seed {seed}', recipe, RunData(None, None))
                   for name, seed in (('plain', 1), ('again', 2))]
    results = [{'epoch': 4, 'val_miou': value} for value in (50.0, 53.0)]
    assert write_table(experiments, results, tmp_path).splitlines() == [
        '| run | mIoU |', '|---|---:|', '| plain | 50.0 |', '| again | 53.0 |']


def test_table_of_folds_ends_with_mean_and_spread(recipe, tmp_path):
    experiments = [Experiment(f'without {name}', '', recipe, RunData(None, None))
                   for name in 'abc']
    results = [{'epoch': 4, 'val_miou': value} for value in (50.0, 53.0, 56.0)]
    assert write_table(experiments, results, tmp_path).splitlines()[-1] == (
        '| mean, standard deviation | 53.0, 3.0 |')


@pytest.mark.parametrize('name', ['study_class_terms', 'study_ablation'])
def test_studies_that_ship_fit_the_recipe_and_networks_that_can_be_built(camvid, name):
    root = Path(__file__).parents[2] / 'config'
    experiments = read_variants(root / f'{name}.yaml', load_recipe(root / 'train_camvid.yaml'),
                                camvid)
    assert len({e.folder for e in experiments}) == len(experiments) > 3
    for experiment in experiments:
        build_network(experiment.recipe.architecture,
                      {**experiment.recipe.arguments, 'classes': 11})
