"""Model files: nothing damaged or foreign is ever loaded, and the message tells what to do."""

import json
import math
import os
import pickle
import resource
import struct
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from tiny_model import LABELS, SPEC, TINY, put_together, refusal, taken_apart, tiny_network

from seg_ros.errors import ModelFileError
from seg_ros.model_file import load_model, save_model


@pytest.fixture(scope='module')
def good(tmp_path_factory):
    """Bytes of a model file."""
    path = tmp_path_factory.mktemp('model') / 'model.safetensors'
    save_model(path, tiny_network(), SPEC)
    return path.read_bytes()


def test_missing_file_says_what_to_give(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = refusal(Path('no/such.safetensors'))
    assert str(tmp_path / 'no' / 'such.safetensors') in said
    assert 'give the path' in said


def test_what_is_no_file_is_refused_without_waiting_for_its_end(tmp_path):
    os.mkfifo(tmp_path / 'pipe')
    for path in (tmp_path, tmp_path / 'pipe', Path('/dev/zero')):
        assert f'{path}: cannot be read: is no file' in refusal(path)


@pytest.mark.parametrize('version', [2, 0, None, '1', 1.0, True, [1]])
def test_unknown_format_version_is_refused(good, tmp_path, version):
    values, tensors = taken_apart(good)
    said = refusal(put_together(tmp_path / 'm', {**values, 'format_version': version}, tensors))
    assert f'format version {version!r}, this package reads 1; update' in said


def test_changed_weights_are_refused(good, tmp_path):
    path = tmp_path / 'm'
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    assert 'checksum' in refusal(path)


@pytest.mark.parametrize('change', [
    {'labels': {**LABELS.to_dict(), 'names': ['Fahrbahn', 'Gehweg e', 'sky']}},
    {'labels': {**LABELS.to_dict(), 'colors': [[1, 2, 3], [40, 50, 61], [255, 0, 9]]}},
    {'labels': {**LABELS.to_dict(), 'ids': [0, 7, 2]}},
    {'mean': [100.5, 99.25, 98.5]}, {'std': [60.0, 61.0, 62.0]}, {'training_size': [64, 98]},
    {'arguments': {**TINY, 'dilations3': [4]}}, {'provenance': {}}, {'more': 1}])
def test_changed_metadata_is_refused(good, tmp_path, change):
    values, tensors = taken_apart(good)
    path = put_together(tmp_path / 'm', {**values, **change}, tensors, sign=False)
    assert 'checksum' in refusal(path)


@pytest.mark.parametrize('name', ['classify.weight', 'stem.0.1.running_var'])
def test_missing_tensor_is_named(good, tmp_path, name):
    values, tensors = taken_apart(good)
    del tensors[name]
    assert f'tensor {name} is missing' in refusal(put_together(tmp_path / 'm', values, tensors))


def test_surplus_tensor_is_named(good, tmp_path):
    values, tensors = taken_apart(good)
    tensors['stem.9'] = torch.zeros(1)
    assert 'tensor stem.9 is no part' in refusal(put_together(tmp_path / 'm', values, tensors))


def test_wrong_shape_is_told_beside_the_right_one(good, tmp_path):
    values, tensors = taken_apart(good)
    tensors['classify.weight'] = torch.zeros(4, 8, 1, 1)
    said = refusal(put_together(tmp_path / 'm', values, tensors))
    assert 'classify.weight has shape (4, 8, 1, 1)' in said and 'needs (3, 8, 1, 1)' in said


@pytest.mark.parametrize('dtype', [torch.float16, torch.float64, torch.int32, torch.float8_e4m3fn])
def test_wrong_number_type_is_refused(good, tmp_path, dtype):
    values, tensors = taken_apart(good)
    tensors['classify.bias'] = torch.zeros(3).to(dtype)
    assert f'is of type {dtype}' in refusal(put_together(tmp_path / 'm', values, tensors))


@pytest.mark.parametrize('value', [math.nan, math.inf, -math.inf])
def test_weights_that_are_not_finite_are_refused(good, tmp_path, value):
    values, tensors = taken_apart(good)
    tensors['classify.weight'][1, 2] = value
    said = refusal(put_together(tmp_path / 'm', values, tensors))
    assert 'tensor classify.weight holds NaN or infinity' in said


def test_file_cut_anywhere_is_refused(good, tmp_path):
    path = tmp_path / 'm'
    header = 8 + struct.unpack('<Q', good[:8])[0]
    for length in (*range(20), *range(20, len(good), len(good) // 97), header - 1, header,
                   header + 1, len(good) - 1):
        path.write_bytes(good[:length])
        assert 'copy it again' in refusal(path), length


def test_longer_file_is_refused(good, tmp_path):
    path = tmp_path / 'm'
    path.write_bytes(good + b'\0')
    refusal(path)


def test_foreign_safetensors_is_refused(tmp_path):
    path = tmp_path / 'm'
    for metadata in (None, {'format': 'pt'}):
        safetensors.torch.save_file({'weight': torch.zeros(2)}, path, metadata)
        assert 'not a model of this package' in refusal(path)


class Bomb:
    """Makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), 'w'))


@pytest.mark.parametrize('write', [
    lambda path, bomb: torch.save({'weights': torch.zeros(2), 'bomb': bomb}, path),
    lambda path, bomb: path.write_bytes(pickle.dumps(bomb)),
], ids=['torch.save', 'pickle'])
def test_renamed_pickle_is_refused_and_never_run(tmp_path, write):
    path = tmp_path / 'model.safetensors'
    write(path, Bomb(tmp_path / 'harm'))
    assert 'safetensors file' in refusal(path)
    assert not (tmp_path / 'harm').exists()


@pytest.mark.parametrize('data', [b'', b'{}', b'\x89PNG\r\n\x1a\n' + bytes(100), b'text\n' * 99,
                                  bytes(1000), b'\xff' * 1000])
def test_other_files_are_refused(tmp_path, data):
    path = tmp_path / 'm'
    path.write_bytes(data)
    assert 'give a file that seg_train wrote' in refusal(path)


def test_mutated_bytes_are_refused_or_change_nothing(good, tmp_path):
    random = np.random.default_rng(2024)
    path = tmp_path / 'm'
    header = 8 + struct.unpack('<Q', good[:8])[0]
    weights = safetensors.torch.load(good)
    refused = 0
    for trial in range(200):
        data = bytearray(good)
        end = header if trial % 2 else len(data)  # every second one hits the header
        for position in random.integers(0, end, 1 + trial % 3):
            if trial % 4 < 2:
                data[position] ^= 1 << int(random.integers(8))
            else:
                data[position] = int(random.integers(256))
        path.write_bytes(data)
        try:
            model = load_model(path)
        except ModelFileError as error:
            assert str(error).startswith(f'{path.resolve()}: ')
            refused += 1
            continue
        assert model.spec == SPEC
        state = model.network.state_dict()
        assert state.keys() == weights.keys()
        assert all(torch.equal(state[name], weights[name]) for name in weights)
    assert refused > 180


def safetensors_bytes(header: object) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack('<Q', len(text)) + text


def peak_memory_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize('shape', [[10**9, 10**6], [2**62, 4], [0, 2**63], [2**70], [0, 2**70]])
def test_huge_claimed_shape_is_refused_without_its_memory(good, tmp_path, shape):
    values, _ = taken_apart(good)
    path = tmp_path / 'm'
    before = peak_memory_kb()
    path.write_bytes(safetensors_bytes({
        '__metadata__': {'seg_ros': json.dumps(values)},
        'classify.weight': {'dtype': 'F32', 'shape': shape, 'data_offsets': [0, 0]}}))
    refusal(path)
    assert peak_memory_kb() - before < 50_000


@pytest.mark.parametrize('arguments', [
    {**TINY, 'widths': [10**9, 2 * 10**9, 10**10]}, {**TINY, 'widths': [10**30, 10**31, 10**32]},
    {**TINY, 'widths': [4000, 4090, 10000]}, {**TINY, 'pyramid': 10**9},
    {**TINY, 'dilations3': [1] * 100_000},
    {**TINY, 'widths': ['5', '16', '40']}, {**TINY, 'widths': 'abc'}, {**TINY, 'widths': None},
    {**TINY, 'widths': [5.0, 16, 40]}, {**TINY, 'widths': [5, 16]}, {**TINY, 'widths': []},
    {**TINY, 'widths': [True, 16, 40]}, {**TINY, 'widths': [5, -16, 40]},
    {**TINY, 'widths': [5, 15, 40]}, {**TINY, 'widths': [5, 16, 41]},  # fail only when they run
    {**TINY, 'widths': [5, 8, 40]}, {**TINY, 'widths': [1, 6, 40]},
    {**TINY, 'widths': [5, 16, 34]},
    {**TINY, 'dilations2': [0]}, {**TINY, 'dilations2': '2'}, {**TINY, 'dilations3': 3},
    {**TINY, 'dilations3': [3.5]}, {**TINY, 'pyramid': 0}, {**TINY, 'pyramid': [8]},
    {**TINY, 'classes': 3}, {**TINY, 'depth': 3}, {'': 1}, [], 'widths', None, 7])
def test_arguments_that_fit_no_network_are_refused_without_building_it(good, tmp_path, arguments):
    values, tensors = taken_apart(good)
    before = peak_memory_kb()
    refusal(put_together(tmp_path / 'm', {**values, 'arguments': arguments}, tensors))
    assert peak_memory_kb() - before < 50_000


@pytest.mark.parametrize(('key', 'value'), [
    ('architecture', 'transformer'), ('architecture', None), ('architecture', ['asymmetric']),
    ('architecture', {}),
    ('mean', [math.nan, 1, 1]), ('mean', [1, 2]), ('mean', 5), ('mean', 'abc'), ('mean', None),
    ('mean', [1, 2, '3']), ('mean', [True, 1, 1]), ('mean', [256, 1, 1]), ('mean', [-1, 1, 1]),
    ('mean', [[1], [1], [1]]), ('mean', [10**400, 1, 1]),
    ('std', [0, 1, 1]), ('std', [math.inf, 1, 1]), ('std', [math.nan, 1, 1]), ('std', {'r': 1}),
    ('training_size', [64.0, 96]), ('training_size', [64]), ('training_size', [16, 64]),
    ('training_size', [64, 10**9]), ('training_size', '64'), ('training_size', [True, True]),
    ('labels', None), ('labels', []), ('labels', {**LABELS.to_dict(), 'ids': [0.0, 7.0, 3.0]}),
    ('labels', {**LABELS.to_dict(), 'names': 'abc'}),
    ('labels', {**LABELS.to_dict(), 'colors': [[1, 2, 3], [4, 5, 6], [7, 8, 'f']]}),
    ('labels', {'names': ['a', 'b'], 'colors': [[1, 2, 3], [4, 5, 6]]}),  # one class too few
    ('unknown_id', 0), ('unknown_id', None), ('provenance', None), ('provenance', 'text')])
def test_metadata_of_the_wrong_kind_is_refused(good, tmp_path, key, value):
    values, tensors = taken_apart(good)
    refusal(put_together(tmp_path / 'm', {**values, key: value}, tensors))


@pytest.mark.parametrize('key', ['architecture', 'arguments', 'labels', 'mean', 'std',
                                 'training_size', 'provenance', 'unknown_id', 'format_version'])
def test_metadata_without_a_key_is_refused(good, tmp_path, key):
    values, tensors = taken_apart(good)
    del values[key]
    refusal(put_together(tmp_path / 'm', values, tensors))


def test_metadata_without_checksum_is_refused(good, tmp_path):
    values, tensors = taken_apart(good)
    del values['sha256']
    assert 'checksum' in refusal(put_together(tmp_path / 'm', values, tensors, sign=False))


@pytest.mark.parametrize('depth', [100, 900, 100_000])
def test_deep_nesting_is_refused(good, tmp_path, depth):
    values, tensors = taken_apart(good)
    nest = '[' * depth + ']' * depth
    path = tmp_path / 'm'
    for text in (nest, json.dumps({**values, 'arguments': None}).replace(
            '"arguments": null', f'"arguments": {{"widths": {nest}}}')):
        safetensors.torch.save_file(tensors, path, {'seg_ros': text})
        refusal(path)
    for header in (nest, f'{{"__metadata__": {nest}}}', f'{{"classify.weight": {nest}}}'):
        path.write_bytes(safetensors_bytes(header.encode()))
        refusal(path)


@pytest.mark.parametrize('depth', [100, 300])
def test_signed_deep_nesting_is_refused(good, tmp_path, depth):
    values, tensors = taken_apart(good)
    nest: list = []
    for _ in range(depth):
        nest = [nest]
    for key, value in (('arguments', {'widths': nest}), ('mean', nest), ('architecture', nest),
                       ('labels', {'names': nest, 'colors': nest})):
        refusal(put_together(tmp_path / 'm', {**values, key: value}, tensors))


@pytest.mark.parametrize('metadata', ['', 'null', '5', '"text"', '[]', 'NaN', '{', '\x00'])
def test_metadata_that_is_no_mapping_is_refused(tmp_path, metadata):
    path = tmp_path / 'm'
    safetensors.torch.save_file({'weight': torch.zeros(2)}, path, {'seg_ros': metadata})
    refusal(path)


def test_endless_file_does_not_fill_the_memory(tmp_path):
    path = tmp_path / 'm'
    with open(path, 'wb') as file:
        file.truncate(10**12)  # takes no space on disk
    assert 'is larger than 256000000 bytes' in refusal(path)
