"""What is found to grow, and what is not."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from seg_ros.soak.judgement import Finding, Sample, after_warm_up, judge, slope_per_s


def samples(seconds: int, **values: Callable[[int], float]) -> list[Sample]:
    """One a second, from 1 on, of a node that stays as it is but for what is given by time."""
    steady = Sample(0.0, 500.0, 19.0, 23, 29, 0.0, 100.0, 0)
    return [replace(steady, time_s=float(second),
                    **{name: value(second) for name, value in values.items()})
            for second in range(1, seconds + 1)]


def found(run: list[Sample], silence_s: float = 0.5) -> dict[str, Finding]:
    return {each.name: each for each in judge(run, silence_s, 30.0)}


def noise(amplitude: float) -> Callable[[int], float]:
    values = np.random.default_rng(1).uniform(-amplitude, amplitude, 1000)
    return lambda second: float(values[second])


def growing(run: list[Sample], silence_s: float = 0.5) -> list[str]:
    return [name for name, each in found(run, silence_s).items() if not each.flat]


def test_slope_of_a_line_is_exact():
    assert slope_per_s([0, 1, 5, 9], [7, 9, 17, 25]) == pytest.approx(2)
    assert slope_per_s([0, 1, 2], [4, 4, 4]) == 0


def test_a_quarter_of_the_samples_may_lie_anywhere():
    times = list(range(12))
    values = [3.0 * time for time in times]
    for index, wrong in ((0, 900.0), (5, -700.0), (11, 4000.0)):
        values[index] = wrong
    # Of the 66 pairs, the 36 without them have slope 3.
    assert slope_per_s(times, values) == 3


def test_a_node_that_stays_as_it_is_is_flat():
    run = found(samples(600))
    assert list(run) == ['memory', 'shared memory', 'image age', 'file descriptors', 'threads',
                         'longest silence', 'frames refused or failed']
    assert all(each.flat for each in run.values())
    assert (run['memory'].first, run['memory'].last, run['memory'].change) == (500, 500, 0)
    # 4 MB over the 480 s from 120 s to 600 s; likewise 250 ms.
    assert run['memory'].limit == pytest.approx(4 * 3600 / 480)
    assert run['image age'].limit == pytest.approx(250 * 60 / 480)


@pytest.mark.parametrize('mb_per_minute', [1, 20])
def test_a_leak_is_found_in_the_noise(mb_per_minute):
    jitter = noise(2.0)
    run = samples(600, memory_mb=lambda second: (
        500 + mb_per_minute / 60 * second + jitter(second)))
    assert growing(run) == ['memory']
    assert found(run)['memory'].change == pytest.approx(60 * mb_per_minute, abs=5)
    assert found(run)['memory'].change_unit == 'MB/h'


def test_noise_is_no_leak():
    jitter = noise(20.0)
    assert growing(samples(600, memory_mb=lambda second: 500 + jitter(second))) == []


def test_a_large_leak_is_found_within_a_minute_and_a_small_step_is_none():
    leak = samples(60, memory_mb=lambda second: 500 + second / 5)  # 12 MB a minute, 720 an hour
    assert growing(leak) == ['memory']
    assert found(leak)['memory'].change == pytest.approx(720)
    assert growing(samples(60, memory_mb=lambda second: 500 + 3.5 * (second > 40))) == []


def test_shared_memory_may_fill_but_not_without_end():
    assert growing(samples(600, shared_mb=lambda second: 19 + 0.9 * (second // 40))) == []
    assert growing(samples(600, shared_mb=lambda second: 19 + second // 10)) == ['shared memory']


def test_what_is_taken_at_first_is_left_out():
    run = samples(600, memory_mb=lambda second: 300 + 2 * min(second, 100),
                  threads=lambda second: min(second, 20))
    assert growing(run) == []
    assert found(run)['memory'].first == 500
    assert [after_warm_up(samples(seconds))[0].time_s for seconds in (60, 600)] == [20, 120]


def test_an_age_that_grows_is_found_and_a_busy_machine_is_not():
    jitter = noise(30.0)
    # 30 frames a second come and 29.7 go: after each second 10 ms more wait.
    late = samples(600, age_ms=lambda second: 100 + 10 * second + jitter(second))
    assert growing(late) == ['image age']
    assert found(late)['image age'].change == pytest.approx(600, abs=2)
    assert growing(samples(60, age_ms=lambda second: 100 + 10 * second + jitter(second))) == [
        'image age']
    # Another program starts in the middle.
    busy = samples(60, age_ms=lambda second: (1 + 1.8 * (second > 40)) * (100 + jitter(second)))
    assert growing(busy) == []


def test_seconds_without_a_label_image_have_no_age():
    run = samples(60, age_ms=lambda second: 100.0 if second % 3 else None)
    assert found(run)['image age'].change == 0
    silent = samples(60, age_ms=lambda second: None)
    assert found(silent)['image age'].change is None
    assert growing(silent, silence_s=59.0) == ['longest silence']


@pytest.mark.parametrize('name', ['file_descriptors', 'threads'])
def test_one_more_at_the_end_is_found_and_one_for_a_moment_is_not(name):
    leak = samples(600, **{name: lambda second: 30 + second // 300})
    assert growing(leak) == [name.replace('_', ' ')]
    row = found(leak)[name.replace('_', ' ')]
    assert (row.first, row.last, row.change) == (30, 31, 1)
    assert growing(samples(600, **{name: lambda second: 30 + (second % 100 == 0)})) == []
    assert growing(samples(600, **{name: lambda second: 30 - second // 300})) == []


def test_a_lost_frame_and_a_long_silence_are_found():
    assert growing(samples(60, failed=lambda second: second // 59)) == ['frames refused or failed']
    assert growing(samples(60), silence_s=10.0) == []
    assert growing(samples(60), silence_s=10.2) == ['longest silence']  # 10 s and two periods
    assert [each.flat for each in judge(samples(60), 25.0, 0.1)] == [True] * 7


def test_a_moment_is_not_judged():
    assert judge([], 0.0, 30.0) == []
    assert judge(samples(2), 0.0, 30.0) == []
    assert len(judge(samples(5), 0.0, 30.0)) == 7
