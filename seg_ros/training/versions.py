"""What a run was computed with."""

import functools
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

from seg_ros import __version__


def versions(device: str) -> dict[str, Any]:
    """Name of each part that decides how a run goes on, and its version; JSON values.

    :param device: of the network, e.g. ``cpu`` or ``cuda:0``.
    """
    name = f' ({torch.cuda.get_device_name(device)})' if device.startswith('cuda') else ''
    return {'seg_ros': __version__, 'commit': commit(), 'python': platform.python_version(),
            'torch': torch.__version__, 'numpy': np.__version__, 'opencv': cv2.__version__,
            'processor': processor(), 'threads': torch.get_num_threads(),
            'device': device + name}


@functools.cache  # of the code that runs, whatever becomes of the checkout meanwhile
def commit() -> str | None:
    """Commit of the checkout that this code is part of; None for an installed package."""
    git = ['git', '-C', str(Path(__file__).parent)]
    try:
        for command in (['ls-files', '--error-unmatch', Path(__file__).name],
                        ['describe', '--always', '--abbrev=40', '--dirty', '--exclude=*']):
            found = subprocess.run([*git, *command], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def processor() -> str:
    """Model name where the kernel tells it, which Arm's does not, else the architecture."""
    try:
        for line in Path('/proc/cpuinfo').read_text(encoding='utf-8').splitlines():
            key, _, value = line.partition(':')
            if key.strip() == 'model name':
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else (
        os.cpu_count() or 1)
