"""What was measured, a row for each stage of each variant: what ``--json`` writes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from seg_ros.benchmark.samples import Summary, ratio, summarise
from seg_ros.benchmark.variants import ALL_FOLDS, Variant, show_size


@dataclass(frozen=True)
class Row:
    """A stage of a variant. What is None was not measured, or means nothing there.

    :param variant: its number, from 1 on; 0 is the matrix product that shows the cores' peak.
    :param name: of the variant.
    :param stage: 'network' is the engine alone, 'frame' the way from message to messages, its
        parts are 'frame.convert' and so on; 'round_trip' is the way to the node and back, its
        parts, as the node itself tells, are 'node.convert' and so on, over its last frames, those
        of its start among them if they were few, and without p99; 'layers.Convolution' and so on
        are the parts of the network; 'peak' is the matrix product.
    :param size: of the pictures, as text, like network_size.
    :param engine: that ran, like device and precision: never 'auto'.
    :param threads: asked for; 0 is the engine's choice.
    :param p50_ms: of the whole batch, like the other percentiles.
    :param fps: pictures a second.
    :param ratio: of p50_ms to that of the first variant in the same stage.
    :param fps_ratio: of fps to that of the first variant.
    :param outside_network: share, 0..1, of the frame's time that is not the network's (median).
    :param multiply_adds: of one picture.
    :param share_of_peak: multiply-adds a second in terms of those of the matrix product.
    :param layers: of the network that make up the stage.
    :param dropped: pictures that were never labelled, of those in ``frames``.
    :param folds: as in ``Variant``.
    :param peak_rss_mb: largest resident memory of a process that does nothing else.
    """

    variant: int
    name: str
    stage: str
    size: str | None
    network_size: str | None
    engine: str
    device: str
    precision: str
    threads: int
    batch: int
    outputs: str | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None = None
    fps: float | None = None
    ratio: float | None = None
    fps_ratio: float | None = None
    outside_network: float | None = None
    multiply_adds: int | None = None
    share_of_peak: float | None = None
    layers: int | None = None
    frames: int | None = None
    dropped: int | None = None
    peak_rss_mb: float | None = None
    folds: str = ALL_FOLDS

    def to_dict(self) -> dict[str, Any]:
        """JSON values, rounded."""
        return {key: float(f'{value:.5g}') if isinstance(value, float) else value
                for key, value in asdict(self).items()}


class RanOn(NamedTuple):
    """What the network of a variant ran on: never 'auto'."""

    engine: str
    device: str
    precision: str


def base_row(number: int, variant: Variant, network_size: tuple[int, int],
             ran_on: RanOn) -> Row:
    """A row of a variant, without a stage and its times.

    :param number: of the variant, from 1 on.
    """
    return Row(number, variant.name, '', show_size(variant.size), show_size(network_size),
               *ran_on, variant.threads, variant.batch, '+'.join(variant.outputs), None, None,
               folds=variant.folds)


def timed(row: Row, stage: str, seconds: Sequence[float]) -> Row:
    """The row of a stage that took these times."""
    summary: Summary = summarise(seconds)
    total_s = sum(seconds)
    return replace(row, stage=stage, p50_ms=summary.p50_ms, p95_ms=summary.p95_ms,
                   p99_ms=summary.p99_ms,
                   fps=row.batch * len(seconds) / total_s if total_s else None)


def compared(rows: Sequence[Row]) -> list[Row]:
    """The rows with their ratios to the first variant."""
    first = {row.stage: row for row in rows if row.variant == 1}
    return [_compared(row, first[row.stage]) if row.stage in first else row for row in rows]


def _compared(row: Row, first: Row) -> Row:
    def of(value: float | None, other: float | None) -> float | None:
        return None if value is None or other is None else ratio(value, other)
    return replace(row, ratio=of(row.p50_ms, first.p50_ms), fps_ratio=of(row.fps, first.fps))
