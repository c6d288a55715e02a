"""The training loop: averaged weights, resuming, precision, steps that are not finite."""

import copy
import json
import math
import resource
from pathlib import Path

import cv2
import pytest
import torch

from seg_ros.errors import ConfigError, TrainingError
from seg_ros.model_file import ModelSpec
from seg_ros.training.batches import AugmentedData
from seg_ros.training.dataset import open_data
from seg_ros.training.loop import MAX_SKIPPED_IN_A_ROW, Trainer
from seg_ros.training.processes import ALONE, Group

WEIGHTS = torch.ones(11)


@pytest.fixture
def trainer(camvid, recipe):
    """Make a trainer on the tiny data; more than the recipe may be changed."""
    def make(weights=WEIGHTS, std=(60.0, 60.0, 60.0), device='cpu', group=ALONE,
             **changed) -> Trainer:
        chosen = recipe(**changed)
        data = open_data(camvid, 'train')
        spec = ModelSpec(chosen.architecture, dict(chosen.arguments), data.labels,
                         (128.0, 128.0, 128.0), std, (64, 64))
        return Trainer(chosen, spec, AugmentedData(data, chosen), weights, device, group=group)
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


def test_run_resumed_with_another_batch_goes_on_from_the_same_epoch(trainer, tmp_path):
    first = trainer()
    first.train_epoch()
    first.save(tmp_path / 'last.pt')
    second = trainer(batch=1, augmentation={'crop': [64, 72]})
    second.resume(tmp_path / 'last.pt')
    # One of four epochs is over, which are 5 steps each now and were 2.
    assert (first.step, second.step) == (2, 5)
    assert second.train_epoch()['learning_rate'] == pytest.approx(0.002 * (11 / 20) ** 0.9)


def test_resumed_run_takes_its_weight_decay_from_the_recipe_of_now(trainer, tmp_path):
    first = trainer()
    first.train_epoch()
    first.save(tmp_path / 'last.pt')
    same_decay, more = trainer(), trainer(weight_decay=0.5)
    for run, told in ((same_decay, []),
                      (more, ['the recipe has changed since the run began: weight_decay'])):
        assert run.resume(tmp_path / 'last.pt') == told
    before = first.network.classify.weight.detach().clone()
    for run, decay in ((same_decay, 0.02), (more, 0.5)):
        run.optimizer.zero_grad()
        run.network.classify.weight.grad = torch.zeros_like(before)
        run.optimizer.state.clear()  # without moments nothing but the decay moves the weight
        run.optimizer.param_groups[0]['lr'] = rate = 0.1
        run.optimizer.step()  # AdamW's decay takes rate * decay * weight away
        assert torch.allclose(run.network.classify.weight, before * (1 - rate * decay), rtol=1e-6)


def test_bfloat16_trains_as_float32_does(trainer):
    runs = [trainer(precision=precision, learning_rate=0.01, epochs=7)
            for precision in ('float32', 'bfloat16')]
    exact, rounded = ([run.train_epoch()['loss'] for _ in range(7)] for run in runs)
    assert exact != rounded
    assert rounded == pytest.approx(exact, abs=0.15)  # of 2.6 to 2.05; 0.06 was seen
    assert rounded[-1] < 0.9 * rounded[0]
    assert runs[1].skipped == 0
    assert {p.dtype for p in runs[1].network.parameters()} == {torch.float32}


def test_float16_without_a_gpu_is_refused(trainer):
    with pytest.raises(ConfigError, match='float16: is for --device cuda; .* bfloat16 or float32'):
        trainer(precision='float16')


def test_scaled_gradients_move_the_weights_as_unscaled_ones_do(trainer):
    plain, scaled = trainer(), trainer()
    scaled.scaler = torch.amp.GradScaler('cpu', init_scale=1024)  # a power of two rounds nothing
    assert plain.train_epoch()['loss'] == scaled.train_epoch()['loss']
    assert same(state_of(plain), state_of(scaled))


def test_gradients_that_overflow_when_scaled_lower_the_scale(trainer, tmp_path):
    run = trainer(epochs=10)
    run.scaler = torch.amp.GradScaler('cpu', init_scale=2.0 ** 127)  # 2 times that is infinite
    with torch.no_grad():
        run.network.classify.weight.mul_(100)  # for gradients far above 2
    before = state_of(run)
    line = run.train_epoch()
    assert line['skipped_steps'] == 2 and line['loss'] is None
    assert same(before, state_of(run))
    assert run.scaler.get_scale() == 2.0 ** 125
    lines = [run.train_epoch() for _ in range(6)]
    assert lines[-1]['skipped_steps'] == lines[-2]['skipped_steps'] < 12
    assert math.isfinite(lines[-1]['loss'])

    run.save(tmp_path / 'last.pt')
    resumed = trainer(epochs=10)
    resumed.scaler = torch.amp.GradScaler('cpu')
    resumed.resume(tmp_path / 'last.pt')
    assert resumed.scaler.get_scale() == run.scaler.get_scale() < 2.0 ** 125
    assert resumed.train_epoch()['loss'] == run.train_epoch()['loss']
    assert same(state_of(run), state_of(resumed))


@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')
@pytest.mark.parametrize('precision', ['float16', 'bfloat16'])
def test_half_precision_trains_on_a_gpu_as_float32_does(trainer, precision):
    runs = [trainer(device='cuda', precision=chosen, learning_rate=0.01, epochs=7)
            for chosen in ('float32', precision)]
    exact, rounded = ([run.train_epoch()['loss'] for _ in range(7)] for run in runs)
    assert rounded == pytest.approx(exact, abs=0.15)
    assert runs[1].scaler.is_enabled() == (precision == 'float16')


def test_checkpoint_of_another_network_is_refused(trainer, tmp_path):
    path = tmp_path / 'last.pt'
    trainer().save(path)
    tiny = {'widths': [5, 16, 40], 'dilations2': [2], 'dilations3': [3], 'pyramid': 8}
    for arguments in ({**tiny, 'pyramid': 9}, {**tiny, 'dilations3': [2]}):
        with pytest.raises(TrainingError, match='checkpoint of another network or '
                                                'of other classes; give the recipe'):
            trainer(arguments=arguments).resume(path)


def test_checkpoint_holds_the_arguments_that_its_recipe_left_out(trainer, tmp_path):
    path = tmp_path / 'last.pt'
    run = trainer()
    run.save(path)
    state = torch.load(path, weights_only=True)
    recipe = json.loads(state['recipe'])
    assert (recipe['arguments']['activation'], recipe['arguments']['bounded']) == ('relu', True)
    recipe['arguments']['bounded'] = False  # as if that had been the default then
    torch.save({**state, 'recipe': json.dumps(recipe)}, path)
    with pytest.raises(TrainingError, match='checkpoint of another network'):
        trainer().resume(path)


def test_older_checkpoint_that_holds_less_is_resumed(trainer, tmp_path):
    path = tmp_path / 'last.pt'
    run = trainer()
    run.train_epoch()
    run.save(path)
    state = torch.load(path, weights_only=True)
    del state['pictures']
    recipe = json.loads(state['recipe'])
    for name in ('activation', 'bounded', 'complementary'):
        del recipe['arguments'][name]
    torch.save({**state, 'recipe': json.dumps(recipe)}, path)
    resumed = trainer()
    assert resumed.resume(path) == []
    assert same(state_of(run), state_of(resumed))


def test_resumed_run_tells_of_other_pictures(trainer, camvid, tmp_path):
    run = trainer()
    run.save(tmp_path / 'last.pt')

    def told(root: Path) -> list[str]:
        data = AugmentedData(open_data(root, 'train'), run.recipe)
        return Trainer(run.recipe, run.spec, data, WEIGHTS).resume(tmp_path / 'last.pt')

    root = camvid.rename(tmp_path / 'elsewhere')
    assert told(root) == []  # the same pictures in another place
    for folder in ('train', 'trainannot'):
        (root / folder / '002.png').rename(root / folder / '005.png')
    said = 'the pictures have changed since the run began: there were 5, now there are'
    assert told(root) == [f'{said} 5 of other names']
    for folder in ('train', 'trainannot'):
        (root / folder / '005.png').unlink()
    assert told(root) == [f'{said} 4']


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


def test_fewer_pictures_than_processes_are_refused(trainer):
    with pytest.raises(ConfigError, match='5 pictures for 6 processes: .* start fewer'):
        trainer(group=Group(0, 6))


@pytest.mark.parametrize(('epochs_done', 'remedy'), [(0, 'start again'),
                                                     (1, 'go on with --resume')])
def test_lack_of_memory_names_what_to_lower(trainer, epochs_done, remedy):
    run = trainer(batch=2, augmentation={'crop': [2048, 2048], 'scale': [1, 1]})
    run.epoch = epochs_done
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()
    # Enough for six views of 17 MB and the threads that load them; the logits alone have 369 MB.
    resource.setrlimit(resource.RLIMIT_AS, (used + 450_000_000, hard))
    try:
        with pytest.raises(TrainingError) as caught:
            run.train_epoch()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert str(caught.value) == (
        'the memory of cpu does not suffice for the recipe: lower batch (2) or augmentation.crop '
        f'([2048, 2048]) in it, then {remedy}')
    assert 'allocate memory' in str(caught.value.__cause__)  # torch's own words


def test_same_seed_gives_the_same_first_weights(trainer):
    one, two, other = trainer(seed=4), trainer(seed=4), trainer(seed=5)
    assert same(state_of(one), state_of(two))
    assert not same(state_of(one), state_of(other))
    assert same(dict(copy.deepcopy(one.network).state_dict()), dict(one.averaged.state_dict()))
