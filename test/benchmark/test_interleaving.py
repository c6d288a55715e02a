"""Who has a turn when."""

import numpy as np
import pytest
import torch
from random_models import random_model

from seg_ros.benchmark import rounds
from seg_ros.benchmark.contender import Contender, NetworkAlone, draw
from seg_ros.benchmark.rounds import interleave
from seg_ros.benchmark.variants import Variant
from seg_ros.inference.deploy import DeployedNetwork

pytest.importorskip('sensor_msgs')
from seg_ros.benchmark.frame_path import FramePath  # noqa: E402


class RecordingEngine:
    """An engine that writes down when it was asked, and for what."""

    def __init__(self, engine, name: str, record: list) -> None:
        self.engine, self.record, self.wrote = engine, record, name
        self.name, self.device, self.precision = engine.name, engine.device, engine.precision

    def infer(self, rgb, confidence=True):
        self.record.append((self.wrote, rgb.shape, confidence))
        return self.engine.infer(rgb, confidence)

    def close(self):
        self.engine.close()


def contender(name: str, record: list, **changes) -> Contender:
    found = Contender(Variant(engine='torch', device='cpu', threads=1, size=(64, 96), **changes),
                      random_model())
    found.engine = RecordingEngine(found.engine, name, record)
    return found


def test_network_labels_alike_however_much_of_it_is_folded():
    model, found = random_model({}), {}
    rgb = draw((64, 96))[None]
    expected = DeployedNetwork(model)(torch.from_numpy(rgb))[0].numpy()
    for folds in ('none', 'pairs', 'norms', 'shuffles'):
        engine = Contender(Variant(engine='torch', device='cpu', size=(64, 96), folds=folds),
                           model).engine
        assert (engine.infer(rgb)[0] == expected).mean() > 0.999
        names = {type(module).__name__ for module in engine._network.modules()}
        found[folds] = names & {'DepthwisePair', 'BatchNorm2d', 'InPieces'}
    assert found == {'none': {'DepthwisePair', 'BatchNorm2d'}, 'pairs': {'BatchNorm2d'},
                     'norms': set(), 'shuffles': {'InPieces'}}


def test_all_have_one_turn_a_round_and_none_is_always_first():
    record: list = []
    contenders = [contender(name, record) for name in 'ABC']
    times = interleave([NetworkAlone(each) for each in contenders], rounds=5, warm_up=1)
    order = ''.join(name for name, _, _ in record)
    assert order == 'CAB' 'ABC' 'BCA' 'CAB' 'ABC' 'BCA'
    assert [len(laps['network']) for laps in times] == [5, 5, 5]


def test_warm_up_counts_nothing(monkeypatch):
    class Slowing:
        def __init__(self) -> None:
            self.turns = 0

        def run(self):
            self.turns += 1
            return {'turn': float(self.turns)}

    monkeypatch.setattr(rounds, 'PAUSE_S', 0)
    assert interleave([Slowing(), Slowing()], rounds=3, warm_up=4) == [{'turn': [5, 6, 7]}] * 2


def test_batch_goes_to_the_network_at_once_and_confidence_only_where_it_is_listened_to():
    record: list = []
    for outputs in (('labels',), ('labels', 'confidence')):
        each = contender('A', record, batch=3, network_size=(40, 56), outputs=outputs)
        NetworkAlone(each).run()
        FramePath(each).run()
    shape = (3, 40, 56, 3)
    assert record == [('A', shape, False)] * 2 + [('A', shape, True)] * 2


def test_stages_of_a_frame_are_all_of_its_time():
    laps = FramePath(contender('A', [], outputs=('labels', 'overlay'))).run()
    whole_s = laps.pop('frame')
    assert list(laps) == ['convert', 'resize', 'network', 'resize_back', 'overlay', 'message',
                          'serialise']
    assert min(laps.values()) >= 0 and sum(laps.values()) == pytest.approx(whole_s)


def test_frame_path_makes_the_messages_that_are_listened_to():
    path = FramePath(contender('A', [], batch=2, outputs=('labels', 'overlay')))
    path.run()
    assert {name: [(image.encoding, image.height, image.width) for image in images]
            for name, images in path.published.items()} == {
        'labels': [('mono8', 64, 96)] * 2, 'overlay': [('rgb8', 64, 96)] * 2}
    labels = np.frombuffer(path.published['labels'][0].data, np.uint8)
    assert len(np.unique(labels)) > 1 and labels.max() < 11
