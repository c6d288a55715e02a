"""The training loop: schedule, averaged weights, resuming, steps that are not finite."""

import copy
import json
import math

import cv2
import pytest
import torch
from torch import nn

from seg_ros.errors import ConfigError, TrainingError
from seg_ros.model_file import ModelSpec
from seg_ros.training.batches import AugmentedData
from seg_ros.training.dataset import open_data
from seg_ros.training.loop import (
    MAX_SKIPPED_IN_A_ROW,
    Trainer,
    average,
    learning_rate,
    make_optimizer,
    run_epochs,
)
from seg_ros.training.recipe import Recipe

WEIGHTS = torch.ones(11)


@pytest.fixture
def trainer(camvid, recipe):
    """Make a trainer on the tiny data; ``std`` and the class weights may be changed."""
    def make(weights=WEIGHTS, std=(60.0, 60.0, 60.0), **changed) -> Trainer:
        chosen = recipe(**changed)
        data = open_data(camvid, 'train')
        spec = ModelSpec(chosen.architecture, dict(chosen.arguments), data.labels,
                         (128.0, 128.0, 128.0), std, (64, 64))
        return Trainer(chosen, spec, AugmentedData(data, chosen), weights)
    return make


def state_of(trainer: Trainer) -> dict[str, torch.Tensor]:
    """A copy of everything that a step may change."""
    parts = {'network': trainer.network.state_dict(), 'averaged': trainer.averaged.state_dict()}
    state = {f'{part}.{name}': tensor.clone() for part, values in parts.items()
             for name, tensor in values.items()}
    for i, values in trainer.optimizer.state_dict()['state'].items():
        state.update({f'optimizer.{i}.{name}': value.clone() for name, value in values.items()})
    return state


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_rate_rises_linearly_and_falls_by_the_poly_rule():
    recipe = Recipe(learning_rate=2.0, warmup_steps=4)
    rates = [learning_rate(step, 10, recipe) for step in range(11)]
    assert rates[0] == pytest.approx(2.0 * 1 / 4)
    assert rates[1] == pytest.approx(2.0 * 2 / 4 * 0.909532576)     # 0.9 ** 0.9
    assert rates[3] == pytest.approx(2.0 * 0.725417847)             # 0.7 ** 0.9
    assert rates[5] == pytest.approx(2.0 * 0.535886731)             # 0.5 ** 0.9
    assert rates[9] == pytest.approx(2.0 * 0.125892541)             # 0.1 ** 0.9
    assert rates[10] == 0


def test_rate_without_warmup_starts_at_its_highest():
    assert learning_rate(0, 10, Recipe(learning_rate=0.5, warmup_steps=0)) == 0.5


def test_rate_past_the_last_step_is_zero():
    assert learning_rate(12, 10, Recipe()) == 0  # a run resumed with fewer epochs


def test_average_moves_weights_and_statistics_and_copies_counters():
    averaged, network = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    with torch.no_grad():
        averaged.weight.copy_(torch.tensor([1.0, 2.0]))
        network.weight.copy_(torch.tensor([5.0, 0.0]))
    network.running_mean += 8
    network.num_batches_tracked += 3
    average(averaged, network, 0.75)
    assert averaged.weight.tolist() == [0.75 * 1 + 0.25 * 5, 0.75 * 2 + 0.25 * 0]
    assert averaged.running_mean.tolist() == [2, 2]
    assert averaged.num_batches_tracked == 3
    assert network.weight.tolist() == [5, 0]


def test_average_starts_fast(trainer):
    run = trainer(epochs=1, batch=5)  # one step
    before = {name: tensor.clone() for name, tensor in run.network.state_dict().items()}
    run.train_epoch()
    after, averaged = run.network.state_dict(), run.averaged.state_dict()
    for name in ('classify.weight', 'stem.0.1.running_mean'):  # decay 1 / (1 + 10), not 0.9
        assert not torch.equal(before[name], after[name])
        expected = before[name] * (1 / 11) + after[name] * (10 / 11)
        assert torch.allclose(averaged[name], expected, atol=1e-6)
    assert averaged['stem.0.1.num_batches_tracked'] == 1


def test_kernels_decay_and_nothing_else(trainer):
    run = trainer(weight_decay=0.3)
    kernels, others = make_optimizer(run.network, run.recipe).param_groups
    assert (kernels['weight_decay'], others['weight_decay']) == (0.3, 0.0)
    assert {p.ndim for p in kernels['params']} == {4}
    assert {p.ndim for p in others['params']} == {1}
    assert len(kernels['params']) + len(others['params']) == len([*run.network.parameters()])


def test_loss_falls(trainer):
    run = trainer(epochs=12, learning_rate=0.01)
    losses = [run.train_epoch()['loss'] for _ in range(12)]
    assert sum(losses[-3:]) < 0.9 * sum(losses[:3])


def test_resumed_run_ends_with_the_same_bits(trainer, tmp_path):
    whole = trainer()
    for _ in range(4):
        whole.train_epoch()
    first = trainer()
    first.train_epoch()
    first.train_epoch()
    first.save(tmp_path / 'last.pt')
    second = trainer()
    second.resume(tmp_path / 'last.pt')
    assert same(state_of(first), state_of(second))
    lines = [second.train_epoch(), second.train_epoch()]
    assert same(state_of(whole), state_of(second))
    assert second.epoch == 4 and second.step == 8
    # Steps 0..7 of 8: the last rate is the recipe's times (1 / 8) ** 0.9.
    assert lines[-1]['learning_rate'] == pytest.approx(0.002 * 0.125 ** 0.9)


def test_checkpoint_of_another_network_is_refused(trainer, tmp_path):
    path = tmp_path / 'last.pt'
    trainer().save(path)
    tiny = {'widths': [5, 16, 40], 'dilations2': [2], 'dilations3': [3], 'pyramid': 8}
    for arguments in ({**tiny, 'pyramid': 9}, {**tiny, 'dilations3': [2]}):
        with pytest.raises(TrainingError, match='checkpoint of another network; give the recipe'):
            trainer(arguments=arguments).resume(path)


@pytest.mark.parametrize('state', [{}, {'recipe': 5}, {'recipe': '[]'}, {'recipe': 'text'}])
def test_checkpoint_of_another_program_is_refused(trainer, tmp_path, state):
    torch.save(state, tmp_path / 'last.pt')
    with pytest.raises(TrainingError, match='give the recipe and data'):
        trainer().resume(tmp_path / 'last.pt')


@pytest.mark.parametrize('fault', [
    {'weights': torch.full((11,), math.inf)},   # the loss is not finite
    {'std': (1e-44, 1e-44, 1e-44)},             # the network's input, so all statistics, too
])
def test_step_that_is_not_finite_changes_nothing_and_is_counted(trainer, fault):
    run = trainer(**fault)
    before = state_of(run)
    line = run.train_epoch()
    assert same(before, state_of(run))
    assert line['skipped_steps'] == run.skipped == 2
    assert line['loss'] is None
    assert run.step == 2  # the schedule goes on


def test_run_recovers_after_steps_that_are_not_finite(trainer):
    run = trainer(epochs=3)
    good = run.std
    run.std = torch.full((3,), 1e-44)
    run.train_epoch()
    run.std = good
    line = run.train_epoch()
    assert math.isfinite(line['loss']) and line['skipped_steps'] == 2
    assert run.skipped_in_a_row == 0
    assert all(torch.isfinite(value).all() for value in state_of(run).values())


def test_loss_of_an_epoch_is_that_of_its_finite_steps(trainer, camvid):
    for path in sorted((camvid / 'trainannot').iterdir())[1:]:
        ids = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        cv2.imwrite(str(path), ids.clip(1))  # class 0 stays in the first picture only
    run = trainer(weights=torch.tensor([math.nan] + 10 * [1.0]), batch=1,
                  augmentation={'crop': [64, 72], 'scale': [1, 1]})
    line = run.train_epoch()
    assert line['skipped_steps'] == 1
    assert 0 < line['loss'] < 10


def test_run_that_stays_not_finite_is_given_up(trainer):
    run = trainer(weights=torch.full((11,), math.nan), epochs=100)
    with pytest.raises(TrainingError, match='50 steps in a row .* lower learning_rate'):
        while True:
            run.train_epoch()
    assert run.skipped == MAX_SKIPPED_IN_A_ROW


def test_single_value_for_batchnorm_is_refused_before_the_first_step(trainer):
    with pytest.raises(ConfigError, match='a batch of one picture needs a crop above 64'):
        trainer(batch=1)
    run = trainer(batch=1, augmentation={'crop': [64, 72]}, epochs=1)
    assert math.isfinite(run.train_epoch()['loss'])


def test_each_epoch_leaves_a_line_and_a_checkpoint(trainer, tmp_path):
    run = trainer(epochs=3, validate_every=2)
    asked = []

    def validate(network: nn.Module) -> dict:
        asked.append((run.epoch, network is run.averaged))
        return {'val_miou': 12.5}

    run_epochs(run, tmp_path, validate)
    lines = [json.loads(line) for line in (tmp_path / 'metrics.jsonl').read_text().splitlines()]
    assert [line['epoch'] for line in lines] == [1, 2, 3]
    assert ['val_miou' in line for line in lines] == [False, True, True]  # the last always
    assert asked == [(2, True), (3, True)]
    again = trainer(epochs=3)
    again.resume(tmp_path / 'last.pt')
    assert again.epoch == 3 and same(state_of(run), state_of(again))


def test_metrics_of_skipped_epochs_are_still_json(trainer, tmp_path):
    run_epochs(trainer(weights=torch.full((11,), math.inf), epochs=1), tmp_path, lambda _: {})
    text = (tmp_path / 'metrics.jsonl').read_text()
    assert json.loads(text, parse_constant=pytest.fail)['loss'] is None


def test_same_seed_gives_the_same_first_weights(trainer):
    one, two, other = trainer(seed=4), trainer(seed=4), trainer(seed=5)
    assert same(state_of(one), state_of(two))
    assert not same(state_of(one), state_of(other))
    assert same(dict(copy.deepcopy(one.network).state_dict()), dict(one.averaged.state_dict()))
