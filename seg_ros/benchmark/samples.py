"""Many times of one thing in a few numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Summary:
    """Percentiles, in milliseconds."""

    p50_ms: float
    p95_ms: float
    p99_ms: float


def summarise(seconds: Sequence[float]) -> Summary:
    """Percentiles, between samples by interpolation.

    :param seconds: at least one.
    """
    p50, p95, p99 = (1e3 * np.percentile(seconds, (50, 95, 99))).tolist()
    return Summary(p50, p95, p99)


def ratio(value: float, first: float) -> float | None:
    """``value`` in terms of ``first``; None where that is 0."""
    return value / first if first else None
