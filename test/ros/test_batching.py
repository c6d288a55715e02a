"""Frames go at once where that was measured to bring labels sooner."""

from types import SimpleNamespace

import numpy as np
import pytest
from random_models import random_model

from seg_ros.errors import EngineError
from seg_ros.inference.segmenter import Segmenter
from seg_ros.ros.batching import measure_batching, worth_it


class PatientEngine:
    """Takes a time that is told for each number of pictures, and fails on more than it knows.

    The time passes on a clock of its own, as a machine's would be that of its load.
    """

    name, device, precision = 'patient', 'cpu', 'float32'

    def __init__(self, *times: float) -> None:
        self.times = times
        self.counts: list[int] = []
        self.now_s = 0.0

    def infer(self, rgb: np.ndarray,
              confidence: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        self.counts.append(len(rgb))
        if len(rgb) > len(self.times):
            raise EngineError('out of memory')
        self.now_s += 0.01 * self.times[len(rgb) - 1]
        return rgb[..., 0], rgb[..., 1] if confidence else None

    def close(self) -> None:
        pass


@pytest.fixture(scope='module')
def model():
    return random_model()


@pytest.fixture
def measured(model, monkeypatch):
    def measured(cameras: int, *times: float):
        engine = PatientEngine(*times)
        monkeypatch.setattr('seg_ros.ros.batching.time',
                            SimpleNamespace(perf_counter=lambda: engine.now_s))
        return engine, measure_batching(Segmenter(model, engine), cameras, 64, 96)
    return measured


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
def test_batches_are_used_up_to_the_size_that_pays(measured, cameras, times, sizes):
    _, batching = measured(cameras, *times)
    assert batching.sizes == sizes
    told = 'one by one' if sizes == (1,) else f'up to {max(sizes)} at once'
    assert told in str(batching)


def test_measure_is_the_time_of_the_batch_over_that_of_one_frame(measured):
    _, batching = measured(2, 2, 5)
    assert batching.times[2] == pytest.approx(5 / 2)


def test_larger_batches_are_not_tried_after_one_that_does_not_pay(measured):
    engine, _ = measured(4, 1, 2, 3, 4)
    assert max(engine.counts) == 2


def test_nothing_is_measured_for_one_camera(measured):
    engine, batching = measured(1, 1)
    assert engine.counts == []
    assert batching.sizes == (1,)
