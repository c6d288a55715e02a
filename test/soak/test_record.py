"""What is taken down while the node runs, and how it is told."""

import pytest

from seg_ros.soak.judgement import Finding
from seg_ros.soak.options import Options
from seg_ros.soak.process_state import ProcessState
from seg_ros.soak.record import Record
from seg_ros.soak.report import explain, table, to_json

MS = 1_000_000


def label(record: Record, *latencies_ms: int) -> None:
    """Have frames come and be labelled, each that late."""
    for latency_ms in latencies_ms:
        stamp = (record.statistics.labelled + 1) * 10_000 * MS
        record.statistics.frame_published(stamp)
        record.statistics.frame_labelled(stamp, stamp + latency_ms * MS)


def test_a_sample_has_the_age_of_the_images_since_the_one_before():
    record = Record()
    state = ProcessState(500.0, 19.0, 23, 29, 1.0)
    for time_s, latencies in ((1.0, [10, 20, 90]), (2.0, []), (3.0, [40, 60])):
        label(record, *latencies)
        record.add(time_s, state)
    assert [sample.age_ms for sample in record.samples] == [20, None, 50]


def test_a_sample_counts_what_the_node_refused_and_lost():
    record = Record()
    record.add(1.0, ProcessState(500.0, 19.0, 23, 29, 1.0))
    record.diagnostics = {'received': '9', 'processed': '4', 'refused': '2', 'failed': '3'}
    record.add(2.0, ProcessState(500.0, 19.0, 23, 29, 1.0))
    assert [sample.failed for sample in record.samples] == [0, 5]
    assert record.counters() == {'received': 9, 'processed': 4, 'dropped': 0, 'refused': 2,
                                 'failed': 3}


def test_the_longest_silence_may_be_in_the_middle_or_last_to_the_end():
    record = Record()
    label(record, 10)
    for time_s in (0.0, 2.0):
        record.listened(time_s)
    assert record.silence_s == 2
    label(record, 10)
    for time_s in (3.0, 3.5):
        record.listened(time_s)
    assert record.silence_s == 2
    record.listened(9.0)
    assert record.silence_s == 6


def test_what_grows_is_told_with_its_limit():
    flat = Finding('threads', '', 29.0, 29.0, 0.0, 0, '')
    assert explain([flat]) == ''
    assert explain([Finding('memory', 'MB', 500.0, 520.0, 150.04, 30.0, 'MB/h'), flat,
                    Finding('file descriptors', '', 23.0, 26.0, 3.0, 0, '')]) == (
        'memory: 150.0 MB/h, expected at most 30.0 MB/h; file descriptors: 3, expected at most 0')


@pytest.mark.parametrize(('findings', 'ended', 'flat'), [
    ([], '', None), ([Finding('threads', '', 29.0, 29.0, 0.0, 0, '')], '', True),
    ([Finding('threads', '', 29.0, 30.0, 1.0, 0, '')], '', False),
    ([Finding('threads', '', 29.0, 29.0, 0.0, 0, '')], 'interrupted', None)])
def test_table_and_file_say_the_same(findings, ended, flat):
    record = Record()
    label(record, *range(1, 101))
    record.add(1.0, ProcessState(500.0, 19.0, 23, 29, 1.0))
    record.add(3.0, ProcessState(500.0, 19.0, 23, 29, 4.0))
    values = to_json(Options(), record, findings, ended)
    assert values['flat'] is flat and values['ended'] == ended
    assert values['frames'] == {'sent': 100, 'labelled': 100, 'dropped': 0, 'in_flight': 0,
                                'overlays': 0}
    # Of 1 to 100, between which is interpolated.
    assert values['age_ms'] == {'p50': 50.5, 'p95': 95.0, 'p99': 99.0}
    assert values['cores'] == 1.5  # 3 s of work in 2 s
    text = table(record, findings)
    assert 'p50 50.5  p95 95.0  p99 99.0' in text and '100 sent  100 labelled' in text
    assert ('GROWS' in text) == (flat is False)
    assert ('too short to be judged' in text) == (not findings)
