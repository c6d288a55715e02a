"""seg_bag: label the images of a rosbag2; all else in it is copied as it is."""

import argparse
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from seg_ros.cli.edge import check_result_file, clearing_up_on_sigterm, run
from seg_ros.errors import ConfigError
from seg_ros.files import write_json
from seg_ros.inference.device_segmenter import create_segmenter
from seg_ros.inference.engines import ENGINES, PRECISIONS, Engine, create_engine
from seg_ros.label_map import find_label_map
from seg_ros.model_file import DEFAULT_MODEL, load_model, model_help
from seg_ros.sizes import EXPECTED, read_size

if TYPE_CHECKING:
    from seg_ros.bag.labelling import Camera

NEEDED = {
    'rosbags': 'pip install -r requirements/bag.txt, or pip install rosbags',
    'sensor_msgs': 'source a ROS distro, or pip install -r requirements/ros-wheels.txt'}


def main() -> int:
    with clearing_up_on_sigterm():
        return run(_bag, _parser())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='seg_bag', description=__doc__)
    parser.add_argument('input', type=Path, metavar='IN',
                        help='bag: a folder with metadata.yaml, or a .mcap or .db3 file')
    parser.add_argument('out', type=Path, metavar='OUT', help='folder of the new bag; nothing of '
                        'that name may be there')
    parser.add_argument('--topic', nargs='+', default=[], metavar='TOPIC',
                        help='label these topics (default: all Image and CompressedImage topics '
                        'that hold pictures and are not labelled yet)')
    parser.add_argument('--storage', choices=('sqlite3', 'mcap'),
                        help='of the new bag (default: as the input)')
    parser.add_argument('--model', default='', help=model_help())
    parser.add_argument('--engine', choices=ENGINES, default='auto')
    parser.add_argument('--device', default='auto', help='auto, cpu, cuda, cuda:1, ...')
    parser.add_argument('--precision', choices=PRECISIONS, default='auto')
    parser.add_argument('--threads', type=int, default=0, metavar='N',
                        help='CPU threads of the engine; 0 (default): one per core')
    parser.add_argument('--network-size', metavar='WxH', help='at which the network sees the '
                        "pictures, as 480x360 (default: the camera's shape at the training area)")
    parser.add_argument('--output-size', metavar='WxH', help='of labels and overlays, as 640x480 '
                        "(default: the camera's)")
    parser.add_argument('--label-map', type=Path, metavar='FILE', help='gives the classes other '
                        'ids, names and colours, or makes one of several, as the parameter '
                        "label_map of the node (default: the model's)")
    parser.add_argument('--min-confidence', type=float, default=0.0, metavar='P',
                        help='pixels whose class is less probable become unknown, 0 to 1 '
                        '(default 0)')
    parser.add_argument('--overlay-alpha', type=float, default=0.5, metavar='A',
                        help='weight of the colours over the picture in the overlay, 0 to 1 '
                        '(default 0.5)')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the summary')
    return parser


def _bag(arguments: argparse.Namespace) -> int:
    network_size, output_size = _check(arguments)
    # Only here, as they need what was looked for above.
    from seg_ros.bag.input_bag import InputBag
    from seg_ros.bag.labelling import Labelling, label_bag
    from seg_ros.bag.output_bag import OutputBag
    from seg_ros.bag.topics import choose_topics

    model = load_model(arguments.model)
    label_map = find_label_map(arguments.label_map, model.spec.labels, _warn)
    with InputBag(arguments.input) as source:
        topics = choose_topics(source, arguments.topic, _warn)
        storage = arguments.storage or source.storage
        target = OutputBag(arguments.out, storage, source.compression, source.custom_data)
        engine = create_engine(model, arguments.engine, arguments.device, arguments.precision,
                               arguments.threads)
        segmenter = create_segmenter(model, engine, network_size, output_size, label_map)
        labelling = Labelling(segmenter, arguments.min_confidence, arguments.overlay_alpha)
        start_s = time.monotonic()
        with target, tqdm(total=sum(each.frames for each in topics), unit='frame') as progress:
            cameras = label_bag(source, target, topics, labelling, progress.update, _warn)
    summary = _summary(cameras, engine, time.monotonic() - start_s) | {
        'input': str(arguments.input), 'output': str(arguments.out), 'storage': storage,
        'model': str(arguments.model or DEFAULT_MODEL.name),
        'classes': segmenter.labels.to_dict()}
    _show(summary, arguments.out)
    if arguments.json:
        write_json(arguments.json, summary)
    return 0


def _check(arguments: argparse.Namespace) -> tuple[tuple[int, int] | None, ...]:
    """Check what can be known before any work.

    :return: network_size and output_size, each height and width, or None.
    """
    for package, remedy in NEEDED.items():
        if find_spec(package) is None:
            raise ConfigError(f'{package} is not installed: {remedy}')
    if arguments.out.exists() or arguments.out.is_symlink():
        raise ConfigError(f'{arguments.out.absolute()}: is there already and is not overwritten; '
                          'give another name')
    for path in filter(None, (arguments.out, arguments.json)):
        check_result_file(path)
    for option in ('min_confidence', 'overlay_alpha'):
        value = getattr(arguments, option)
        if not 0 <= value <= 1:  # nan neither
            raise ConfigError(f'--{option.replace("_", "-")} {value}: expected 0 to 1')
    return tuple(_read_size(option, getattr(arguments, option))
                 for option in ('network_size', 'output_size'))


def _read_size(option: str, text: str | None) -> tuple[int, int] | None:
    if not text:
        return None
    size = read_size(text)
    if size is None:
        raise ConfigError(f'--{option.replace("_", "-")} {text}: expected {EXPECTED}')
    return size


def _warn(text: str) -> None:
    tqdm.write(f'seg_bag: warning: {text}', file=sys.stderr)


def _summary(cameras: list['Camera'], engine: Engine, seconds: float) -> dict[str, Any]:
    labelled = sum(camera.labelled for camera in cameras)
    return {'topics': {camera.topic.topic: {
                'labels': camera.topic.labels, 'overlay': camera.topic.overlay,
                'labelled': camera.labelled, 'refused': camera.refused} for camera in cameras},
            'labelled': labelled, 'refused': sum(camera.refused for camera in cameras),
            'seconds': round(seconds, 3), 'engine': engine.name, 'device': engine.device,
            'precision': engine.precision}


def _show(summary: dict[str, Any], out: Path) -> None:
    for topic, counts in summary['topics'].items():
        refused = f', {counts["refused"]} refused' if counts['refused'] else ''
        print(f'{topic}: {counts["labelled"]} labelled{refused}: {counts["labels"]}, '
              f'{counts["overlay"]}')
    frames = summary['labelled'] + summary['refused']
    print(f'{summary["labelled"]} of {frames} frames labelled with {summary["engine"]} on '
          f'{summary["device"]} ({summary["precision"]}) in {summary["seconds"]:.1f} s: '
          f'{out.resolve()}')


if __name__ == '__main__':
    raise SystemExit(main())
