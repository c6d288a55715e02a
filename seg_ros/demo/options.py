"""What the demo can be told."""

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path

from seg_ros.errors import ConfigError
from seg_ros.picture_sources import DrawnPictures, FolderPictures, VideoPictures, open_webcam

LONGEST_S = 86_400.0


@dataclass(frozen=True)
class Options:
    """Checked options.

    :param seconds: how long to run from the first labelled frame on.
    :param keep: run until Ctrl-C instead.
    :param drawn: the drawn scene is shown, whose exact classes are known.
    :param source_parameters: ROS parameters of the image source.
    :param node_parameters: ROS parameters of the segmentation node.
    """

    seconds: float = 20.0
    keep: bool = False
    drawn: bool = True
    source_parameters: dict[str, bool | int | str] = field(default_factory=dict)
    node_parameters: dict[str, str] = field(default_factory=dict)


def make_parser() -> argparse.ArgumentParser:
    """Parser of the command line."""
    parser = argparse.ArgumentParser(
        prog='demo', formatter_class=argparse.RawDescriptionHelpFormatter,
        description='Runs the segmentation node on a drawn road scene, or on pictures of your '
                    'own,\nprints how it does each second and writes pictures, a video and '
                    'summary.json\nto demo_output/ in the current folder.')
    parser.add_argument('--seconds', type=float, default=Options.seconds, metavar='N',
                        help='how long, from the first labelled frame on (default: %(default)g)')
    parser.add_argument('--images', type=Path, metavar='DIR', help='show the pictures of a folder')
    parser.add_argument('--video', type=Path, metavar='FILE', help='show a video')
    parser.add_argument('--camera', type=int, metavar='N', help='show webcam N; 0 is the first')
    parser.add_argument('--size', metavar='WxH',
                        help='size of the drawn road scene (default: 640x480)')
    parser.add_argument('--keep', action='store_true',
                        help='run until Ctrl-C, and say how RViz is connected')
    parser.add_argument('--model', type=Path, metavar='FILE',
                        help='model file, or the name of one that ships: asymmetric_camvid '
                        '(default), strip_camvid')
    parser.add_argument('--engine', metavar='NAME',
                        help='engine that runs the network (default: the fastest there is)')
    parser.add_argument('--device', metavar='NAME', help='cpu, cuda, cuda:1, ... (default: a GPU '
                                                         'where there is one)')
    return parser


def read_options(arguments: argparse.Namespace) -> Options:
    """Check the arguments, and that what they name can be opened.

    :raises ConfigError: one of them cannot be used.
    """
    if not 0 < arguments.seconds <= LONGEST_S:  # false for nan
        raise ConfigError(f'--seconds {arguments.seconds:g}: expected more than 0 and at most '
                          f'{LONGEST_S:g}')
    given = [name for name in ('images', 'video', 'camera', 'size')
             if getattr(arguments, name) is not None]
    if len(given) > 1:
        raise ConfigError(f'--{given[0]} and --{given[1]} exclude each other; give one of them')
    if arguments.engine is not None:
        from seg_ros.inference.engines import ENGINES  # brings PyTorch, which takes a moment
        if arguments.engine not in ENGINES:
            raise ConfigError(f'--engine {arguments.engine}: expected one of {", ".join(ENGINES)}')
    node_parameters = {name: value for name in ('engine', 'device')
                       if (value := getattr(arguments, name)) is not None}
    if arguments.model is not None:
        from seg_ros.model_file import find_model  # brings PyTorch, too
        model = find_model(arguments.model)
        if not model.is_file():
            raise ConfigError(f'--model {model.resolve()}: no such file; give one that seg_train '
                              'wrote')
        node_parameters['model'] = str(model.resolve())
    drawn = not given or given == ['size']
    return Options(arguments.seconds, arguments.keep, drawn, _source_parameters(arguments),
                   node_parameters)


def _source_parameters(arguments: argparse.Namespace) -> dict[str, bool | int | str]:
    """Parameters of the image source, after opening what they name once.

    :raises ConfigError: it cannot be opened.
    """
    if arguments.images is not None:
        FolderPictures(arguments.images)
        return {'source': 'images', 'path': str(arguments.images.resolve())}
    if arguments.video is not None:
        VideoPictures(arguments.video).close()
        return {'source': 'video', 'path': str(arguments.video.resolve())}
    if arguments.camera is not None:
        open_webcam(arguments.camera, 640, 480).close()
        return {'source': 'camera', 'camera_index': arguments.camera}
    size = re.fullmatch(r'(\d+)x(\d+)', arguments.size or '640x480')
    if size is None:
        raise ConfigError(f'--size {arguments.size!r}: expected width x height such as 640x480')
    width, height = int(size[1]), int(size[2])
    DrawnPictures(0, width, height)
    return {'source': 'drawn', 'width': width, 'height': height, 'truth': True}
