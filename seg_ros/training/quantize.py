"""seg_quantize: make an int8 model for CPUs, and measure what it costs and gains."""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from tqdm import tqdm

from seg_ros.cli.edge import run
from seg_ros.cli.export import expect_onnx_name, missing_package_told
from seg_ros.errors import ConfigError, ImageError
from seg_ros.files import written_whole
from seg_ros.inference.engines import create_engine
from seg_ros.inference.segmenter import Segmenter, resize_picture
from seg_ros.model_file import Model, load_model, model_help
from seg_ros.model_spec import ModelSpec, input_size
from seg_ros.picture_sources import PICTURE_SUFFIXES, read_picture
from seg_ros.training.dataset import DataFolder, Sample, open_data
from seg_ros.training.metrics import ConfusionMatrix

MAX_PICTURES = 64
MAX_COST = 1.0  # of mIoU, in percent
ENGINES = ('openvino', 'onnxruntime')


def main() -> int:
    return run(_quantise, _parser())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='seg_quantize', description=__doc__)
    parser.add_argument('pictures', type=Path, nargs='+', metavar='PICTURES',
                        help='pictures, or folders of them, such as the cameras will see; they '
                        f'need no labels; at most {MAX_PICTURES} are taken, evenly spread')
    parser.add_argument('--out', type=Path, required=True, metavar='FILE.onnx',
                        help='file to write; NAME_int8.onnx beside NAME.safetensors is what '
                        'precision int8 finds')
    parser.add_argument('--model', default='', help=model_help())
    parser.add_argument('--data', type=Path, help='folder of a data set: compare both models on '
                        'it, in accuracy and time')
    parser.add_argument('--split', default='val', help='of the data set (default: val)')
    return parser


def _quantise(arguments: argparse.Namespace) -> int:
    expect_onnx_name(arguments.out)
    files = spread(list(_files(arguments.pictures)), MAX_PICTURES)
    model = load_model(arguments.model)
    data = open_data(arguments.data, arguments.split) if arguments.data else None
    if data and data.labels.names != model.spec.labels.names:  # known before the work
        raise ConfigError(f'the model tells {", ".join(model.spec.labels.names)} apart, the '
                          f'labels of {data.root} {", ".join(data.labels.names)}; give another '
                          '--model or other --data')
    with missing_package_told():
        from seg_ros.inference.quantize import quantise
    content = quantise(model, _pictures(files, model.spec))
    with written_whole(arguments.out) as beside:
        beside.write_bytes(content)
    print(f'{arguments.out.resolve()}: int8, by {len(files)} pictures, '
          f'{len(content) / 1e6:.1f} MB')
    if data is None:
        return 0
    rows = compare(model, load_model(arguments.out), data)
    print(f'\n{len(data)} pictures of {data.root.resolve().name}, {data.split}\n{_table(rows)}')
    if max(row.cost for row in rows) > MAX_COST:
        print(f'seg_quantize: error: int8 costs more than {MAX_COST} of mIoU; give more pictures, '
              'and such as the cameras will see', file=sys.stderr)
        return 1
    return 0


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(file for file in path.iterdir()
                       if file.suffix.lower() in PICTURE_SUFFIXES and file.is_file())
        if not found:
            raise ImageError(f'{path.resolve()}: no picture in this folder; expected files that '
                             f'end in {", ".join(PICTURE_SUFFIXES)}')
        yield from found


def spread(files: Sequence[Path], most: int) -> list[Path]:
    """Take some of many files: the first, the last, and others evenly between."""
    if len(files) <= most:
        return list(files)
    return [files[round(index * (len(files) - 1) / (most - 1))] for index in range(most)]


def _pictures(files: Sequence[Path], spec: ModelSpec) -> Iterator[np.ndarray]:
    """Pictures as the segmenter gives them to the network."""
    for file in tqdm(files, unit='picture', leave=False):
        rgb = read_picture(file)
        picture = np.empty((*input_size(spec, *rgb.shape[:2]), 3), np.uint8)
        resize_picture(rgb, picture)
        yield picture


class Contender:
    """One model in one engine, while it is compared."""

    def __init__(self, model: Model, engine: str) -> None:
        self.segmenter = Segmenter(model, create_engine(
            model, engine, 'cpu', 'int8' if model.precision == 'int8' else 'float32'))
        self.confusion = ConfusionMatrix(len(model.spec.labels))
        self.times_ms: list[float] = []
        self._index_of_id = model.spec.labels.index_of_id

    def label(self, sample: Sample) -> np.ndarray:
        """Label a picture and count what is right: (H, W) uint8 class indices."""
        start = time.perf_counter()
        segmentation, = self.segmenter.segment([sample.rgb])
        self.times_ms.append(1000 * (time.perf_counter() - start))
        labels = self._index_of_id[segmentation.labels]
        self.confusion.add(sample.target, labels)
        return labels


class Row:
    """Float32 and int8 in one engine, while they are compared."""

    def __init__(self, engine: str, model: Model, quantised: Model) -> None:
        self.engine = engine
        self.pair = Contender(model, engine), Contender(quantised, engine)
        self.alike: list[float] = []

    def add(self, sample: Sample) -> None:
        """Let both label a picture."""
        labels = [each.label(sample) for each in self.pair]
        self.alike.append(float(np.mean(labels[0] == labels[1])))

    @property
    def miou(self) -> tuple[float, float]:
        """Of float32 and int8, in percent."""
        exact, quantised = (100 * each.confusion.scores().miou for each in self.pair)
        return exact, quantised

    @property
    def cost(self) -> float:
        """Lost by int8, of mIoU in percent."""
        return self.miou[0] - self.miou[1]


def compare(model: Model, quantised: Model, data: DataFolder) -> list[Row]:
    """Label all pictures by both models in every engine, in turn for each picture."""
    rows = [Row(engine, model, quantised) for engine in ENGINES if find_spec(engine)]
    for each in (each for row in rows for each in row.pair):
        each.segmenter.warm_up(*data[0].rgb.shape[:2])
    for index in tqdm(range(len(data)), unit='picture', leave=False):
        sample = data[index]
        for row in rows:
            row.add(sample)
    return rows


def _table(rows: Sequence[Row]) -> str:
    lines = ['engine       mIoU float32  int8   cost  labels alike  ms float32  int8  faster']
    for row in rows:
        exact, quantised = row.miou
        times = [float(np.median(each.times_ms)) for each in row.pair]
        lines.append(f'{row.engine:11}  {exact:12.2f} {quantised:5.2f}  {row.cost:5.2f}  '
                     f'{100 * np.mean(row.alike):10.2f} %  {times[0]:10.1f} {times[1]:5.1f}  '
                     f'{times[0] / times[1]:5.2f}x')
    return '\n'.join(lines)


if __name__ == '__main__':
    raise SystemExit(main())
