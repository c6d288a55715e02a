"""What is counted of the frames of a camera."""

import pytest

from seg_ros.ros.statistics import FrameStatistics


def statistics_of(fates: str, age_ms: float = 5.0) -> FrameStatistics:
    """Let frames end as the letters say: p(rocessed), d(ropped), r(efused), f(ailed)."""
    statistics = FrameStatistics()
    for fate in fates:
        statistics.count_received(dropped_older=fate == 'd')
        if fate == 'p':
            statistics.count_processed({'image_age': age_ms})
        elif fate == 'r':
            statistics.count_refused('cut')
        elif fate == 'f':
            statistics.count_failed('out of memory')
    return statistics


@pytest.mark.parametrize(('fates', 'shares'), [
    ('pdd' * 4, {'processed': 1 / 3, 'dropped': 2 / 3, 'refused': 0.0}),
    ('p' * 10, {'processed': 1.0, 'dropped': 0.0}),
    ('rrrrf' * 2, {'refused': 0.8, 'failed': 0.2}),
    ('d' * 9, {'dropped': 0.0}),  # too few to tell
    ('d' * 300 + 'p' * 150, {'dropped': 0.5}),  # of the last 300
    ('d' * 300 + 'p' * 300, {'dropped': 0.0})])
def test_shares_are_of_the_last_frames(fates, shares):
    statistics = statistics_of(fates)
    for fate, share in shares.items():
        assert statistics.share(fate) == pytest.approx(share)


def test_age_is_the_median_of_the_last_ten():
    statistics = FrameStatistics()
    assert statistics.image_age_s == 0.0
    for age_ms in (*[9000.0] * 50, *[-100.0] * 2, *[100.0] * 3, *[200.0] * 5):
        statistics.count_processed({'image_age': age_ms})
    assert statistics.image_age_s == pytest.approx(0.15)
    for _ in range(10):
        statistics.count_processed({'segment': 3.0})  # without a stamp
    assert statistics.image_age_s == pytest.approx(0.15)


@pytest.mark.parametrize(('fates', 'failing'), [
    ('', False), ('f', True), ('fp', False), ('pf', True),
    ('ffffffffp', True), ('ffrdp', True), ('fffpppp', False),  # most of the last ones, or not
    ('f' * 300 + 'p' * 6, False)])
def test_engine_fails_if_it_did_at_the_last_frame_or_at_most_of_the_last_ten(fates, failing):
    assert statistics_of(fates).failing is failing


def test_values_count_every_fate():
    values = statistics_of('ppdrf').values()
    assert {name: values[name] for name in
            ('received', 'processed', 'dropped', 'refused', 'failed', 'last_error')} == {
        'received': '5', 'processed': '2', 'dropped': '1', 'refused': '1', 'failed': '1',
        'last_error': 'out of memory'}
