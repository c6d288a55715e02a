"""Rows as tables, and what they were measured on."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

import torch

from seg_ros.benchmark.rows import Row
from seg_ros.benchmark.variants import ALL_FOLDS
from seg_ros.training.versions import cores, versions

# Has Python's messages check each byte that is assigned, as they always do before Iron.
FIELD_CHECKS = 'ROS_PYTHON_CHECK_FIELDS'
Column = tuple[str, Callable[[Row], str]]


def setting() -> dict[str, str]:
    """Processor, its cores and threads, and versions of what computes."""
    found = versions('cpu')
    names = ('seg_ros', 'commit', 'python', 'torch', 'numpy', 'opencv')
    setting = {'processor': found['processor'], 'cores': str(cores())}
    setting |= {name: found[name] for name in names if found[name]}
    if os.environ.get(FIELD_CHECKS) == '1':
        setting[FIELD_CHECKS] = '1'
    for package in ('openvino', 'onnxruntime', 'onnxruntime-gpu'):
        with suppress(PackageNotFoundError):
            setting[package] = version(package)
    if torch.cuda.is_available():
        setting['gpu'] = torch.cuda.get_device_name()
    return setting


def _ms(value: float | None) -> str:
    return '-' if value is None else f'{value:.2f}' if value < 100 else f'{value:.0f}'


def _number(digits: int, factor: float = 1) -> Callable[[float | None], str]:
    return lambda value: '-' if value is None else f'{factor * value:.{digits}f}'


COLUMNS: dict[str, Column] = {
    'p50_ms': ('p50 ms', lambda row: _ms(row.p50_ms)),
    'p95_ms': ('p95 ms', lambda row: _ms(row.p95_ms)),
    'p99_ms': ('p99 ms', lambda row: _ms(row.p99_ms)),
    'fps': ('frames/s', lambda row: _number(1)(row.fps)),
    'ratio': ('ratio', lambda row: _number(2)(row.ratio)),
    'fps_ratio': ('ratio', lambda row: _number(2)(row.fps_ratio)),
    'multiply_adds': ('GMAC', lambda row: _number(2, 1e-9)(row.multiply_adds)),
    'share_of_peak': ('% of peak', lambda row: _number(0, 100)(row.share_of_peak)),
    'outside_network': ('% outside network',
                        lambda row: _number(1, 100)(row.outside_network)),
    'frames': ('frames', lambda row: str(row.frames)),
    'dropped': ('dropped', lambda row: str(row.dropped)),
    'peak_rss_mb': ('peak MB', lambda row: _number(0)(row.peak_rss_mb))}
"""Heading and text of what of a row is shown."""

TABLES = {
    'network': ('Network alone', ('p50_ms', 'p95_ms', 'p99_ms', 'fps', 'ratio', 'multiply_adds',
                                  'share_of_peak')),
    'frame': ('Way of a frame, from message to messages, without DDS',
              ('p50_ms', 'p95_ms', 'p99_ms', 'fps', 'ratio', 'outside_network', 'peak_rss_mb')),
    'round_trip': ('Round trip through DDS, from publishing to the labels',
                   ('p50_ms', 'p95_ms', 'p99_ms', 'ratio', 'fps', 'fps_ratio', 'frames',
                    'dropped', 'peak_rss_mb'))}


def tables(rows: Sequence[Row]) -> str:
    """All of it as text."""
    common, names = describe(rows)
    parts = [_header(common), *_peaks(rows)]
    for stage, (title, columns) in TABLES.items():
        if found := [row for row in rows if row.stage == stage]:
            parts.append(f'{title}\n' + _grid(
                ['', *(COLUMNS[column][0] for column in columns)],
                [[names[row.variant - 1], *(COLUMNS[column][1](row) for column in columns)]
                 for row in found]))
    for prefix, title in (('frame.', 'Its stages, p50 in ms'),
                          ('node.', 'As the nodes tell of their last frames, p50 in ms')):
        if found := [row for row in rows if row.stage.startswith(prefix)]:
            parts.append(f'{title}\n' + _stages(found, prefix, names))
    for number, name in enumerate(names, 1):
        if found := [row for row in rows if row.variant == number
                     and row.stage.startswith('layers.')]:
            parts.append(f'Layers of {name}\n' + _layers(found))
    return '\n\n'.join(parts)


SHOWN: dict[str, Callable[[Row], str]] = {
    'engine': lambda row: row.engine, 'device': lambda row: f'on {row.device}',
    'precision': lambda row: row.precision,
    'threads': lambda row: f'threads {row.threads or "auto"}',
    'batch': lambda row: f'batch {row.batch}', 'size': lambda row: str(row.size),
    'network_size': lambda row: f'at the network {row.network_size}',
    'outputs': lambda row: str(row.outputs),
    'folds': lambda row: '' if row.folds == ALL_FOLDS else f'folds {row.folds}'}


def describe(rows: Sequence[Row]) -> tuple[str, list[str]]:
    """What all variants have in common, and of each its name with what it differs in."""
    firsts = list({row.variant: row for row in reversed(rows) if row.variant}.values())
    firsts.sort(key=lambda row: row.variant)
    shown = [[show(row) for row in firsts] for show in SHOWN.values()]
    common = [texts[0] for texts in shown if len(set(texts)) == 1]
    differing = [texts for texts in shown if len(set(texts)) > 1]
    return ', '.join(filter(None, common)), [
        ' '.join(filter(None, [row.name, *(texts[index] for texts in differing)]))
        for index, row in enumerate(firsts)]


def _header(common: str) -> str:
    found = setting()
    where = f'{found.pop("processor")}, {found.pop("cores")} cores'
    lines = [where, ', '.join(f'{name} {text}' for name, text in found.items())]
    return '\n'.join([*lines, f'for all: {common}'] if common else lines)


def _peaks(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if row.stage == 'peak' and row.multiply_adds and row.p50_ms:
            yield (f'Peak by a float32 matrix product {row.size}, {row.threads} threads: '
                   f'{row.multiply_adds / row.p50_ms / 1e6:.1f} GMAC/s')


def _stages(rows: Sequence[Row], prefix: str, names: Sequence[str]) -> str:
    stages = list(dict.fromkeys(row.stage for row in rows))
    shown: dict[int, dict[str, str]] = {}
    for row in rows:
        shown.setdefault(row.variant, {})[row.stage] = _ms(row.p50_ms)
    return _grid(['', *(stage.removeprefix(prefix).replace('_', ' ') for stage in stages)],
                 [[names[number - 1], *(texts.get(stage, '-') for stage in stages)]
                  for number, texts in shown.items()])


def _layers(rows: Sequence[Row]) -> str:
    whole_ms = sum(row.p50_ms or 0 for row in rows)
    return _grid(['', 'layers', 'p50 ms', '%'],
                 [[row.stage.removeprefix('layers.'), str(row.layers), _ms(row.p50_ms),
                   f'{100 * (row.p50_ms or 0) / whole_ms:.1f}'] for row in rows])


def _grid(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Text in columns: the first to the left, the others to the right."""
    lines = [head, *body]
    widths = [max(len(line[index]) for line in lines) for index in range(len(head))]
    return '\n'.join('  '.join(
        text.ljust(width) if index == 0 else text.rjust(width)
        for index, (text, width) in enumerate(zip(line, widths, strict=True))).rstrip()
        for line in lines)


def to_json(rows: Sequence[Row]) -> list[Mapping[str, object]]:
    """JSON values: the rows, each with what it was measured on."""
    return [{**row.to_dict(), 'measured_on': setting()} for row in rows]
