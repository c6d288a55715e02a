"""seg_evaluate: score a model on labelled pictures."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from seg_ros.cli.edge import check_result_file, run
from seg_ros.errors import ConfigError, DataError
from seg_ros.files import write_json, write_png
from seg_ros.inference.device_segmenter import create_segmenter
from seg_ros.inference.engines import ENGINES, PRECISIONS, create_engine
from seg_ros.inference.segmenter import Segmenter
from seg_ros.labels import CAMVID, LabelSet
from seg_ros.model_file import DEFAULT_MODEL, load_model, model_help
from seg_ros.training.confusion_picture import draw_confusion
from seg_ros.training.dataset import Sample, open_data
from seg_ros.training.metrics import ConfusionMatrix, Scores
from seg_ros.training.validation import DRAWN_SEEDS, drawn_samples

DRAWN_SIZE = (360, 480)
DRAWN_MOMENTS = 2


def main() -> int:
    return run(_evaluate, _parser())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='seg_evaluate', description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument('--data', type=Path, help='folder of the data set')
    what.add_argument('--drawn', action='store_true',
                      help='score on drawn road scenes that training never sees')
    parser.add_argument('--split', default='val', help='of the data set (default: val)')
    parser.add_argument('--model', default='', help=model_help())
    parser.add_argument('--engine', choices=ENGINES, default='auto')
    parser.add_argument('--precision', choices=PRECISIONS, default='auto')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the scores')
    parser.add_argument('--png', type=Path, metavar='FILE', help='draw the confusion matrix')
    return parser


def _evaluate(arguments: argparse.Namespace) -> int:
    for path in filter(None, (arguments.json, arguments.png)):
        check_result_file(path)
    model = load_model(arguments.model)
    data = _open(arguments, model.spec.labels)
    engine = create_engine(model, arguments.engine, 'auto', arguments.precision)
    confusion = _compare(create_segmenter(model, engine), data)
    if not confusion.counts.any():
        raise DataError(f'{data.name}: all pixels are void, there is nothing to score; check the '
                        'ids in the label files')
    scores = confusion.scores()
    name = arguments.model or DEFAULT_MODEL.name
    print(f'{name}, {engine.name} on {engine.device} ({engine.precision}), '
          f'{data.count} pictures of {data.name}\n')
    print(_table(scores, confusion, data.labels))
    if arguments.json:
        write_json(arguments.json, {
            **_to_mapping(scores, confusion, data.labels), 'images': data.count,
            'model': str(name), 'engine': engine.name, 'precision': engine.precision})
    if arguments.png:
        write_png(arguments.png, draw_confusion(confusion.counts, data.labels.names))
    return 0


@dataclass(frozen=True)
class Labelled:
    """Pictures whose labels are known."""

    name: str
    labels: LabelSet
    count: int
    samples: Iterator[Sample]


def _open(arguments: argparse.Namespace, ours: LabelSet) -> Labelled:
    if arguments.drawn:
        data = Labelled('the drawn scene', CAMVID, DRAWN_MOMENTS * len(DRAWN_SEEDS),
                        iter(drawn_samples(*DRAWN_SIZE)))
    else:
        folder = open_data(arguments.data, arguments.split)
        data = Labelled(f'{folder.root.resolve().name}, {folder.split}', folder.labels,
                        len(folder), (folder[index] for index in range(len(folder))))
    if data.labels.names != ours.names:
        raise ConfigError(f'the model tells {", ".join(ours.names)} apart, the labels of '
                          f'{data.name} {", ".join(data.labels.names)}; both must have the same '
                          'classes in the same order: give another --model or other pictures')
    return data


def _compare(segmenter: Segmenter, data: Labelled) -> ConfusionMatrix:
    confusion = ConfusionMatrix(len(data.labels))
    index_of_id = segmenter.labels.index_of_id
    for sample in tqdm(data.samples, total=data.count, unit='picture', leave=False):
        segmentation, = segmenter.segment([sample.rgb])
        confusion.add(sample.target, index_of_id[segmentation.labels])
    return confusion


def _table(scores: Scores, confusion: ConfusionMatrix, labels: LabelSet) -> str:
    share = confusion.counts.sum(axis=1) / max(confusion.counts.sum(), 1)
    wide = max(12, *map(len, labels.names))
    lines = [f'{"class":{wide}}  {"IoU %":>6}  {"pixels %":>8}']
    for name, iou, part in zip(labels.names, scores.class_iou, share, strict=True):
        shown = '-' if np.isnan(iou) else f'{100 * iou:.2f}'
        lines.append(f'{name:{wide}}  {shown:>6}  {100 * part:8.2f}')
    lines += [f'{"mean IoU":{wide}}  {100 * scores.miou:6.2f}',
              f'{"pixels right":{wide}}  {100 * scores.pixel_accuracy:6.2f}']
    return '\n'.join(lines)


def _to_mapping(scores: Scores, confusion: ConfusionMatrix, labels: LabelSet) -> dict[str, Any]:
    return {'miou': round(100 * scores.miou, 2),
            'pixel_accuracy': round(100 * scores.pixel_accuracy, 2),
            'per_class_iou': scores.per_class(labels),
            # Without the column of unknown pixels, of which there are none here.
            'confusion': confusion.counts[:, :-1].tolist()}


if __name__ == '__main__':
    raise SystemExit(main())
