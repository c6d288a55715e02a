from pathlib import Path

import numpy as np
import pytest

from seg_ros.errors import ConfigError
from seg_ros.label_map import load_label_map
from seg_ros.labels import CAMVID, LabelSet
from seg_ros.model_file import load_model, shipped_models
from seg_ros.yaml_files import MAX_BYTES

CONFIG = Path(__file__).parents[1] / 'config'
# Ids that are not their channels, so that the one cannot be taken for the other.
MODEL = LabelSet(('road', 'grass', 'car', 'truck', 'sky'),
                 ((1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 4), (5, 5, 5)), (10, 0, 30, 254, 7))
MERGED = """
classes:
  - {name: vehicle, id: 2, from: [truck, car]}
  - {name: ground, id: 254, color: [9, 8, 7], from: [road]}
  - {name: sky, id: 0}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / 'map.yaml'
    path.write_text(text, encoding='utf-8')
    return path


def refusal(folder: Path, text: str) -> str:
    """The message with which a map is refused: it names the file."""
    path = written(folder, text)
    with pytest.raises(ConfigError) as caught:
        load_label_map(path, MODEL)
    said = str(caught.value)
    assert said.startswith(f'{path.resolve()}: ')
    assert len(said) < 600
    return said


def test_merged_renamed_and_recoloured_classes_are_published(tmp_path):
    labels = load_label_map(written(tmp_path, MERGED), MODEL).labels
    assert labels.names == ('vehicle', 'ground', 'sky')
    assert labels.ids == (2, 254, 0)
    assert labels.colors == ((4, 4, 4), (9, 8, 7), (5, 5, 5))  # the first that is merged: truck


def test_lookup_goes_from_ids_of_the_model_to_published_ids(tmp_path):
    lookup = load_label_map(written(tmp_path, MERGED), MODEL).lookup
    assert lookup.dtype == np.uint8 and lookup.shape == (256,)
    of_model = np.array([[10, 30, 254], [7, 0, 255]], np.uint8)
    assert np.array_equal(lookup[of_model], [[254, 2, 2], [0, 255, 255]])
    others = sorted(set(range(256)) - {10, 30, 254, 7})
    assert (lookup[others] == 255).all()


def test_classes_in_no_entry_are_told(tmp_path):
    assert load_label_map(written(tmp_path, MERGED), MODEL).unmapped == ('grass',)


@pytest.mark.parametrize('path', shipped_models().values(), ids=lambda path: path.stem)
def test_map_for_autoware_fits_the_models_that_ship(path):
    result = load_label_map(CONFIG / 'autoware.yaml', load_model(path).spec.labels)
    assert not result.unmapped
    assert dict(zip(result.labels.names, result.labels.ids, strict=True)) == {
        'BUILDING': 1, 'OBSTACLE': 3, 'TRAFFIC_SIGN': 5, 'PERSON': 6, 'VEHICLE': 7, 'BIKE': 8,
        'ROAD': 9, 'SIDEWALK': 10, 'VEGETATION': 14, 'SKY': 15}
    sky, pole, fence, bicyclist = (CAMVID.names.index(name)
                                   for name in ('Sky', 'Pole', 'Fence', 'Bicyclist'))
    assert list(result.lookup[[sky, pole, fence, bicyclist]]) == [15, 3, 3, 8]


@pytest.mark.parametrize(('name', 'near'), [
    ('Road', 'road'), ('trcuk', 'truck'), ('SKY', 'sky'), ('a' * 50_000, 'grass'), ('7', 'car')])
def test_class_that_the_model_lacks_is_refused_with_the_nearest(tmp_path, name, near):
    said = refusal(tmp_path, MERGED.replace('[road]', f'[{name}]'))
    assert 'entry 2 (ground): unknown class ' in said
    assert 'Known: road, grass, car, truck, sky' in said
    if name not in ('7', 'a' * 50_000):  # near to nothing
        assert f'did you mean {near}?' in said


def test_class_that_goes_to_two_entries_is_refused(tmp_path):
    said = refusal(tmp_path, MERGED.replace('[road]', '[road, car]'))
    assert 'the class car goes to vehicle and to ground' in said


@pytest.mark.parametrize(('change', 'said'), [
    (('id: 0}', 'id: 2}'), 'class ids [2, 254, 2]: each must occur once'),
    (('name: ground', 'name: sky'), "class names ['vehicle', 'sky', 'sky']: each must occur once"),
    (('id: 0}', 'id: 0, id: 1}'), 'line 5: the key id stands there twice')])
def test_what_occurs_twice_is_refused(tmp_path, change, said):
    assert said in refusal(tmp_path, MERGED.replace(*change))


@pytest.mark.parametrize('id_', ['255', '-1', '256', '1.0', 'true', "'1'", '[1]', '', '1e3'])
def test_id_out_of_range_is_refused(tmp_path, id_):
    said = refusal(tmp_path, MERGED.replace('id: 254', f'id: {id_}'))
    assert 'entry 2 (ground): id ' in said and 'expected a whole number from 0 to 254' in said


@pytest.mark.parametrize('color', ['[1, 2]', '[1, 2, 256]', '[1, 2, 3, 4]', '[1, 2, -1]', 'red',
                                   '[1, 2, 3.0]', '{r: 1}', '[a, b, c]', '[1, 2, true]'])
def test_colour_out_of_range_is_refused(tmp_path, color):
    said = refusal(tmp_path, MERGED.replace('[9, 8, 7]', color))
    assert 'entry 2 (ground): color ' in said and '[red, green, blue], each 0 to 255' in said


@pytest.mark.parametrize('name', ['no', '7', '', '[a]', "''"])
def test_name_that_is_no_text_is_refused(tmp_path, name):
    said = refusal(tmp_path, MERGED.replace('name: ground', f'name: {name}'))
    assert 'entry 2: name ' in said and 'expected text' in said


@pytest.mark.parametrize('sources', ['[]', 'road', '7', '{a: 1}', ''])
def test_list_of_classes_of_the_wrong_kind_is_refused(tmp_path, sources):
    said = refusal(tmp_path, MERGED.replace('from: [road]', f'from: {sources}'))
    assert 'entry 2 (ground): from ' in said and 'expected a list of classes' in said


def test_unknown_keys_are_refused_with_the_nearest(tmp_path):
    assert 'entry 2: unknown key colour; did you mean color?' in refusal(
        tmp_path, MERGED.replace('color:', 'colour:'))
    assert 'unknown key class; did you mean classes?' in refusal(tmp_path, MERGED + 'class: []')


@pytest.mark.parametrize('text', ['', 'classes', '[]', 'classes: 5', 'classes: {a: 1}', '7'])
def test_file_without_a_list_of_classes_is_refused(tmp_path, text):
    assert 'expected "classes:" and a list of entries' in refusal(tmp_path, text)


def test_too_few_or_too_many_classes_are_refused(tmp_path):
    assert '1 entries: expected 2 to 255' in refusal(tmp_path, 'classes: [{name: sky, id: 1}]')
    many = 'classes:\n' + '- {name: sky, id: 1}\n' * 256
    assert '256 entries: expected 2 to 255' in refusal(tmp_path, many)
    assert 'entry 1: expected name, id, color, from, got 1' in refusal(tmp_path, 'classes: [1, 2]')


@pytest.mark.parametrize('text', [
    'a: [', '!!python/object/apply:os.getcwd []', '&a [*b]', '[' * 3000, 'x: 2024-13-99',
    'a: 1\n---\nb: 2', '? [a]\n: b'])
def test_what_is_no_plain_yaml_is_refused(tmp_path, text):
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match='is no YAML'):
        load_label_map(path, MODEL)


def test_lists_nested_by_aliases_are_refused_without_being_written_out(tmp_path):
    nested = ['a0: &a0 [x, x]'] + [f'a{i}: &a{i} [{", ".join([f"*a{i - 1}"] * 9)}]'
                                   for i in range(1, 60)]
    for text in ('\n'.join(nested),
                 '\n'.join([*nested, 'classes: [{name: *a59, id: 1}, {name: b, id: 2}]']),
                 '\n'.join([*nested, 'classes: *a59'])):
        refusal(tmp_path, text)


def test_number_too_long_to_be_printed_is_refused(tmp_path):
    for number in ('9' * 5000, f'0x{"f" * 5000}'):
        refusal(tmp_path, MERGED.replace('id: 254', f'id: {number}'))


def test_files_that_cannot_be_read_are_refused(tmp_path):
    for path, said in ((tmp_path / 'none.yaml', 'No such file or directory; give the path of a '
                                                'label map'),
                       (tmp_path, 'is no file'), (Path('/dev/zero'), 'is no file'),
                       (tmp_path / ('x' * 300), 'File name too long')):
        with pytest.raises(ConfigError, match=said):
            load_label_map(path, MODEL)
    long = written(tmp_path, '# ' + 'x' * MAX_BYTES)
    with pytest.raises(ConfigError, match='is longer than 100000 bytes'):
        load_label_map(long, MODEL)
    long.write_bytes(b'\xff\xfe\x00')
    with pytest.raises(ConfigError, match='is no YAML'):
        load_label_map(long, MODEL)
