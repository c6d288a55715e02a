"""Starting from a model file: the encoder stays, the head goes where the classes differ."""

import pytest
import torch
from random_models import TINY, random_model

from seg_ros.errors import ConfigError
from seg_ros.labels import CAMVID, LabelSet
from seg_ros.networks import build_network
from seg_ros.training.initial_weights import head_of, start_from

MODEL = random_model()
OTHER = LabelSet(tuple(f'kind {i}' for i in range(11)), CAMVID.colors, CAMVID.ids)
HEAD = {'classify.weight', 'classify.bias'}


def kept(network) -> set[str]:
    """Names of the tensors that are those of the model."""
    tensors = MODEL.network.state_dict()
    return {name for name, tensor in network.state_dict().items()
            if name in tensors and torch.equal(tensor, tensors[name])}


def test_the_same_classes_keep_everything():
    network = build_network('asymmetric', {**TINY, 'classes': 11})
    told = start_from(MODEL, CAMVID, network)
    assert kept(network) == set(MODEL.network.state_dict())
    assert told.endswith('its weights are kept')


@pytest.mark.parametrize(('labels', 'classes'), [(OTHER, 11), (OTHER, 4)])
def test_other_classes_get_another_head_even_where_they_are_as_many(labels, classes):
    network = build_network('asymmetric', {**TINY, 'classes': classes})
    before = {name: network.state_dict()[name].clone() for name in HEAD}
    told = start_from(MODEL, labels, network)
    # The bias of the head is 0 in every new network; the model's is 0, too.
    assert kept(network) | HEAD == set(MODEL.network.state_dict())
    assert all(torch.equal(network.state_dict()[name], before[name]) for name in HEAD)
    assert told.endswith('but for those of classify, which begin anew')


def test_all_networks_given_start_alike():
    networks = [build_network('asymmetric', {**TINY, 'classes': 11}) for _ in range(2)]
    start_from(MODEL, CAMVID, *networks)
    assert all(kept(network) == set(MODEL.network.state_dict()) for network in networks)


def test_another_decoder_keeps_the_encoder():
    arguments = {name: TINY[name] for name in ('widths', 'dilations2', 'dilations3')}
    network = build_network('strip', {**arguments, 'classes': 11})
    told = start_from(MODEL, CAMVID, network)
    encoder = {name for name in network.state_dict()
               if name.startswith(('stem.', 'down2.', 'stage2.', 'down3.', 'stage3.'))}
    assert encoder <= kept(network)
    assert 'attention' in told and 'classify' in told and 'stem' not in told


def test_box_that_fits_in_part_is_told_so():
    network = build_network('asymmetric', {**TINY, 'dilations3': [3, 3], 'classes': 11})
    assert start_from(MODEL, CAMVID, network).endswith(
        'but for those of parts of stage3, which begin anew')


def test_head_is_what_follows_the_number_of_classes():
    assert head_of(MODEL.spec) == HEAD
    strip = random_model({'widths': TINY['widths']}, architecture='strip').spec
    assert {name.partition('.')[0] for name in head_of(strip)} == {'classify', 'attention'}


def test_network_that_nothing_fits_is_refused_with_that_of_the_file():
    network = build_network('asymmetric', {'widths': [6, 18, 44], 'dilations2': [],
                                           'dilations3': [], 'pyramid': 9, 'classes': 3})
    with pytest.raises(ConfigError, match='none of its weights fits'):
        start_from(MODEL, OTHER, network)
