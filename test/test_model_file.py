"""Model files: what is saved is read back, and a failed write leaves nothing behind."""

import math
import resource
import subprocess
import sys

import pytest
import torch
from tiny_model import LABELS, SPEC, TINY, put_together, taken_apart, tiny_network

from seg_ros.errors import ConfigError, ModelFileError
from seg_ros.model_file import ModelSpec, load_model, save_model
from seg_ros.model_spec import input_size


@pytest.fixture(scope='module')
def network():
    return tiny_network()


@pytest.fixture(scope='module')
def good(network, tmp_path_factory):
    """Bytes of a model file."""
    path = tmp_path_factory.mktemp('model') / 'model.safetensors'
    save_model(path, network, SPEC)
    return path.read_bytes()


def test_model_is_read_back_as_it_was_saved(network, good, tmp_path):
    path = tmp_path / 'model.safetensors'
    path.write_bytes(good)
    model = load_model(path)
    assert model.spec == SPEC
    assert model.path == path.resolve()
    assert not model.network.training
    for name, tensor in network.state_dict().items():
        assert torch.equal(model.network.state_dict()[name], tensor)
    image = torch.randn(1, 3, 40, 56)
    assert torch.equal(model.network(image), network(image))


def test_file_is_plain_safetensors_with_everything_in_one_key(good):
    values, tensors = taken_apart(good)
    assert values['format_version'] == 1
    assert values['unknown_id'] == 255
    assert values['labels']['names'] == ['Fahrbahn', 'Gehweg é', 'sky']
    assert values['labels']['ids'] == [0, 7, 3]
    assert values['mean'] == [100.5, 99.25, 98.0]
    assert values['training_size'] == [64, 96]
    assert tensors['classify.weight'].shape == (3, 8, 1, 1)


def test_signature_in_the_file_is_the_documented_one(good, tmp_path):
    values, tensors = taken_apart(good)
    again, _ = taken_apart(put_together(tmp_path / 'm', values, tensors).read_bytes())
    assert again['sha256'] == values['sha256']


def test_provenance_with_numbers_as_keys_is_saved(network, tmp_path):
    spec = ModelSpec('asymmetric', TINY, LABELS, SPEC.mean, SPEC.std, SPEC.training_size,
                     {'miou': {10: 1.5, 9: 2.5}, 'loss': math.inf})
    save_model(tmp_path / 'm.safetensors', network, spec)
    provenance = load_model(tmp_path / 'm.safetensors').spec.provenance
    assert provenance == {'miou': {'10': 1.5, '9': 2.5}, 'loss': math.inf}


def test_channels_last_network_is_saved_as_any_other(network, good, tmp_path):
    path = tmp_path / 'm.safetensors'
    other = SPEC.build()
    other.load_state_dict(network.state_dict())
    save_model(path, other.to(memory_format=torch.channels_last), SPEC)
    assert path.read_bytes() == good


def test_failed_write_leaves_the_older_file_and_nothing_else(network, good, tmp_path):
    path = tmp_path / 'model.safetensors'
    path.write_bytes(b'older')
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(good) // 2, hard))  # as a full disk does
    try:
        with pytest.raises(ModelFileError, match='cannot be written: File too large') as caught:
            save_model(path, network, SPEC)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(caught.value).startswith(f'{path.resolve()}: ')
    assert [p.name for p in tmp_path.iterdir()] == ['model.safetensors']
    assert path.read_bytes() == b'older'


@pytest.mark.parametrize('where', ['no/such/m.safetensors', 'file/m.safetensors', 'folder'])
def test_place_that_cannot_be_written_is_named(network, tmp_path, where):
    (tmp_path / 'file').touch()
    (tmp_path / 'folder').mkdir()
    with pytest.raises(ModelFileError, match='give another folder') as caught:
        save_model(tmp_path / where, network, SPEC)
    assert str(tmp_path / where) in str(caught.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ['file', 'folder']


def test_specification_refuses_what_would_fail_later():
    with pytest.raises(ConfigError, match='"classes" is the number of labels'):
        ModelSpec('asymmetric', {'classes': 3}, LABELS, SPEC.mean, SPEC.std, (64, 96))
    with pytest.raises(ConfigError, match='mean'):
        ModelSpec('asymmetric', TINY, LABELS, (math.nan, 1.0, 1.0), SPEC.std, (64, 96))


@pytest.mark.parametrize(('picture', 'expected'), [
    ((360, 480), (360, 480)), ((720, 960), (360, 480)), ((480, 640), (360, 480)),
    ((1080, 1920), (312, 552)),  # sqrt(172800 / 2073600) = 0.2887: 311.8 x 554.3
    ((3000, 10), (7200, 32))])
def test_input_size_keeps_aspect_and_area_in_multiples_of_8(picture, expected):
    spec = ModelSpec('asymmetric', TINY, LABELS, SPEC.mean, SPEC.std, (360, 480))
    assert input_size(spec, *picture) == expected


@pytest.mark.parametrize('name', ['asymmetric_camvid', 'strip_camvid'])
def test_loading_a_model_leaves_torchs_compiler_alone(name):
    # Its import takes a second, by which every start of the node would be later.
    code = ('import sys; from seg_ros.model_file import load_model; '
            f'load_model({name!r}); print("torch._dynamo" in sys.modules)')
    done = subprocess.run([sys.executable, '-c', code], text=True, capture_output=True,
                          timeout=120)
    assert done.stdout.strip() == 'False', done.stderr
