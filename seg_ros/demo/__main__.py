"""Command line of the demo."""

import argparse
import sys

from seg_ros.cli.edge import run
from seg_ros.demo.options import make_parser, read_options


def show(arguments: argparse.Namespace) -> int:
    """Check the options before anything is started, then run."""
    options = read_options(arguments)
    from seg_ros.demo.session import run_demo  # ROS is not needed to refuse an option
    run_demo(options)
    return 0


if __name__ == '__main__':
    sys.exit(run(show, make_parser()))
