"""Frames go at once where that was measured to bring labels sooner."""

import time

import numpy as np
import pytest
from random_models import random_model

from seg_ros.errors import EngineError
from seg_ros.inference.segmenter import Segmenter
from seg_ros.ros.batching import measure_batching, worth_it

FRAME_S = 0.004


class PatientEngine:
    """Takes a time that is told for each number of pictures, and fails on more than it knows."""

    name, device, precision = 'patient', 'cpu', 'float32'

    def __init__(self, *times: float) -> None:
        self.times = times
        self.counts: list[int] = []

    def infer(self, rgb: np.ndarray,
              confidence: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        self.counts.append(len(rgb))
        if len(rgb) > len(self.times):
            raise EngineError('out of memory')
        time.sleep(FRAME_S * self.times[len(rgb) - 1])
        return rgb[..., 0], rgb[..., 1] if confidence else None

    def close(self) -> None:
        pass


@pytest.fixture(scope='module')
def model():
    return random_model()


def measured(model, cameras: int, *times: float):
    engine = PatientEngine(*times)
    return engine, measure_batching(Segmenter(model, engine), cameras, 64, 96)


def test_batch_pays_only_where_it_brings_labels_sooner_on_average():
    # Two frames one by one: labels after 1 and 2, on average 1.5 times of one frame; four: 2.5.
    assert worth_it(2) == pytest.approx(0.95 * 1.5)
    assert worth_it(4) == pytest.approx(0.95 * 2.5)


@pytest.mark.parametrize(('cameras', 'times', 'sizes'), [
    (4, (1, 1.1, 1.2, 1.3), (1, 2, 4)),     # a GPU with room to spare
    (4, (1, 2, 3, 4), (1,)),                # a CPU whose cores are all busy with one frame
    (4, (1, 1.8, 2.7, 3.6), (1,)),          # a tenth faster a frame, labels later all the same
    (4, (1, 1.2, 3, 4), (1, 2)),            # fills up with two
    (4, (1, 1.2), (1, 2)),                  # memory for two
    (4, (1,), (1,)),                        # memory for one
    (3, (1, 1.1, 1.2), (1, 2, 3)),
    (2, (1, 1.1), (1, 2)),
])
def test_batches_are_used_up_to_the_size_that_pays(model, cameras, times, sizes):
    _, batching = measured(model, cameras, *times)
    assert batching.sizes == sizes
    told = 'one by one' if sizes == (1,) else f'up to {max(sizes)} at once'
    assert told in str(batching)


def test_measure_is_the_time_of_the_batch_over_that_of_one_frame(model):
    _, batching = measured(model, 2, 2, 5)
    # 5 / 2 by the engine; what the segmenter does beside it is more for two than for one.
    assert batching.times[2] == pytest.approx(2.5, rel=0.2)


def test_larger_batches_are_not_tried_after_one_that_does_not_pay(model):
    engine, _ = measured(model, 4, 1, 2, 3, 4)
    assert max(engine.counts) == 2


def test_nothing_is_measured_for_one_camera(model):
    engine, batching = measured(model, 1, 1)
    assert engine.counts == []
    assert batching.sizes == (1,)
