"""What the soak can be told."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from seg_ros.cli.edge import check_result_file
from seg_ros.errors import ConfigError

MINUTES, RATES_HZ = (0.1, 1440.0), (0.1, 240.0)


@dataclass(frozen=True)
class Options:
    """Checked options.

    :param minutes: how long to watch, from the first labelled frame on.
    :param rate_hz: pictures a second that the image source publishes.
    :param json: takes all that was measured.
    """

    minutes: float = 10.0
    rate_hz: float = 30.0
    json: Path | None = None

    @property
    def seconds(self) -> float:
        return 60 * self.minutes


def make_parser() -> argparse.ArgumentParser:
    """Parser of the command line."""
    parser = argparse.ArgumentParser(
        prog='soak', formatter_class=argparse.RawDescriptionHelpFormatter,
        description='Runs the segmentation node on a drawn road scene of 640x480, listens to its '
                    'labels and\noverlays, and watches its memory, file descriptors and threads '
                    'and the age of the images.\nExit code 0: all stayed flat; 1: something grew, '
                    'or the node stopped working; 2: wrong use.')
    parser.add_argument('minutes', type=float, nargs='?', default=Options.minutes,
                        metavar='MINUTES', help='how long, from the first labelled frame on '
                        '(default: %(default)g)')
    parser.add_argument('--rate', type=float, default=Options.rate_hz, metavar='HZ',
                        help='pictures a second (default: %(default)g)')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write all that was measured')
    return parser


def read_options(arguments: argparse.Namespace) -> Options:
    """Check the arguments.

    :raises ConfigError: one of them cannot be used.
    """
    for name, value, (least, most) in (('MINUTES', arguments.minutes, MINUTES),
                                       ('--rate', arguments.rate, RATES_HZ)):
        if not least <= value <= most:  # false for nan
            raise ConfigError(f'{name} {value:g}: expected {least:g} to {most:g}')
    if arguments.json is not None:
        check_result_file(arguments.json)
    return Options(arguments.minutes, arguments.rate, arguments.json)
