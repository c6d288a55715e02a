"""seg_predict: label pictures, folders of pictures and videos, without ROS."""

import argparse
import sys
from pathlib import Path

import numpy as np
from tqdm import tqdm

from seg_ros.cli.edge import clearing_up_on_sigterm, run
from seg_ros.cli.inputs import Input, count_frames, find_inputs
from seg_ros.cli.videos import Video, VideoFile
from seg_ros.errors import ConfigError, ImageError
from seg_ros.files import write_png
from seg_ros.inference.device_segmenter import create_segmenter
from seg_ros.inference.engines import ENGINES, PRECISIONS, create_engine
from seg_ros.inference.segmenter import Segmenter
from seg_ros.model_file import load_model, model_help
from seg_ros.picture_sources import read_picture
from seg_ros.render import draw_overlay

ENDINGS = ('_labels', '_overlay')


def main() -> int:
    with clearing_up_on_sigterm():
        return run(_predict, _parser())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='seg_predict', description=__doc__)
    parser.add_argument('input', type=Path, nargs='+', metavar='INPUT',
                        help='picture, folder of pictures or video')
    parser.add_argument('-o', '--out', type=Path, required=True,
                        help='folder of the results, made if absent: NAME_labels.png (class '
                        'ids) and NAME_overlay.png; of a video NAME_overlay.mp4 and '
                        'NAME_labels/000000.png and on')
    parser.add_argument('--model', default='', help=model_help())
    parser.add_argument('--engine', choices=ENGINES, default='auto')
    parser.add_argument('--device', default='auto', help='auto, cpu, cuda, cuda:1, ...')
    parser.add_argument('--precision', choices=PRECISIONS, default='auto')
    parser.add_argument('--alpha', type=float, default=0.5,
                        help='share of the colour in the overlay, 0 to 1 (default 0.5)')
    return parser


def _predict(arguments: argparse.Namespace) -> int:
    if not 0 <= arguments.alpha <= 1:
        raise ConfigError(f'--alpha {arguments.alpha}: expected 0 to 1')
    inputs = find_inputs(arguments.input)
    _check_out(arguments.out, inputs)
    model = load_model(arguments.model)
    engine = create_engine(model, arguments.engine, arguments.device, arguments.precision)
    arguments.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    with tqdm(total=count_frames(inputs), unit='frame') as progress:
        writer = ResultWriter(create_segmenter(model, engine), arguments.out, arguments.alpha,
                              progress)
        for each in inputs:
            try:
                writer.label(each)
            except ImageError as error:
                failed += 1
                tqdm.write(f'seg_predict: error: {error}', file=sys.stderr)
    done = len(inputs) - failed
    print(f'{done} of {len(inputs)} labelled with {engine.name} on {engine.device} '
          f'({engine.precision}): {arguments.out.resolve()}')
    if failed:
        return 1 if done else ImageError.exit_code
    return 0


def _check_out(out: Path, inputs: list[Input]) -> None:
    if out.exists() and not out.is_dir():
        raise ConfigError(f'{out.resolve()}: is a file; give a folder with -o')
    results = {f'{each.path.stem}{ending}' for each in inputs for ending in ENDINGS}
    for each in inputs:
        if each.path.stem in results and each.path.parent.resolve() == out.resolve():
            raise ConfigError(f'{each.path.resolve()}: would be overwritten by the result of '
                              'another input; give another folder with -o')


class ResultWriter:
    """Labels inputs and writes their results.

    :param out: existing folder of the results.
    :param alpha: share of the colour in the overlay, 0..1.
    :param progress: counts frames.
    """

    def __init__(self, segmenter: Segmenter, out: Path, alpha: float, progress: tqdm) -> None:
        self._segmenter = segmenter
        self._palette = segmenter.labels.palette
        self._out = out
        self._alpha = alpha
        self._progress = progress

    def label(self, each: Input) -> None:
        """Write the results of one input.

        :raises ImageError: it cannot be read.
        """
        self._progress.set_description(each.path.name)
        labels_path, overlay_path = (self._out / f'{each.path.stem}{end}' for end in ENDINGS)
        if each.is_video:
            self._label_video(Video(each.path), labels_path, overlay_path)
        else:
            labels, overlay = self._label_frame(read_picture(each.path))
            write_png(Path(f'{labels_path}.png'), labels)
            write_png(Path(f'{overlay_path}.png'), overlay)

    def _label_frame(self, rgb: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        segmentation, = self._segmenter.segment([rgb])
        overlay = draw_overlay(rgb, segmentation.labels, self._palette, self._alpha)
        self._progress.update()
        return segmentation.labels, overlay

    def _label_video(self, video: Video, folder: Path, overlay_path: Path) -> None:
        number = 0
        with VideoFile(overlay_path, video.fps) as overlays:
            for rgb in video:
                labels, overlay = self._label_frame(rgb)
                folder.mkdir(exist_ok=True)
                write_png(folder / f'{number:06d}.png', labels)
                overlays.write(overlay)
                number += 1
        while (left_over := folder / f'{number:06d}.png').exists():  # of a longer video before
            left_over.unlink()
            number += 1


if __name__ == '__main__':
    raise SystemExit(main())
