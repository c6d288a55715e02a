"""What the installed commands call. Light to import, so that Ctrl-C is quiet from the start."""

import os
import signal
from importlib import import_module


def _start(module: str, exit_code_when_interrupted: int) -> int:
    interrupted = False

    def interrupt(_signal_number: int, _frame: object) -> None:
        nonlocal interrupted
        interrupted = True
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one finds nothing left to end
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        main = import_module(module).main
    except BaseException:  # an interrupted import may end in any exception
        if not interrupted:
            raise
    if interrupted:
        # At once: code run from C notes an interruption, and Python dies of it in the end.
        os._exit(exit_code_when_interrupted)
    if signal.getsignal(signal.SIGINT) is interrupt:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return main()
    except KeyboardInterrupt:  # before the command has seen to that itself
        signal.signal(signal.SIGINT, signal.SIG_IGN)
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
