"""What a network scores while it trains."""

import numpy as np
import pytest
import torch
from random_models import normalised, random_model

from seg_ros.drawn_scene import DrawnScene
from seg_ros.training import validation
from seg_ros.training.dataset import Sample, open_data
from seg_ros.training.metrics import ConfusionMatrix
from seg_ros.training.validation import predict, score, validate

MODEL = random_model()
SAMPLES = [Sample(*DrawnScene(5, 96, 64).frame(time_s)) for time_s in (0.0, 3.0)]


def test_labels_of_each_sample_are_the_most_probable_classes_in_evaluation_mode():
    MODEL.network.train()
    pairs = list(predict(MODEL.network, MODEL.spec, SAMPLES))
    assert not MODEL.network.training
    assert [sample for sample, _ in pairs] == SAMPLES
    for sample, labels in pairs:
        assert labels.dtype == np.uint8 and labels.shape == (64, 96)
        with torch.no_grad():
            logits = MODEL.network(normalised(MODEL.spec, torch.from_numpy(sample.rgb)[None]))
        highest = logits[0].max(dim=0).values.numpy()
        chosen = np.take_along_axis(logits[0].numpy(), labels[None].astype(int), 0)[0]
        assert np.abs(highest - chosen).max() < 1e-4


def test_gradients_are_computed_again_between_the_samples():
    for _ in predict(MODEL.network, MODEL.spec, SAMPLES):
        assert torch.is_grad_enabled()


def test_score_is_that_of_all_samples_together():
    confusion = ConfusionMatrix(len(MODEL.spec.labels))
    for sample, labels in predict(MODEL.network, MODEL.spec, SAMPLES):
        confusion.add(sample.target, labels)
    scores = score(MODEL.network, MODEL.spec, SAMPLES)
    assert scores.miou == confusion.scores().miou
    assert scores.pixel_accuracy == pytest.approx(np.mean([
        sample.target == labels
        for sample, labels in predict(MODEL.network, MODEL.spec, SAMPLES)]))


def test_a_line_has_what_there_is_to_score_on(camvid, monkeypatch):
    monkeypatch.setattr(validation, 'DRAWN_SEEDS', range(1))
    data = open_data(camvid, 'val')
    both = validate(MODEL.network, MODEL.spec, data, drawn=True)
    assert list(both) == ['val_miou', 'val_pixel_accuracy', 'val_class_iou', 'drawn_miou',
                          'drawn_class_iou']
    assert 0 <= both['val_miou'] <= 100 and set(both['val_class_iou']) == set(data.labels.names)
    assert list(validate(MODEL.network, MODEL.spec, None, drawn=True)) == [
        'drawn_miou', 'drawn_class_iou']
    assert validate(MODEL.network, MODEL.spec, None, drawn=False) == {}
