"""From samples to what is shown and written."""

import json
from dataclasses import replace

import pytest

from seg_ros.benchmark.report import describe, tables
from seg_ros.benchmark.rows import RanOn, base_row, compared, timed
from seg_ros.benchmark.samples import ratio, summarise
from seg_ros.benchmark.variants import Variant

OPENVINO = RanOn('openvino', 'cpu', 'float32')


def row(number: int, stage: str, seconds: list[float], ran_on: RanOn = OPENVINO, **variant):
    return timed(base_row(number, Variant(**variant), (360, 480), ran_on), stage, seconds)


def test_percentiles_lie_between_the_samples():
    summary = summarise([0.001 * number for number in range(101)])  # 0 to 100 ms
    assert (summary.p50_ms, summary.p95_ms, summary.p99_ms) == pytest.approx((50, 95, 99))
    summary = summarise([0.003, 0.001])
    assert (summary.p50_ms, summary.p95_ms) == pytest.approx((2, 2.9))
    assert summarise([0.004]).p99_ms == pytest.approx(4)


def test_one_late_sample_moves_the_rate_but_not_the_median():
    late = row(1, 'network', [0.01] * 9 + [0.11])
    assert late.p50_ms == pytest.approx(10)
    assert late.fps == pytest.approx(10 / 0.2)


def test_pictures_of_a_batch_count_each():
    assert row(1, 'network', [0.5, 0.5], batch=4).fps == pytest.approx(8)


def test_ratios_are_to_the_first_variant_in_the_same_stage():
    rows = compared([row(0, 'peak', [1.0]), row(1, 'network', [0.02]), row(1, 'frame', [0.03]),
                     row(2, 'network', [0.01]), row(2, 'frame', [0.06]),
                     row(2, 'layers.Add', [1.0])])
    assert [each.ratio for each in rows[1:5]] == pytest.approx([1, 1, 0.5, 2])
    assert rows[0].ratio is None and rows[5].ratio is None
    assert rows[3].fps_ratio == pytest.approx(2)


def test_ratio_to_nothing_is_none():
    assert ratio(2.0, 4.0) == 0.5
    assert ratio(2.0, 0.0) is None


def test_row_becomes_json_with_all_that_was_asked_for():
    values = row(1, 'network', [0.0123456789], model='dabnet', threads=2,
                 outputs=('labels', 'overlay')).to_dict()
    assert json.loads(json.dumps(values)) == values
    assert values['name'] == 'dabnet' and values['size'] == '640x480'
    assert values['network_size'] == '480x360' and values['outputs'] == 'labels+overlay'
    assert (values['threads'], values['batch'], values['precision']) == (2, 1, 'float32')
    assert values['p50_ms'] == values['p95_ms'] == values['p99_ms'] == 12.346
    assert values['peak_rss_mb'] is None


def test_variants_are_told_apart_by_what_they_differ_in():
    rows = [row(0, 'peak', [1.0]), row(1, 'network', [1.0]), row(1, 'frame', [1.0]),
            row(2, 'network', [1.0], RanOn('torch', 'cpu', 'float32'), model='dabnet',
                threads=1)]
    common, names = describe(rows)
    assert names == ['asymmetric_camvid openvino threads auto', 'dabnet torch threads 1']
    assert common == 'on cpu, float32, batch 1, 640x480, at the network 480x360, labels'


def test_folds_are_told_where_they_are_not_all():
    rows = [row(1, 'network', [1.0]), row(2, 'network', [1.0], folds='pairs')]
    assert describe(rows)[1] == ['asymmetric_camvid', 'asymmetric_camvid folds pairs']
    assert describe([row(1, 'network', [1.0], folds='none')])[0].endswith('labels, folds none')


def test_table_shows_times_ratios_shares_and_memory():
    rows = compared([
        replace(row(1, 'network', [0.02]), multiply_adds=3_020_000_000, share_of_peak=0.754),
        replace(row(1, 'frame', [0.04]), outside_network=0.125, peak_rss_mb=512.4),
        row(1, 'frame.convert', [0.0015]), row(2, 'network', [0.25]), row(2, 'frame', [0.3]),
        row(2, 'frame.convert', [0.002])])
    text = tables(rows)
    network, frame, stages = (part.splitlines() for part in text.split('\n\n')[1:])
    assert network[2].split()[1:] == ['20.00', '20.00', '20.00', '50.0', '1.00', '3.02', '75']
    assert network[3].split()[1:] == ['250', '250', '250', '4.0', '12.50', '-', '-']
    assert frame[2].split()[-2:] == ['12.5', '512'] and frame[3].split()[-2:] == ['-', '-']
    assert [line.split()[-1] for line in stages[1:]] == ['convert', '1.50', '2.00']
    assert len({len(line) for line in network[1:]}) == 1  # columns
