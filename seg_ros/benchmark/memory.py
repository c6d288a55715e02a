"""The memory that a variant takes, in a process that does nothing else.

In one process with others, nobody could tell whose it is. The process is this module.
"""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seg_ros.benchmark import BenchmarkError
from seg_ros.benchmark.variants import Variant

FRAMES = 3
STATUS = Path('/proc/self/status')


def peak_rss_mb(variant: Variant, like: str) -> float | None:
    """Largest resident memory, in MB, of a process that labels some frames by a variant.

    :param like: see ``open_model``.
    :return: None where the system does not tell.
    :raises BenchmarkError: the process failed.
    """
    done = subprocess.run([sys.executable, '-m', __name__, json.dumps([asdict(variant), like])],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ['without a word'])[-1]
        raise BenchmarkError(f'the process that measures the memory of {variant.name} ended with '
                             f'{done.returncode}: {last}')
    return json.loads(done.stdout.splitlines()[-1])


def high_water_mb(status: Path = STATUS) -> float | None:
    """Largest resident memory that a process had so far, in MB.

    :param status: of the process, in /proc; getrusage would tell of the parent's, too.
    """
    try:
        for line in status.read_text().splitlines():
            if line.startswith('VmHWM:'):
                return int(line.split()[1]) / 1024
    except OSError:  # no Linux
        pass
    return None


def _variant(values: dict[str, Any]) -> Variant:
    """What ``asdict`` and JSON made lists of."""
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value
                              for name, value in values.items()}
    return Variant(**fields)


def _label_some(text: str) -> None:
    from seg_ros.benchmark.contender import Contender, open_model
    from seg_ros.benchmark.frame_path import FramePath
    values, like = json.loads(text)
    variant = _variant(values)
    path = FramePath(Contender(variant, open_model(variant.model, like)))
    for _ in range(FRAMES):
        path.run()
    print(json.dumps(high_water_mb()))


if __name__ == '__main__':
    _label_some(sys.argv[1])
