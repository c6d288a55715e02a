"""Recipes: read, checked, and written back."""

from pathlib import Path

import pytest
import yaml

from seg_ros.errors import ConfigError
from seg_ros.training.augment import Augmentation
from seg_ros.training.recipe import Recipe, load_recipe, to_mapping, with_changes

ROOT = Path(__file__).parents[2]


def test_recipe_of_the_shipped_weights_loads():
    recipe = load_recipe(ROOT / 'config' / 'train_camvid.yaml')
    assert recipe.architecture == 'asymmetric'
    assert recipe.augmentation.crop[0] % 8 == 0
    written = yaml.safe_load((ROOT / 'config' / 'train_camvid.yaml').read_text())
    read = to_mapping(recipe)
    for key, value in written.items():  # each value of the file has arrived where it belongs
        assert read[key] == value or {k: read[key][k] for k in value} == value


def test_values_left_out_take_their_defaults(tmp_path):
    path = tmp_path / 'recipe.yaml'
    path.write_text('epochs: 7\naugmentation:\n  contrast: 0\n')
    assert load_recipe(path) == Recipe(epochs=7, augmentation=Augmentation(contrast=0.0))


def test_recipe_survives_the_way_through_yaml(tmp_path, recipe):
    path = tmp_path / 'again.yaml'
    path.write_text(yaml.safe_dump(to_mapping(recipe(learning_rate=0.125))))
    assert load_recipe(path) == recipe(learning_rate=0.125)


def test_arguments_that_are_left_out_are_written_with_their_defaults(tmp_path):
    path = tmp_path / 'recipe.yaml'
    path.write_text('arguments: {widths: [5, 16, 40], activation: prelu}\n')
    full = {'widths': [5, 16, 40], 'dilations2': [2, 2, 2],
            'dilations3': [1, 2, 5, 9, 2, 5, 9, 17], 'pyramid': 96, 'activation': 'prelu',
            'bounded': True, 'complementary': False}
    assert to_mapping(load_recipe(path))['arguments'] == full
    path.write_text('architecture: strip\n')
    assert to_mapping(load_recipe(path))['arguments'] == {
        'widths': [13, 32, 128], 'dilations2': [2, 2, 2],
        'dilations3': [1, 2, 5, 9, 2, 5, 9, 17], 'pooled': 16, 'hidden': 80}


def test_change_of_the_architecture_keeps_the_arguments_of_both():
    recipe = Recipe(arguments={'widths': [5, 16, 40], 'pyramid': 8})
    strip = with_changes(recipe, {'architecture': 'strip', 'arguments': {'hidden': 8}}, 'variant')
    assert strip.arguments == {**Recipe(architecture='strip').arguments, 'widths': [5, 16, 40],
                               'hidden': 8}
    for changes in ({'architecture': 'unet'}, {'architecture': ['strip']},
                    {'arguments': {'hidden': 8}}):
        with pytest.raises(ConfigError, match='^variant: .*(unet|str|arguments.hidden)'):
            with_changes(recipe, changes, 'variant')


def refused(tmp_path: Path, text: str) -> str:
    path = tmp_path / 'recipe.yaml'
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_recipe(path)
    assert str(caught.value).startswith(f'{path}: ')
    return str(caught.value)


@pytest.mark.parametrize(('text', 'said'), [
    ('learning_rat: 1', 'unknown key learning_rat; did you mean learning_rate?'),
    ('epoch: 1', 'unknown key epoch; did you mean epochs?'),
    ('augmentation: {scales: [1, 2]}',
     'unknown key augmentation.scales; did you mean augmentation.scale?'),
    ('5: 1', 'unknown key 5'), ('zzz: 1', 'unknown key zzz; did you mean'),
    ('epochs: many', "epochs: expected int, got 'many'"), ('epochs: 1.5', 'epochs: expected int'),
    ('epochs: true', 'epochs: expected int, got True'), ('epochs: ', 'epochs: expected int'),
    ('learning_rate: true', 'learning_rate: expected float'),
    ('learning_rate: "0.1"', 'learning_rate: expected float'),
    ('architecture: 5', 'architecture: expected str'),
    ('architecture: stripe', 'unknown architecture stripe; did you mean strip?'),
    ('arguments: [1]', 'arguments: expected a mapping'),
    ('arguments: {width: [5, 16, 40]}',
     'unknown key arguments.width; did you mean arguments.widths?'),
    ('architecture: strip\narguments: {pyramid: 8}', 'unknown key arguments.pyramid; did you'),
    ('arguments: {classes: 11}', 'arguments.classes: is the number of labels; leave it out'),
    ('arguments: {widths: [5, 15, 40]}', 'arguments: widths [5, 15, 40]: expected'),
    ('arguments: {pyramid: 1.5}', 'arguments: pyramid 1.5: expected a whole number'),
    ('arguments: {dilations3: 2}', 'arguments: dilations3 2: expected'),
    ('arguments: {bounded: "no"}', "arguments: bounded 'no': expected true or false"),
    ('arguments: {activation: elu}', "arguments: activation 'elu': expected relu or prelu"),
    ('augmentation: {crop: 320}', 'augmentation.crop: expected a list of two numbers'),
    ('augmentation: {crop: [320]}', 'augmentation.crop: expected a list of two numbers'),
    ('augmentation: {scale: [a, b]}', 'augmentation.scale: expected a list of two numbers'),
    ('augmentation: {scale: [true, 2]}', 'augmentation.scale: expected a list of two numbers'),
    ('augmentation: {crop: [320.0, 400]}', 'crop height 320.0'),
    ('augmentation: {crop: [320, 401]}', 'crop width 401 must be a multiple of 8'),
    ('augmentation: {brightness: much}', 'augmentation.brightness: expected float'),
    ('augmentation: ', 'augmentation: expected "key: value" lines, got None'),
    ('epochs: 0', 'epochs 0: expected 1 to 100000'), ('batch: 0', 'batch 0: expected 1'),
    ('batch: -8', 'batch -8'), ('learning_rate: -1', 'learning_rate -1'),
    ('learning_rate: .nan', 'learning_rate nan: expected 0 to 10'),
    ('learning_rate: .inf', 'learning_rate inf'), ('weight_decay: 2', 'weight_decay 2'),
    ('ema: 1', 'ema 1.0: expected 0 to 0.99999'), ('seed: -1', 'seed -1'),
    ('drawn_share: -0.1', 'drawn_share -0.1'), ('validate_every: 0', 'validate_every 0'),
    ('warmup_steps: -1', 'warmup_steps -1'),
    ('', 'the file: expected "key: value" lines, got None'), ('- 1', 'the file: expected'),
    ('epochs', 'the file: expected'), ('a: [', 'is no YAML'), ('a: &x\n  - *y', 'is no YAML'),
    ('seed: 2024-13-99', 'is no YAML'), ('!!python/object/apply:os.getcwd []', 'is no YAML'),
])
def test_fault_is_told_with_its_place(tmp_path, text, said):
    assert said in refused(tmp_path, text)


def test_whole_number_is_accepted_for_a_float(tmp_path):
    path = tmp_path / 'recipe.yaml'
    path.write_text('learning_rate: 1\naugmentation: {scale: [1, 2], saturation: 0}\n')
    recipe = load_recipe(path)
    assert recipe.learning_rate == 1.0 and recipe.augmentation.scale == (1, 2)


def test_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match='none.yaml: No such file .*give the path of a recipe'):
        load_recipe(tmp_path / 'none.yaml')
    for no_file in (tmp_path, Path('/dev/zero')):
        with pytest.raises(ConfigError, match='is no file'):
            load_recipe(no_file)
    (tmp_path / 'deep').write_text('[' * 3000)
    with pytest.raises(ConfigError, match='is no YAML'):
        load_recipe(tmp_path / 'deep')
    (tmp_path / 'binary').write_bytes(b'\xff\xfe\x00\x80')
    with pytest.raises(ConfigError, match='is no YAML'):
        load_recipe(tmp_path / 'binary')
