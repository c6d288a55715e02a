"""What became of the frames, counted from their stamps."""

import pytest

from seg_ros.demo.stamps import KEPT, StampJoin
from seg_ros.demo.stream_statistics import StreamStatistics

MS = 1_000_000


def counts(statistics: StreamStatistics) -> tuple[int, int, int, int]:
    return (statistics.frames_in, statistics.labelled, statistics.dropped, statistics.in_flight)


def test_frames_before_the_first_labelled_one_do_not_count():
    statistics = StreamStatistics()
    for stamp in (1, 2, 3, 4):
        statistics.frame_published(stamp)
    assert counts(statistics)[:3] == (0, 0, 0)
    statistics.frame_labelled(3, 10)
    assert counts(statistics) == (2, 1, 0, 1)  # frame 4 is on its way


def test_frame_overtaken_by_a_labelled_one_is_dropped():
    statistics = StreamStatistics()
    for stamp in (1, 2, 3, 4, 5):
        statistics.frame_published(stamp)
    statistics.frame_labelled(1, 10)
    statistics.frame_labelled(4, 20)
    assert counts(statistics) == (5, 2, 2, 1)


def test_label_image_that_comes_before_its_frame_is_announced_counts_once():
    statistics = StreamStatistics()
    statistics.frame_labelled(1, 10)
    statistics.frame_published(1)
    statistics.frame_labelled(2, 20)
    statistics.frame_published(2)
    assert counts(statistics) == (2, 2, 0, 0)


def test_frame_announced_late_is_dropped_if_a_later_one_is_labelled():
    statistics = StreamStatistics()
    statistics.frame_published(1)
    statistics.frame_labelled(1, 10)
    statistics.frame_labelled(3, 30)
    statistics.frame_published(2)
    statistics.frame_published(3)
    assert counts(statistics) == (3, 2, 1, 0)


def test_after_the_close_only_frames_in_flight_are_counted():
    statistics = StreamStatistics()
    for stamp in (1, 2, 3):
        statistics.frame_published(stamp)
    statistics.frame_labelled(1, 10)
    statistics.close()
    statistics.frame_published(4)
    assert statistics.frame_labelled(2, 20)
    assert not statistics.frame_labelled(4, 40)
    assert counts(statistics) == (3, 2, 0, 1)
    statistics.give_up()
    assert counts(statistics) == (3, 2, 1, 0)


def test_latency_is_from_stamp_to_arrival_and_fps_from_first_to_last_arrival():
    statistics = StreamStatistics()
    assert statistics.latency_ms() is None and statistics.fps == 0
    for number in range(5):  # latencies 10, 20, 30, 40, 50 ms
        stamp = number * 100 * MS
        statistics.frame_published(stamp)
        statistics.frame_labelled(stamp, stamp + (number + 1) * 10 * MS)
    # 95 % of the way from the first to the fifth is 0.8 of the way from the fourth to the fifth.
    assert statistics.latency_ms() == (pytest.approx(30), pytest.approx(48))
    assert statistics.fps == pytest.approx(4 / 0.44)


def test_messages_of_a_stamp_are_handed_over_once_all_are_there():
    join = StampJoin('labels', 'truth')
    assert join.add('labels', 1, 'l1') is None
    assert join.add('labels', 2, 'l2') is None
    assert join.add('truth', 2, 't2') == {'labels': 'l2', 'truth': 't2'}
    assert join.add('truth', 1, 't1') == {'labels': 'l1', 'truth': 't1'}
    assert join.add('truth', 1, 't1') is None


def test_what_is_never_completed_is_forgotten():
    join = StampJoin('labels', 'truth')
    for stamp in range(KEPT + 1):
        join.add('truth', stamp, stamp)
    assert join.add('labels', 0, 'late') is None
    assert join.add('labels', KEPT, 'in time') == {'labels': 'in time', 'truth': KEPT}
