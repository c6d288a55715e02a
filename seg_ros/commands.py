"""What the installed commands call. Light to import, so that Ctrl-C is quiet from the start."""

import signal
from importlib import import_module


def _start(module: str, exit_code_when_interrupted: int) -> int:
    try:
        return import_module(module).main()
    except KeyboardInterrupt:  # while the module was imported: afterwards it sees to that itself
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one finds nothing left to end
        return exit_code_when_interrupted


def seg_node() -> int:
    return _start('seg_ros.ros.node', 0)


def image_source() -> int:
    return _start('seg_ros.ros.image_source', 0)


def seg_predict() -> int:
    return _start('seg_ros.cli.predict', 130)


def seg_train() -> int:
    return _start('seg_ros.training.train', 130)


def seg_evaluate() -> int:
    return _start('seg_ros.training.evaluate', 130)


def seg_bag() -> int:
    return _start('seg_ros.bag.command', 130)


def seg_export() -> int:
    return _start('seg_ros.cli.export', 130)


def seg_quantize() -> int:
    return _start('seg_ros.training.quantize', 130)


def seg_bench() -> int:
    return _start('seg_ros.benchmark.command', 130)
