"""Intra-class and inter-class terms against values worked out by hand."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from seg_ros.errors import ConfigError
from seg_ros.model_file import ModelSpec
from seg_ros.training.batches import AugmentedData
from seg_ros.training.class_terms import class_term, conditioned_terms, literal_terms
from seg_ros.training.dataset import open_data
from seg_ros.training.loop import Trainer
from seg_ros.training.losses import cross_entropy, total_loss
from seg_ros.training.recipe import Recipe, load_recipe, to_mapping

ROOT = Path(__file__).parents[2]
TERMS = [literal_terms, lambda logits, target: conditioned_terms(logits, target, 1.0)]
both_kinds = pytest.mark.parametrize('terms', TERMS, ids=['literal', 'conditioned'])


def logits_of(*pixels: tuple[float, ...], dtype: torch.dtype = torch.float64) -> Tensor:
    """Logits of one picture, a row of pixels, from their probabilities: (1, classes, 1, W)."""
    return torch.tensor(pixels, dtype=dtype).log().T[None, :, None]


def labels_of(*ids: int) -> Tensor:
    return torch.tensor(ids)[None, None]


def values(terms: tuple[Tensor, Tensor]) -> list[float]:
    return [term.item() for term in terms]


def test_literal_terms_of_two_pixels_by_hand():
    logits = logits_of((0.6, 0.3, 0.1), (0.2, 0.5, 0.3))
    # Centres 0.4, 0.4, 0.2; distances to them 0.2, 0.1, 0.1 at both pixels; of pairs 0, 0.2, 0.2.
    assert values(literal_terms(logits, labels_of(0, 1))) == pytest.approx([0.4 / 3, 0.4])


def test_literal_terms_do_not_see_the_labels():
    logits = logits_of((0.6, 0.3, 0.1), (0.2, 0.5, 0.3))
    assert values(literal_terms(logits, labels_of(2, 0))) == values(
        literal_terms(logits, labels_of(0, 1)))


def test_literal_centres_are_those_of_each_picture():
    certain = 1 - 1e-12, 1e-12
    logits = torch.cat([logits_of(certain, certain), logits_of(certain[::-1], certain[::-1])])
    # Each picture is one class everywhere: nothing to draw together, centres 1 apart. Common
    # centres would be 1/2 and 1/2.
    intra, inter = literal_terms(logits, labels_of(0, 0).repeat(2, 1, 1))
    assert (intra.item(), inter.item()) == pytest.approx((0, 1), abs=1e-9)


def test_conditioned_terms_of_three_pixels_by_hand():
    logits = logits_of((0.8, 0.2, 0.0001), (0.6, 0.4, 0.0001), (0.2, 0.8, 0.0001))
    # Softmax divides by 1.0001. Centres (0.7, 0.3) and (0.2, 0.8), sqrt(0.5) apart; squared
    # distances to them 0.02, 0.02, 0. Class 2 has no pixel and so no pair.
    intra, inter = conditioned_terms(logits, labels_of(0, 0, 1), 1.0)
    assert intra.item() == pytest.approx(0.04 / 3 / 1.0001 ** 2)
    assert inter.item() == pytest.approx(1 - math.sqrt(0.5) / 1.0001)


def test_conditioned_pairs_of_three_classes_by_hand():
    logits = logits_of((0.5, 0.3, 0.2), (0.3, 0.3, 0.4), (0.2, 0.3, 0.5))
    intra, inter = conditioned_terms(logits, labels_of(0, 1, 2), 0.4)
    # Distances sqrt(0.04 + 0.04), sqrt(0.09 + 0.09), sqrt(0.01 + 0.01); the second is above 0.4.
    assert intra.item() == pytest.approx(0, abs=1e-15)
    assert inter.item() == pytest.approx(0.4 - math.sqrt(0.08) + 0.4 - math.sqrt(0.02))


def test_conditioned_centres_are_those_of_the_batch():
    one, other = logits_of((0.9, 0.1)), logits_of((0.5, 0.5))
    intra, inter = conditioned_terms(torch.cat([one, other]), torch.zeros(2, 1, 1).long(), 1.0)
    assert intra.item() == pytest.approx(0.2 ** 2 + 0.2 ** 2)  # centre (0.7, 0.3)
    assert inter.item() == 0


@both_kinds
def test_void_has_no_part_in_the_terms(terms):
    clean = logits_of((0.6, 0.3, 0.1), (0.2, 0.5, 0.3))
    with_void = logits_of((0.1, 0.1, 0.8), (0.6, 0.3, 0.1), (0.9, 0.05, 0.05), (0.2, 0.5, 0.3))
    with_void.requires_grad_()
    found = terms(with_void, labels_of(255, 0, 255, 1))
    assert values(found) == pytest.approx(values(terms(clean, labels_of(0, 1))))
    sum(found).backward()
    assert (with_void.grad[..., [0, 2]] == 0).all() and with_void.grad.abs().sum() > 0


@both_kinds
def test_nothing_but_void_gives_zero_and_no_gradient(terms):
    logits = logits_of((0.6, 0.4), (0.2, 0.8)).requires_grad_()
    found = terms(logits, labels_of(255, 255))
    sum(found).backward()
    assert values(found) == [0, 0]
    assert (logits.grad == 0).all()


def test_classes_without_pixels_change_nothing():
    few = logits_of((0.8, 0.2), (0.4, 0.6), (0.2, 0.8), dtype=torch.float32)
    many = torch.cat([few, torch.full((1, 9, 1, 3), -200.0)], dim=1).requires_grad_()
    target = labels_of(0, 0, 1)
    found = conditioned_terms(many, target, 1.0)
    assert values(found) == pytest.approx(values(conditioned_terms(few, target, 1.0)))
    sum(found).backward()
    assert torch.isfinite(many.grad).all()


@both_kinds
def test_gradients_are_finite_where_all_pixels_are_alike(terms):
    """Centres coincide, distances are 0: where the root of a square has no derivative."""
    for logit in (0.0, 1e4):
        logits = torch.zeros(2, 3, 2, 2)
        logits[:, 0] = logit
        logits.requires_grad_()
        sum(terms(logits, torch.tensor([0, 1, 2, 255]).view(1, 2, 2).repeat(2, 1, 1))).backward()
        assert torch.isfinite(logits.grad).all()


@both_kinds
@pytest.mark.parametrize('term', [0, 1])
def test_gradients_are_those_of_differences(terms, term):
    generator = torch.Generator().manual_seed(7)
    logits = torch.randn(2, 4, 2, 3, dtype=torch.double, generator=generator).requires_grad_()
    target = torch.tensor([0, 1, 1, 255, 0, 1, 3, 3, 0, 255, 1, 0]).view(2, 2, 3)
    assert terms(logits, target)[term] > 0
    assert torch.autograd.gradcheck(lambda x: terms(x, target)[term], logits)


@both_kinds
def test_terms_are_float32_within_autocast(terms):
    generator = torch.Generator().manual_seed(7)
    logits = torch.randn(2, 4, 8, 8, generator=generator).bfloat16()
    target = torch.arange(128).view(2, 8, 8) % 4
    expected = values(terms(logits.double(), target))
    with torch.autocast('cpu', torch.bfloat16):
        found = terms(logits, target)
    assert {term.dtype for term in found} == {torch.float32}
    assert values(found) == pytest.approx(expected, rel=1e-5)  # bfloat16 has three digits


def test_literal_distances_between_centres_are_to_grow_and_conditioned_ones_too():
    near, far = logits_of((0.6, 0.4), (0.4, 0.6)), logits_of((0.9, 0.1), (0.1, 0.9))
    assert class_term('conditioned', far, labels_of(0, 1), 0.0, 1.0, 1.0) < class_term(
        'conditioned', near, labels_of(0, 1), 0.0, 1.0, 1.0)
    logits = logits_of((0.6, 0.3, 0.1), (0.2, 0.5, 0.3))  # terms 0.4 / 3 and 0.4, as above
    loss = class_term('literal', logits, labels_of(0, 1), 3.0, 0.5, 1.0)
    assert loss.item() == pytest.approx(3 * 0.4 / 3 - 0.5 * 0.4)


def test_conditioned_terms_are_weighted_and_added():
    logits = logits_of((0.9, 0.1), (0.5, 0.5), (0.2, 0.8))
    # Centres (0.7, 0.3) and (0.2, 0.8); squared distances 0.08, 0.08, 0.
    loss = class_term('conditioned', logits, labels_of(0, 0, 1), 3.0, 0.5, 1.25)
    assert loss.item() == pytest.approx(3 * 0.16 / 3 + 0.5 * (1.25 - math.sqrt(0.5)))


# In the loss and the recipe.

def test_weights_rise_linearly_over_the_warm_up():
    recipe = Recipe(class_terms='literal', intra_weight=3.0, inter_weight=0.5,
                    terms_warmup_steps=4)
    logits, target = logits_of((0.6, 0.3, 0.1), (0.2, 0.5, 0.3)), labels_of(0, 1)
    entropy = -(math.log(0.6) + math.log(0.5)) / 2
    for step, share in ((0, 0.25), (1, 0.5), (3, 1.0), (100, 1.0)):
        loss = total_loss(logits, target, torch.ones(3), recipe, step)
        assert loss.item() == pytest.approx(entropy + share * 0.2, rel=1e-6)


def test_without_terms_the_loss_is_the_cross_entropy():
    logits, target = logits_of((0.6, 0.4), (0.2, 0.8)), labels_of(0, 1)
    loss = total_loss(logits, target, torch.ones(2), Recipe(), 10_000)
    assert torch.equal(loss, cross_entropy(logits, target, torch.ones(2)))


def test_terms_are_full_from_the_start_without_warm_up():
    recipe = Recipe(class_terms='conditioned', intra_weight=0.0, inter_weight=1.0, margin=1.0,
                    terms_warmup_steps=0)
    logits, target = logits_of((0.5, 0.5), (0.5, 0.5)), labels_of(0, 1)
    loss = total_loss(logits, target, torch.ones(2), recipe, 0)
    assert loss.item() == pytest.approx(math.log(2) + 1, rel=1e-6)


@pytest.mark.parametrize('changed', [
    {'class_terms': 'literal'}, {'class_terms': 'conditioned', 'margin': 1.2},
    {'class_terms': 'conditioned', 'architecture': 'strip',
     'arguments': {'widths': [5, 16, 40], 'dilations3': [3], 'pooled': 3, 'hidden': 8}}])
def test_both_networks_train_with_them(camvid, recipe, changed):
    chosen = recipe(intra_weight=0.5, inter_weight=0.1, terms_warmup_steps=2, **changed)
    data = open_data(camvid, 'train')
    spec = ModelSpec(chosen.architecture, dict(chosen.arguments), data.labels,
                     (128.0, 128.0, 128.0), (60.0, 60.0, 60.0), (64, 64))
    run = Trainer(chosen, spec, AugmentedData(data, chosen), torch.ones(11))
    line = run.train_epoch()
    assert math.isfinite(line['loss']) and line['skipped_steps'] == 0


def test_loop_gives_the_loss_the_step_from_0(camvid, recipe):
    """With one step an epoch, the first loss tells the share of the terms in it."""
    losses = []
    for warmup in (0, 4):
        chosen = recipe(class_terms='conditioned', intra_weight=0.0, inter_weight=1.0, batch=5,
                        terms_warmup_steps=warmup)
        data = open_data(camvid, 'train')
        spec = ModelSpec(chosen.architecture, dict(chosen.arguments), data.labels,
                         (128.0, 128.0, 128.0), (60.0, 60.0, 60.0), (64, 64))
        run = Trainer(chosen, spec, AugmentedData(data, chosen), torch.zeros(11))
        losses.append(run.train_epoch()['loss'])  # without weights the cross-entropy is 0
    assert losses[1] == pytest.approx(losses[0] / 4, rel=1e-4) and losses[0] > 1


@pytest.mark.parametrize('name', ['train_camvid', 'train_camvid_all', 'train_custom'])
def test_recipes_add_what_won_the_study(name):
    recipe = load_recipe(ROOT / 'config' / f'{name}.yaml')
    assert (recipe.class_terms, recipe.intra_weight, recipe.inter_weight) == (
        'conditioned', 0.01, 0.01)


def test_recipe_of_the_strip_network_is_that_of_the_other_with_class_terms():
    recipe = load_recipe(ROOT / 'config' / 'train_strip.yaml')
    assert recipe.architecture == 'strip' and recipe.class_terms in ('literal', 'conditioned')
    asymmetric = load_recipe(ROOT / 'config' / 'train_camvid.yaml')
    assert recipe.drawn_share == asymmetric.drawn_share
    assert recipe.augmentation == asymmetric.augmentation


def test_terms_survive_the_way_through_the_recipe_file(recipe_file):
    changed = {'class_terms': 'conditioned', 'intra_weight': 1, 'inter_weight': 0.25,
               'margin': 1.4, 'terms_warmup_steps': 7}
    written = to_mapping(load_recipe(recipe_file(**changed)))
    assert {key: written[key] for key in changed} == changed


@pytest.mark.parametrize(('changed', 'said'), [
    ({'class_terms': 'both'}, "class_terms 'both': expected none, literal, conditioned"),
    ({'class_terms': None}, 'class_terms: expected str, got None'),
    ({'class_term': 'none'}, 'unknown key class_term; did you mean class_terms?'),
    ({'intra_weight': -1}, 'intra_weight -1.0: expected 0 to 100'),
    ({'inter_weight': math.nan}, 'inter_weight nan: expected 0 to 100'),
    ({'margin': 1.5}, 'margin 1.5: expected 0 to 1.4142'),
    ({'terms_warmup_steps': 2.5}, 'terms_warmup_steps: expected int, got 2.5'),
    ({'terms_warmup_steps': -1}, 'terms_warmup_steps -1: expected 0')])
def test_terms_that_cannot_be_are_refused(recipe_file, changed, said):
    with pytest.raises(ConfigError) as caught:
        load_recipe(recipe_file(**changed))
    assert said in str(caught.value)
