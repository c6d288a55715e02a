"""What a soak measured, as a table and as plain values."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from seg_ros.soak.judgement import Finding, Sample, after_warm_up
from seg_ros.soak.options import Options
from seg_ros.soak.record import Record

PERCENTILES = (50, 95, 99)
ENGINE_KEYS = ('engine', 'device', 'precision')


def live_line(record: Record) -> str:
    """How it stands, in a line."""
    statistics, last = record.statistics, record.samples[-1]
    age = '-' if last.age_ms is None else f'{last.age_ms:.0f}'
    return (f'{last.time_s:6.0f} s  memory {last.memory_mb:.1f} MB  '
            f'file descriptors {last.file_descriptors}  threads {last.threads}  '
            f'image age {age} ms  in {statistics.frames_in}  labelled {statistics.labelled}  '
            f'dropped {statistics.dropped}')


def table(record: Record, findings: Sequence[Finding]) -> str:
    """Lines for people."""
    statistics, last = record.statistics, record.samples[-1]
    judged = after_warm_up(record.samples)
    lines = [f'{"":24}  {"first":>10}  {"last":>10}  {"change":>14}  {"limit":>14}']
    for each in findings:
        lines.append(f'{each.name:24}  {_shown(each.first, each.unit):>10}  '
                     f'{_shown(each.last, each.unit):>10}  '
                     f'{_shown(each.change, each.change_unit):>14}  '
                     f'{_shown(each.limit, each.change_unit):>14}'
                     f'{"" if each.flat else "  GROWS"}')
    if not findings:
        lines.append('too short to be judged')
    else:
        lines.append(f'judged: {judged[-1].time_s - judged[0].time_s:.0f} s from '
                     f'{judged[0].time_s:.0f} s on')
    counters = '  '.join(f'{name} {count}' for name, count in record.counters().items())
    age = '  '.join(f'{name} {value:.1f}' for name, value in _ages_ms(record).items())
    return '\n'.join([
        *lines, f'frames in {last.time_s:.0f} s: {statistics.frames_in} sent  '
        f'{statistics.labelled} labelled  {statistics.dropped} dropped  '
        f'{statistics.in_flight} in flight  {record.overlays} overlays',
        f'by the node itself: {counters}', f'image age in ms: {age}',
        f'cores in use: {_cores(judged):.2f}  '
        f'{" ".join(record.diagnostics.get(key, "?") for key in ENGINE_KEYS)}'])


def explain(findings: Sequence[Finding]) -> str:
    """What is not flat, how much, and the limit; '' if all is."""
    return '; '.join(f'{each.name}: {_shown(each.change, each.change_unit)}, expected at most '
                     f'{_shown(each.limit, each.change_unit)}'
                     for each in findings if not each.flat)


def to_json(options: Options, record: Record, findings: Sequence[Finding],
            ended: str) -> dict[str, Any]:
    """The same for programs, and every sample.

    :param ended: why it ended before its time; '' if it did not.
    """
    statistics = record.statistics
    judged = after_warm_up(record.samples)
    return {
        'minutes': options.minutes, 'rate_hz': options.rate_hz, 'ended': ended,
        'flat': all(each.flat for each in findings) if findings and not ended else None,
        'judged_s': [judged[0].time_s, judged[-1].time_s],
        'findings': {each.name.replace(' ', '_'): asdict(each) | {'flat': each.flat}
                     for each in findings},
        'frames': {'sent': statistics.frames_in, 'labelled': statistics.labelled,
                   'dropped': statistics.dropped, 'in_flight': statistics.in_flight,
                   'overlays': record.overlays},
        'counters': record.counters(),
        'age_ms': _ages_ms(record), 'cores': _cores(judged),
        **{key: record.diagnostics.get(key) for key in ENGINE_KEYS},
        'samples': [asdict(sample) for sample in record.samples]}


def _ages_ms(record: Record) -> dict[str, float]:
    values = np.percentile(record.statistics.latencies_ms, PERCENTILES)
    return {f'p{percent}': round(float(value), 1)
            for percent, value in zip(PERCENTILES, values, strict=True)}


def _cores(judged: Sequence[Sample]) -> float:
    """Cores that the node kept busy."""
    seconds = judged[-1].time_s - judged[0].time_s
    return (judged[-1].cpu_s - judged[0].cpu_s) / seconds if seconds else 0.0


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return ''
    return f'{value:.1f} {unit}' if unit else f'{value:g}'
