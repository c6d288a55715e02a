"""Where the time of a training step goes."""

import time

import pytest
import torch

from seg_ros.model_file import ModelSpec
from seg_ros.training.batches import AugmentedData
from seg_ros.training.dataset import open_data
from seg_ros.training.loop import Trainer
from seg_ros.training.profile import (
    STAGES,
    WARM_UP_STEPS,
    Profile,
    Stopwatch,
    profile_training,
    table,
)


class SlowData(AugmentedData):
    """Pictures that take a while to come, and processor time too."""

    slept_s = 0.0
    worked_s = 0.0

    def __getitem__(self, key):
        time.sleep(self.slept_s)
        began = time.process_time()
        while time.process_time() - began < self.worked_s:
            pass
        return super().__getitem__(key)


@pytest.fixture
def trainer(camvid, recipe):
    """Make a trainer whose pictures take as long as given."""
    def make(slept_s: float = 0.0, worked_s: float = 0.0) -> Trainer:
        data = SlowData(open_data(camvid, 'train'), recipe())
        data.slept_s, data.worked_s = slept_s, worked_s
        spec = ModelSpec('asymmetric', dict(data.recipe.arguments), data.data.labels,
                         (128.0,) * 3, (60.0,) * 3, (64, 64))
        return Trainer(data.recipe, spec, data, torch.ones(11))
    return make


def test_stages_make_up_the_step(trainer):
    profile = profile_training(trainer(), steps=5)
    assert list(profile.stages) == list(STAGES)
    assert all(seconds > 0 for seconds in profile.stages.values())
    assert max(profile.stages.values()) < profile.step
    assert 0 < profile.waiting_share < 1


@pytest.mark.alone
def test_slow_pictures_show_as_waiting(trainer):
    profile = profile_training(trainer(slept_s=0.5), steps=3)
    assert profile.stages['data'] > 0.3
    assert profile.waiting_share > profile.stages['data'] / (profile.stages['data'] + 1)
    assert profile.loading < 0.4  # sleeping takes no processor


@pytest.mark.alone
def test_work_of_loading_shows_though_nothing_waits_for_it(trainer):
    assert 0.2 <= profile_training(trainer(worked_s=0.1), steps=1).loading < 0.6  # two pictures


def test_steps_are_those_of_training(trainer):
    """Two steps an epoch: the steps asked for run on into further epochs."""
    run, trained = trainer(), trainer()
    profile_training(run, steps=3)
    for _ in range(3):
        trained.train_epoch()
    assert run.step == WARM_UP_STEPS + 3 == trained.step == 6
    for ours, theirs in zip(run.network.parameters(), trained.network.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_stopwatch_gives_each_stage_its_own_time():
    watch = Stopwatch(torch.device('cpu'))
    for _ in range(2):
        for number, stage in enumerate(STAGES):
            time.sleep(0.02 * number)
            watch.lap(stage)
    assert len(watch.steps) == 2
    for step in watch.steps:
        assert list(step) == list(STAGES)
        assert all(seconds >= 0.02 * number for number, seconds in enumerate(step.values()))
        assert step['data'] < 0.02 * 4


def test_table_states_shares_and_setting():
    text = table(Profile({'data': 0.05, 'forward': 0.3, 'loss': 0.1, 'backward': 0.5,
                          'update': 0.05}, 1.0, 0.0525, 0.16, 2, {'batch': '8'}))
    lines = text.splitlines()
    assert lines[1].split() == ['waiting', 'for', 'data', '50.0']
    assert lines[6].split() == ['whole', 'step', '1000.0']
    assert 'Waiting for data is 5.2 % of the time of all steps.' in lines
    assert '160.0 ms of processor time a step, 8.0 % of what 2 cores have' in text
    assert lines[-1].split() == ['batch', '8']


def test_setting_names_machine_and_recipe(trainer):
    setting = profile_training(trainer(), steps=1).setting
    assert setting['torch'] == torch.__version__
    assert setting['processor'].endswith('cores')
    assert (setting['batch'], setting['crop'], setting['precision']) == ('2', '64x64', 'float32')
    assert setting['threads'] == '1 compute, 1 load'
