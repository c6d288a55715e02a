"""Batches depend on seed, epoch and position, and on nothing else."""

import numpy as np
import pytest
import torch

from seg_ros.errors import DataError
from seg_ros.training.batches import (
    AugmentedData,
    batch_size,
    batches,
    deal,
    draw_sample,
    steps_per_epoch,
)
from seg_ros.training.dataset import open_data
from seg_ros.training.validation import DRAWN_SEEDS, drawn_samples


def epoch_of(data: AugmentedData, epoch: int, threads: int = 1):
    return list(batches(data, epoch, threads))


def same(one, other) -> bool:
    return len(one) == len(other) and all(
        torch.equal(x, y) for a, b in zip(one, other, strict=True)
        for x, y in zip(a, b, strict=True))


def test_view_is_decided_by_seed_epoch_and_index(camvid, recipe):
    data = AugmentedData(open_data(camvid, 'train'), recipe(seed=1))
    again = AugmentedData(open_data(camvid, 'train'), recipe(seed=1))
    other = AugmentedData(open_data(camvid, 'train'), recipe(seed=2))
    assert np.array_equal(data[5, 2][0], again[5, 2][0])
    assert np.array_equal(data[5, 2][1], again[5, 2][1])
    assert not np.array_equal(data[5, 2][0], data[6, 2][0])
    assert not np.array_equal(data[5, 2][0], other[5, 2][0])


def test_threads_do_not_change_the_batches(camvid, recipe):
    data = AugmentedData(open_data(camvid, 'train'), recipe())
    assert same(epoch_of(data, 0, 1), epoch_of(data, 0, 3))
    assert not same(epoch_of(data, 0), epoch_of(data, 1))


def test_epoch_shows_each_picture_once_and_drops_what_fills_no_batch(camvid, recipe):
    flat = {'crop': [64, 64], 'scale': [1, 1], 'brightness': 0, 'contrast': 0, 'saturation': 0}
    folder = open_data(camvid, 'train')
    data = AugmentedData(folder, recipe(augmentation=flat))
    # A view at scale 1 is the picture or its mirror image: the sums of its rows are the picture's.
    pictures = {folder[i].rgb.sum(axis=1).tobytes() for i in range(5)}
    seen = [picture.numpy().sum(axis=1).tobytes()
            for rgb, _ in epoch_of(data, 0) for picture in rgb]
    assert len(pictures) == 5
    assert len(seen) == len(set(seen)) == 4 == 2 * steps_per_epoch(data)
    assert set(seen) < pictures


def test_batch_has_the_documented_form(camvid, recipe):
    rgb, target = epoch_of(AugmentedData(open_data(camvid, 'train'), recipe()), 0)[0]
    assert rgb.shape == (2, 64, 64, 3) and rgb.dtype == torch.uint8
    assert target.shape == (2, 64, 64) and target.dtype == torch.int64


def test_batch_larger_than_the_data_is_the_whole_data(camvid, recipe):
    data = AugmentedData(open_data(camvid, 'train'), recipe(batch=8))
    assert steps_per_epoch(data) == 1
    assert [rgb.shape[0] for rgb, _ in epoch_of(data, 0)] == [5]


def test_processes_see_together_what_one_sees_with_their_batches_as_one(camvid, recipe):
    folder = open_data(camvid, 'train')
    each = AugmentedData(folder, recipe(batch=1, drawn_share=1.0))
    one = AugmentedData(folder, recipe(batch=3, drawn_share=1.0))
    dealt = [deal(each, 4, rank, 3) for rank in range(3)]
    whole = deal(one, 4)
    assert len(whole) == steps_per_epoch(each, 3) == steps_per_epoch(one) == 3  # of 10 pictures
    assert [sum(parts, []) for parts in zip(*dealt, strict=True)] == whole
    assert deal(one, 5) != whole


def test_batch_of_a_process_is_loaded_from_its_share(camvid, recipe):
    data = AugmentedData(open_data(camvid, 'train'), recipe())
    shown = list(batches(data, 1, 2, rank=1, processes=2))
    (first, second), = deal(data, 1, 1, 2)
    rgb, target = shown[0]
    assert len(shown) == 1
    for position, index in enumerate((first, second)):
        assert np.array_equal(rgb[position].numpy(), data[1, index][0])
        assert np.array_equal(target[position].numpy(), data[1, index][1])


def test_few_pictures_are_shared_out_evenly(camvid, recipe):
    data = AugmentedData(open_data(camvid, 'train'), recipe(batch=8))
    assert (batch_size(data, 2), steps_per_epoch(data, 2)) == (2, 1)
    assert batch_size(data, 6) == 0


def test_drawn_scenes_are_a_share_of_the_pictures(camvid, recipe):
    data = AugmentedData(open_data(camvid, 'train'), recipe(drawn_share=0.4))
    assert len(data) == 7
    rgb, target = data[0, 6]
    assert rgb.shape == (64, 64, 3)
    assert set(np.unique(target)) <= {*range(11), 255}


def test_drawn_scenes_of_training_and_scoring_have_different_seeds(recipe):
    sample = draw_sample(np.random.default_rng(0))
    again = draw_sample(np.random.default_rng(0))
    assert np.array_equal(sample.rgb, again.rgb) and np.array_equal(sample.target, again.target)
    assert sample.rgb.shape == (360, 480, 3)
    assert max(DRAWN_SEEDS) < 1_000_000
    first = next(iter(drawn_samples(48, 64)))
    assert first.rgb.shape == (48, 64, 3) and first.target.shape == (48, 64)


def test_unreadable_picture_ends_the_epoch_with_its_name(camvid, recipe):
    data = AugmentedData(open_data(camvid, 'train'), recipe())
    for path in (camvid / 'train').iterdir():
        path.write_bytes(b'gone')
    with pytest.raises(DataError, match='cannot be read as a picture'):
        epoch_of(data, 0, 2)
