"""2,000 mutations of a model file: each refused, soon, and without taking what it claims.

The same in every run.
"""

import json
import pickle
import resource
import struct
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from tiny_model import SPEC, put_together, taken_apart, tiny_network

from seg_ros.errors import ModelFileError
from seg_ros.model_file import load_model, save_model

LONGEST_S = 1.0  # of one file, in processor time: other processes do not count
PEAK_MB = 100
Random = np.random.Generator

# Values that stand in for others in the metadata: of another kind, or out of any range.
WRONG = (None, True, -1, 2**31, 2**63, 10**30, 1e308, '', 'x' * 3000, [], [[]], {}, [1, 2],
         [0] * 5000, {'a': {'b': []}})
HUGE = (2**20, 2**31, 2**40, 2**62, 2**63, 2**64, 10**30)
# Of all but the provenance, where anything may stand.
PLACES = (('architecture',), ('arguments',), ('arguments', 'widths'), ('arguments', 'pyramid'),
          ('arguments', 'dilations2'), ('arguments', 'dilations3'), ('arguments', 'more'),
          ('labels',), ('labels', 'names'), ('labels', 'colors'), ('labels', 'ids'), ('mean',),
          ('std',), ('training_size',), ('unknown_id',), ('format_version',))


@pytest.fixture(scope='module')
def good(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp('model') / 'model.safetensors'
    save_model(path, tiny_network(), SPEC)
    load_model(path)  # imports what takes torch a second
    return path.read_bytes()


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def is_same(path: Path, data: bytes, good: bytes) -> bool:
    """Whether a file still says what the good one says, by the safetensors format itself."""
    try:
        values, tensors = taken_apart(data)
    except Exception:
        return False
    good_values, good_tensors = taken_apart(good)
    return values == good_values and tensors.keys() == good_tensors.keys() and all(
        tensor.dtype == good_tensors[name].dtype and torch.equal(tensor, good_tensors[name])
        for name, tensor in tensors.items())


def check_refusals(folder: Path, count: int, write: Callable[[Path], None],
                   good: bytes) -> None:
    """Write files until ``count`` of them differ from the good one; each must be refused."""
    path = folder / 'model.safetensors'
    before = peak_mb()
    refused = tried = 0
    while refused < count:
        tried += 1
        assert tried < 2 * count, 'most mutations change nothing'
        write(path)
        start = time.process_time()
        try:
            load_model(path)
        except ModelFileError as error:
            said = str(error)
            assert said.startswith(f'{path.resolve()}: ') and len(said) < 2000
            refused += 1
        else:
            assert is_same(path, path.read_bytes(), good), f'file {tried} was read'
        took_s = time.process_time() - start
        assert took_s < LONGEST_S, f'file {tried} took {took_s:.1f} s'
    assert peak_mb() - before < PEAK_MB


def test_changed_bits_and_bytes(good, tmp_path):
    random = np.random.default_rng(1)
    header = 8 + struct.unpack('<Q', good[:8])[0]

    def write(path: Path) -> None:
        data = bytearray(good)
        end = (8, header, len(data))[random.integers(3)]
        for position in random.integers(0, end, random.integers(1, 9)):
            if random.random() < 0.5:
                data[position] ^= 1 << int(random.integers(8))
            else:
                data[position] = int(random.integers(256))
        path.write_bytes(data)

    check_refusals(tmp_path, 600, write, good)


def test_cut_and_spliced_files(good, tmp_path):
    random = np.random.default_rng(2)

    def write(path: Path) -> None:
        data = bytearray(good)
        at, to = sorted(int(position) for position in random.integers(0, len(data) + 1, 2))
        match random.integers(5):
            case 0:
                del data[at:]
            case 1:
                del data[at:to]
            case 2:
                data[at:at] = random.bytes(int(random.integers(1, 1000)))
            case 3:
                data[at:to] = data[at:to][::-1]
            case 4:
                data[at:to] = bytes(to - at)
        path.write_bytes(data)

    check_refusals(tmp_path, 350, write, good)


def test_swapped_metadata_under_a_right_checksum(good, tmp_path):
    random = np.random.default_rng(3)
    good_values, tensors = taken_apart(good)

    def write(path: Path) -> None:
        values = json.loads(json.dumps(good_values))
        *above, last = PLACES[random.integers(len(PLACES))]
        within = values
        for key in above:
            within = within[key]
        wrong = (*WRONG, *HUGE, [int(random.choice(HUGE[:4])) for _ in range(3)])
        within[last] = wrong[random.integers(len(wrong))]
        if last == 'ids' and within[last] == []:  # no ids: they are counted up
            within[last] = None
        put_together(path, values, tensors)

    check_refusals(tmp_path, 400, write, good)


def test_changed_tensors_under_a_right_checksum(good, tmp_path):
    random = np.random.default_rng(4)
    values, good_tensors = taken_apart(good)
    names = sorted(good_tensors)

    def write(path: Path) -> None:
        tensors = dict(good_tensors)
        name, other = (names[i] for i in random.choice(len(names), 2, replace=False))
        match random.integers(6):
            case 0:
                del tensors[name]
            case 1:
                tensors[f'{name}.{random.integers(9)}'] = torch.zeros(3)
            case 2:
                tensors[name], tensors[other] = torch.zeros(7, 3), tensors[name]
            case 3:
                tensors[name] = tensors[name].to(torch.float64 if random.random() < 0.5
                                                 else torch.int16)
            case 4:
                tensors[name] = tensors[name][None]
            case 5:
                spoilt = tensors[name].double().flatten()
                spoilt[int(random.integers(len(spoilt)))] = (np.nan, np.inf)[random.integers(2)]
                tensors[name] = spoilt.reshape(tensors[name].shape).float()
        put_together(path, values, tensors)

    check_refusals(tmp_path, 250, write, good)


def test_huge_claims_in_the_header(good, tmp_path):
    random = np.random.default_rng(5)
    size, = struct.unpack('<Q', good[:8])
    good_header, body = json.loads(good[8:8 + size]), good[8 + size:]

    def write(path: Path) -> None:
        header = json.loads(json.dumps(good_header))
        names = [name for name in header if name != '__metadata__']
        entry = header[names[random.integers(len(names))]]
        match random.integers(4):
            case 0:
                entry['shape'] = [int(random.choice([0, 1, *HUGE[:5]]))
                                  for _ in range(random.integers(1, 6))] + [2**33]
            case 1:
                start = int(random.choice([0, 1, *HUGE[:5]]))
                entry['data_offsets'] = [start, start + int(random.choice(HUGE[:5]))]
            case 2:
                entry['shape'] = [1] * int(random.choice([100, 10_000, 100_000]))
            case 3:
                for number in range(int(random.integers(1, 5000))):
                    header[f'more{number}'] = {'dtype': 'F32', 'shape': [2**40],
                                               'data_offsets': [0, 2**42]}
        text = json.dumps(header).encode()
        claimed = int(random.choice(HUGE[:5])) if random.random() < 0.2 else len(text)
        path.write_bytes(struct.pack('<Q', claimed) + text + body)

    check_refusals(tmp_path, 250, write, good)


class Harm:
    """Makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), 'w'))


def test_foreign_files(good, tmp_path):
    random = np.random.default_rng(6)
    _, tensors = taken_apart(good)
    harm = tmp_path / 'harm'

    def write(path: Path) -> None:
        match random.integers(6):
            case 0:
                torch.save({**tensors, 'harm': Harm(harm)}, path)
            case 1:
                path.write_bytes(pickle.dumps([Harm(harm)] * int(random.integers(1, 9)),
                                              int(random.integers(6))))
            case 2:
                safetensors.torch.save_file(tensors, path, {'format': 'pt'})
            case 3:
                safetensors.torch.save_file(tensors, path)
            case 4:
                starts = (b'\x89PNG\r\n\x1a\n', b'PK\3\4', b'\x7fELF', b'GGUF', b'{', b'')
                path.write_bytes(starts[random.integers(6)] + random.bytes(
                    int(random.integers(0, 5000))))
            case 5:
                other = random.bytes(int(random.integers(1, 50))).hex()
                safetensors.torch.save_file(tensors, path, {'seg_ros': other})

    check_refusals(tmp_path, 150, write, good)
    assert not harm.exists()
