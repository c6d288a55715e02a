"""The state of a run on disk: written beside, then renamed, so that a kill leaves a whole one."""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from seg_ros.errors import TrainingError
from seg_ros.files import written_whole


def save_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Write tensors, numbers and text.

    :raises OSError: the disk is full or the folder is gone; the older file stays.
    """
    whole = io.BytesIO()
    torch.save(dict(state), whole)  # not to the file: of a full disk torch does not say so
    with written_whole(path) as beside, open(beside, 'wb') as file:
        file.write(whole.getbuffer())
        file.flush()
        os.fsync(file.fileno())  # or a power cut could leave the name without the content


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read what ``save_checkpoint`` wrote; nothing but tensors and plain values is unpickled.

    :raises TrainingError: missing or damaged.
    """
    try:
        state = torch.load(path, map_location='cpu', weights_only=True)
    except FileNotFoundError as error:
        raise TrainingError(f'{path.resolve()}: no checkpoint to resume from; start the run '
                            'without --resume') from error
    except Exception as error:  # torch.load has no documented set of errors for damaged files
        raise TrainingError(f'{path.resolve()}: damaged, or not written by seg_train; start the '
                            'run again, with another --out') from error
    if not isinstance(state, dict):
        raise TrainingError(f'{path.resolve()}: is not the state of a run; give another --out')
    return state
