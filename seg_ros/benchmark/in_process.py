"""Variants side by side in this process: the network alone and the way of a frame."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from seg_ros.benchmark.arithmetic import SIDE, MatrixProduct, multiply_adds_of
from seg_ros.benchmark.contender import Contender, NetworkAlone, like_name, open_model
from seg_ros.benchmark.frame_path import FramePath
from seg_ros.benchmark.memory import peak_rss_mb
from seg_ros.benchmark.rounds import Subject, interleave
from seg_ros.benchmark.rows import RanOn, Row, base_row, compared, timed
from seg_ros.benchmark.variants import Variant
from seg_ros.errors import ConfigError
from seg_ros.inference.threads import default_threads

WARM_UP = 5
Laps = Mapping[str, Sequence[float]]


def measure_in_process(variants: Sequence[Variant], rounds: int,
                       layers: bool) -> list[Row]:
    """Time networks, frame paths and the cores' peak in turns; then measure the memory.

    :param layers: profile the layers of what runs in OpenVINO, too.
    :raises ConfigError: a variant cannot run here, or there are no layers to profile.
    :raises EngineError: the inference failed.
    :raises BenchmarkError: the memory cannot be measured.
    """
    names = [variant.model for variant in variants]
    like = like_name(names)
    models = {name: open_model(name, like) for name in dict.fromkeys(names)}
    contenders = [Contender(variant, models[variant.model]) for variant in variants]
    if layers and not any(contender.engine.name == 'openvino' for contender in contenders):
        raise ConfigError('--layers: no variant runs in openvino; leave it out, or add --engine '
                          'openvino')
    products = {threads: MatrixProduct(threads) for threads in dict.fromkeys(
        _threads(contender) for contender in contenders if contender.engine.device == 'cpu')}
    subjects: list[Subject] = list(products.values())
    for contender in contenders:
        subjects += [NetworkAlone(contender), FramePath(contender)]
    times = interleave(subjects, rounds, WARM_UP)
    rows = [_peak_row(threads, laps)
            for threads, laps in zip(products, times[:len(products)], strict=True)]
    per_ms = {row.threads: row.multiply_adds / row.p50_ms for row in rows
              if row.multiply_adds and row.p50_ms}
    ours = times[len(products):]
    for number, contender in enumerate(contenders, 1):
        base = replace(_base_row(number, contender),
                       peak_rss_mb=peak_rss_mb(contender.variant, like))
        network, frame = ours[2 * number - 2], ours[2 * number - 1]
        peak = (per_ms[_threads(contender)] if contender.engine.device == 'cpu' else None)
        rows += [_network_row(base, contender, network, peak), *_frame_rows(base, frame)]
        if layers and contender.engine.name == 'openvino':
            rows += _layer_rows(base, contender, rounds)
        contender.engine.close()
    return compared(rows)


def _threads(contender: Contender) -> int:
    return contender.variant.threads or default_threads()


def _base_row(number: int, contender: Contender) -> Row:
    engine = contender.engine
    return base_row(number, contender.variant, contender.network_size,
                    RanOn(engine.name, engine.device, engine.precision))


def _peak_row(threads: int, laps: Laps) -> Row:
    row = Row(0, 'matrix product', '', f'{SIDE}x{SIDE}', None, 'torch', 'cpu', 'float32', threads,
              1, None, None, None, multiply_adds=MatrixProduct.multiply_adds)
    return timed(row, 'peak', laps['peak'])


def _network_row(base: Row, contender: Contender, laps: Laps, peak: float | None) -> Row:
    """:param peak: multiply-adds a millisecond that the cores can do, where that is known."""
    row = timed(base, 'network', laps['network'])
    multiply_adds = multiply_adds_of(contender.model, *contender.network_size)
    share = (row.batch * multiply_adds / row.p50_ms / peak
             if multiply_adds and row.p50_ms and peak else None)
    return replace(row, multiply_adds=multiply_adds, share_of_peak=share)


def _frame_rows(base: Row, laps: Laps) -> list[Row]:
    outside = (float(np.median(1 - np.divide(laps['network'], laps['frame'])))
               if 'network' in laps else None)
    whole = replace(timed(base, 'frame', laps['frame']), outside_network=outside)
    return [whole, *(timed(base, f'frame.{stage}', seconds)
                     for stage, seconds in laps.items() if stage != 'frame')]


def _layer_rows(base: Row, contender: Contender, runs: int) -> list[Row]:
    # Imported on demand, as it needs OpenVINO.
    from seg_ros.benchmark.layers import profile_layers
    times, counts = profile_layers(contender, runs)
    return [replace(timed(base, f'layers.{kind}', seconds), layers=counts[kind])
            for kind, seconds in times.items()]
