"""Metrics of a run as TensorBoard reads them."""

import io
import logging
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

LOGGER = logging.getLogger('seg_ros.training')


class TensorBoardLog:
    """One file of events a start; without tensorboard a line says so and nothing is written.

    Written here, in one piece a line, and not by torch's ``SummaryWriter``: its thread would
    print a traceback where the disk is full.

    :param folder: what to give as ``tensorboard --logdir``.
    :param epochs: that are trained already: TensorBoard then forgets points of later ones, which
        an earlier start may have left.
    :raises OSError: the disk is full or the folder cannot be made.
    """

    def __init__(self, folder: Path, epochs: int) -> None:
        self._file = folder / (f'events.out.tfevents.{int(time.time()):010}.'
                               f'{socket.gethostname()}.{os.getpid()}')
        try:  # imported only when a run begins
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog
            from torch.utils.tensorboard import RecordWriter
            from torch.utils.tensorboard.summary import scalar
        except (ImportError, AttributeError, TypeError) as error:  # protobuf of another age, too
            LOGGER.warning(f'no TensorBoard logs, as tensorboard cannot be imported ({error}); '
                           'for those of the next run: pip install -r requirements/training.txt')
            self._event = None
            return
        self._event, self._records, self._scalar = Event, RecordWriter, scalar
        folder.mkdir(exist_ok=True)
        self._write([Event(wall_time=time.time(), file_version='brain.Event:2'),
                     Event(wall_time=time.time(), step=epochs + 1,
                           session_log=SessionLog(status=SessionLog.START))])

    def add(self, line: Mapping[str, Any]) -> None:
        """Write all numbers of a line of metrics and of the mappings in it; ``epoch`` is the step.

        :raises OSError: the disk is full or the folder is gone.
        """
        if self._event:
            self._write([self._event(wall_time=time.time(), step=line['epoch'],
                                     summary=self._scalar(tag, value))
                         for tag, value in _scalars(line)])

    def _write(self, events: Sequence[Any]) -> None:
        whole = io.BytesIO()
        records = self._records(whole)
        for event in events:
            records.write(event.SerializeToString())
        with open(self._file, 'ab') as file:
            file.write(whole.getvalue())


def _scalars(line: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for key, value in line.items():
        named = ({f'{key}/{name}': part for name, part in value.items()}
                 if isinstance(value, Mapping) else {key: value})
        yield from ((tag, number) for tag, number in named.items()
                    if isinstance(number, int | float) and tag != 'epoch')
