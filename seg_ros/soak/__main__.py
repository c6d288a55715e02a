"""Command line of the soak."""

import argparse
import sys

from seg_ros.cli.edge import run
from seg_ros.soak.options import make_parser, read_options


def soak(arguments: argparse.Namespace) -> int:
    """Check the options before anything is started, then run."""
    options = read_options(arguments)
    from seg_ros.soak.session import run_soak  # ROS is not needed to refuse an option
    run_soak(options)
    return 0


if __name__ == '__main__':
    sys.exit(run(soak, make_parser()))
