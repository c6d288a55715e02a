"""Scores against values counted by hand."""

import math

import numpy as np
import pytest

from seg_ros.labels import LabelSet
from seg_ros.training.metrics import ConfusionMatrix


def scored(classes: int, target: list, predicted: list):
    confusion = ConfusionMatrix(classes)
    confusion.add(np.array(target, np.uint8), np.array(predicted, np.uint8))
    return confusion.scores()


def test_scores_by_hand():
    scores = scored(2, [[0, 0, 0], [1, 1, 1]], [[0, 0, 1], [1, 1, 0]])
    assert scores.class_iou == (2 / 4, 2 / 4)
    assert scores.miou == 0.5
    assert scores.pixel_accuracy == pytest.approx(4 / 6)


def test_perfect_labels_score_one():
    scores = scored(3, [[0, 1], [2, 2]], [[0, 1], [2, 2]])
    assert (scores.miou, scores.pixel_accuracy) == (1.0, 1.0)


def test_absent_class_is_left_out_of_the_mean():
    scores = scored(3, [[0, 0, 1, 1]], [[0, 0, 1, 0]])
    assert scores.class_iou[:2] == (pytest.approx(2 / 3), pytest.approx(1 / 2))
    assert math.isnan(scores.class_iou[2])
    assert scores.miou == pytest.approx((2 / 3 + 1 / 2) / 2)


def test_absent_class_that_is_predicted_costs_the_class_it_hides():
    scores = scored(3, [[0, 0, 1, 1]], [[0, 2, 1, 1]])
    assert math.isnan(scores.class_iou[2])
    assert scores.miou == pytest.approx((1 / 2 + 1) / 2)


def test_class_with_no_true_positive_counts_in_the_mean():
    scores = scored(2, [[0, 0, 0, 1]], [[0, 0, 0, 0]])
    assert scores.class_iou == (3 / 4, 0.0)
    assert scores.miou == pytest.approx(3 / 8)


def test_unknown_prediction_counts_as_missed():
    scores = scored(2, [[0, 0, 1, 1]], [[0, 255, 1, 1]])
    assert scores.class_iou == (1 / 2, 1.0)
    assert scores.pixel_accuracy == 3 / 4


def test_void_is_not_counted_whatever_is_predicted():
    scores = scored(2, [[0, 255, 255, 1]], [[0, 0, 255, 1]])
    assert (scores.miou, scores.pixel_accuracy) == (1.0, 1.0)


def test_nothing_but_void_scores_zero():
    scores = scored(2, [[255, 255]], [[0, 1]])
    assert (scores.miou, scores.pixel_accuracy) == (0.0, 0.0)


def test_pictures_add_up_before_the_division():
    confusion = ConfusionMatrix(2)
    for target, predicted in (([[0, 0]], [[0, 1]]), ([[1, 1, 1]], [[1, 1, 1]])):
        confusion.add(np.array(target, np.uint8), np.array(predicted, np.uint8))
    assert confusion.counts.tolist() == [[1, 1, 0], [0, 3, 0]]
    assert confusion.scores().class_iou == (1 / 2, 3 / 4)


def test_random_labels_score_as_when_counted_pixel_by_pixel():
    random = np.random.default_rng(4)
    target = random.choice([0, 1, 2, 255], (20, 30)).astype(np.uint8)
    predicted = random.choice([0, 1, 2, 255], (20, 30)).astype(np.uint8)
    scores = scored(3, target.tolist(), predicted.tolist())
    for class_ in range(3):
        known = target != 255
        both = ((target == class_) & (predicted == class_)).sum()
        either = (known & ((target == class_) | (predicted == class_))).sum()
        assert scores.class_iou[class_] == pytest.approx(both / either)


def test_scores_by_class_are_percent_and_none_where_absent():
    labels = LabelSet(('a', 'b', 'c'), ((0, 0, 0),) * 3)
    scores = scored(3, [[0, 0, 0, 1]], [[0, 0, 1, 1]])
    assert scores.per_class(labels) == {'a': 66.67, 'b': 50.0, 'c': None}
