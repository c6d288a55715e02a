"""What grows in a run and what stays flat."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# What a process takes at first (memory pools, threads that start when needed) it keeps, and takes
# no more.
WARM_UP_SHARE, LONGEST_WARM_UP_S = 1 / 3, 120.0
FEWEST_SAMPLES = 3
END_SHARE = 0.1  # of the samples, whose median is where a quantity begins or ends
LONGEST_SILENCE_S = 10.0


@dataclass(frozen=True)
class Sample:
    """What was seen at a moment.

    :param time_s: since the first label image.
    :param shared_mb: of shared memory, which is not in ``memory_mb``.
    :param cpu_s: seconds of all cores that the node took since its start.
    :param age_ms: from stamp to arrival, the median over the label images that came since the
        sample before; None if none came.
    :param failed: frames that the node has refused or lost so far.
    """

    time_s: float
    memory_mb: float
    shared_mb: float
    file_descriptors: int
    threads: int
    cpu_s: float
    age_ms: float | None
    failed: int


@dataclass(frozen=True)
class Finding:
    """How one quantity went.

    :param unit: of ``first`` and ``last``.
    :param first: where it began: the median of the first samples that are judged; None where
        only ``change`` tells.
    :param last: likewise where it ended.
    :param change: None where there is too little to tell.
    :param limit: a larger change is not flat.
    :param change_unit: of both.
    """

    name: str
    unit: str
    first: float | None
    last: float | None
    change: float | None
    limit: float
    change_unit: str

    @property
    def flat(self) -> bool:
        return self.change is None or self.change <= self.limit


@dataclass(frozen=True)
class _Slope:
    """How a slope is told and judged.

    :param limit: steepest that is flat, per ``per_s``.
    :param noise: change over all that is judged that tells nothing, however short that is.
    :param noise_share: likewise, as a share of where it began.
    """

    unit: str
    per_s: float
    limit: float
    noise: float
    noise_share: float


# Allocators take memory in pieces of some MB. Fast DDS hands messages through shared memory whose
# places are used one after the other. Ages treble when another program starts; where all frames
# wait and one in a hundred comes too much, they grow by 600 ms a minute.
_MEMORY = _Slope('MB/h', 3600.0, 10.0, 4.0, 0.0)
_SHARED = _Slope('MB/h', 3600.0, 10.0, 32.0, 0.0)
_AGE = _Slope('ms/min', 60.0, 5.0, 250.0, 1.0)


def slope_per_s(times_s: Sequence[float], values: Sequence[float]) -> float:
    """Slope by Theil and Sen: the median of the slopes between any two samples.

    A quarter of the samples may lie anywhere without moving it far.

    :param times_s: rising, at least two.
    """
    times, levels = np.asarray(times_s, float), np.asarray(values, float)
    earlier, later = np.triu_indices(len(times), 1)
    return float(np.median((levels[later] - levels[earlier]) / (times[later] - times[earlier])))


def after_warm_up(samples: Sequence[Sample]) -> list[Sample]:
    """Those that are judged."""
    if not samples:
        return []
    warm_up_s = min(WARM_UP_SHARE * samples[-1].time_s, LONGEST_WARM_UP_S)
    return [sample for sample in samples if sample.time_s >= warm_up_s]


def judge(samples: Sequence[Sample], silence_s: float, rate_hz: float) -> list[Finding]:
    """Judge a run.

    :param silence_s: the longest time without a label image.
    :param rate_hz: of the pictures.
    :return: one of each quantity; none where the run was too short.
    """
    judged = after_warm_up(samples)
    if len(judged) < FEWEST_SAMPLES:
        return []
    return [
        _judge_slope('memory', 'MB', [(each.time_s, each.memory_mb) for each in judged], _MEMORY),
        _judge_slope('shared memory', 'MB', [(each.time_s, each.shared_mb) for each in judged],
                     _SHARED),
        _judge_slope('image age', 'ms', [(each.time_s, each.age_ms) for each in judged
                                         if each.age_ms is not None], _AGE),
        _judge_count('file descriptors', [each.file_descriptors for each in judged]),
        _judge_count('threads', [each.threads for each in judged]),
        Finding('longest silence', '', None, None, silence_s, LONGEST_SILENCE_S + 2 / rate_hz,
                's'),
        Finding('frames refused or failed', '', None, None, samples[-1].failed, 0, '')]


def _judge_slope(name: str, unit: str, points: Sequence[tuple[float, float]],
                 slope: _Slope) -> Finding:
    """:param points: time in seconds and value of each sample."""
    if len(points) < FEWEST_SAMPLES:
        return Finding(name, unit, None, None, None, slope.limit, slope.unit)
    times_s, values = zip(*points, strict=True)
    change = slope_per_s(times_s, values) * slope.per_s
    first, last = _ends(values)
    noise = max(slope.noise, slope.noise_share * first)
    limit = max(slope.limit, noise * slope.per_s / (times_s[-1] - times_s[0]))
    return Finding(name, unit, first, last, change, limit, slope.unit)


def _judge_count(name: str, values: Sequence[int]) -> Finding:
    first, last = _ends(values)
    return Finding(name, '', first, last, last - first, 0, '')


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Where they begin and end, by medians over some."""
    some = max(1, round(END_SHARE * len(values)))
    return float(np.median(values[:some])), float(np.median(values[-some:]))
