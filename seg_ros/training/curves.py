"""The metrics of a run as curves."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seg_ros.files import written_whole
from seg_ros.labels import LabelSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOGGER = logging.getLogger('seg_ros.training')
WIDTH_INCHES, TOP_INCHES, DOTS_PER_INCH = 15, 4.0, 100
CLASSES_INCHES, NAME_INCHES = 6.0, 0.22  # height for the classes: the least, and of each name
DARK = '0.25'

Line = Mapping[str, Any]
Curve = tuple[list[int], list[float]]  # epochs that have a value, and the values


def draw_curves(lines: Sequence[Line], path: Path, labels: LabelSet | None = None) -> None:
    """Draw loss, learning rate, mIoU and the classes' IoU over the epochs, and write a PNG.

    Without matplotlib a line says so and nothing is written.

    :param lines: of ``metrics.jsonl``; loss and scores may be missing or None.
    :param labels: gives the classes their colours.
    :raises OSError: the disk is full or the folder cannot be written.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        LOGGER.warning(f'no {path.name}, as matplotlib cannot be imported ({error}); to have it '
                       'drawn: pip install -r requirements/training.txt, then --resume')
        return
    curves = _class_curves(lines)
    classes_inches = max(CLASSES_INCHES, NAME_INCHES * (len(curves) + 2))
    figure = Figure((WIDTH_INCHES, TOP_INCHES + classes_inches), DOTS_PER_INCH,
                    layout='constrained')
    FigureCanvasAgg(figure)
    panels = figure.subplot_mosaic('lrm;ccc', gridspec_kw={
        'height_ratios': [TOP_INCHES, classes_inches]})  # matplotlib before 3.6 takes no other
    _draw(panels['l'], lines, {'loss': 'last'}, 'training loss')
    _draw(panels['r'], lines, {'learning_rate': 'last'}, 'learning rate')
    _draw(panels['m'], lines, {'val_pixel_accuracy': 'pixels right', 'val_miou': 'mIoU',
                               'drawn_miou': 'mIoU of drawn scenes'}, 'validation, %')
    colors = dict(zip(labels.names, labels.colors, strict=True)) if labels else {}
    _draw_classes(panels['c'], lines, curves, colors)
    with written_whole(path) as beside:
        figure.savefig(beside)


def _curve(lines: Sequence[Line], values: Sequence[float | None]) -> Curve:
    points = [(line['epoch'], value) for line, value in zip(lines, values, strict=True)
              if value is not None]
    return [epoch for epoch, _ in points], [value for _, value in points]


def _class_curves(lines: Sequence[Line]) -> dict[str, Curve]:
    """Curve of each class that has a value, from the one that ends highest downwards."""
    scores = [line.get('val_class_iou') or {} for line in lines]
    names = dict.fromkeys(name for one in scores for name in one)
    curves = [(name, _curve(lines, [one.get(name) for one in scores])) for name in names]
    return dict(sorted([(name, curve) for name, curve in curves if curve[0]],
                       key=lambda named: -named[1][1][-1]))


def _draw(panel: 'Axes', lines: Sequence[Line], names: Mapping[str, str], title: str) -> None:
    """Draw the curves of some keys of the lines; one without values is left out."""
    for key, name in names.items():
        epochs, values = _curve(lines, [line.get(key) for line in lines])
        if epochs:
            panel.plot(epochs, values, '.-', label=f'{name}: {values[-1]:.4g}')
    _finish(panel, lines, title)
    if panel.lines:
        panel.legend()


def _draw_classes(panel: 'Axes', lines: Sequence[Line], curves: Mapping[str, Curve],
                  colors: Mapping[str, tuple[int, int, int]]) -> None:
    """Draw a curve for each class, with its name to the right of its end."""
    from matplotlib.patheffects import Normal, Stroke

    gap = 100 / max(CLASSES_INCHES / NAME_INCHES - 2, len(curves))
    heights = _apart([values[-1] for _, values in curves.values()], gap)
    for (name, (epochs, values)), height in zip(curves.items(), heights, strict=True):
        color = [part / 255 for part in colors[name]] if name in colors else None
        # The dark edge: some classes are white, or as pale as the paper.
        line, = panel.plot(epochs, values, '.-', color=color, linewidth=2, path_effects=[
            Stroke(linewidth=3.2, foreground=DARK), Normal()])
        panel.annotate(f'{name} {values[-1]:.1f}', (epochs[-1], values[-1]), (1.02, height),
                       textcoords=panel.get_yaxis_transform(), verticalalignment='center',
                       arrowprops={'arrowstyle': '-', 'color': line.get_color(), 'shrinkB': 4,
                                   'relpos': (0, 0.5)})
    _finish(panel, lines, 'IoU of each class, validation, %')
    panel.set_ylim(-1, 101)


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Move heights as little as leaves a gap between them, and none below 0.

    :param heights: in descending order.
    """
    apart: list[float] = []
    for height in heights:
        apart.append(min([height, *(above - gap for above in apart[-1:])]))
    return [max(height, gap * below)
            for height, below in zip(apart, reversed(range(len(apart))), strict=True)]


def _finish(panel: 'Axes', lines: Sequence[Line], title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    panel.set_title(title)
    panel.set_xlabel('epoch')
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.grid(alpha=0.3)
    last = max((line['epoch'] for line in lines), default=1)
    panel.set_xlim(0, 1.02 * last + 0.1)  # all panels over the same epochs
    if not panel.lines:
        panel.text(0.5, 0.5, 'no values', ha='center', va='center', transform=panel.transAxes)
