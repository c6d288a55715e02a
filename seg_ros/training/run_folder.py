"""The folder that a training run leaves behind: the one place that knows the names in it."""

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml
from tqdm import tqdm

from seg_ros.errors import ConfigError, ModelFileError, TrainingError
from seg_ros.files import write_json, written_whole
from seg_ros.model_file import load_model
from seg_ros.training.folder_lock import lock_folder
from seg_ros.training.recipe import Recipe, to_mapping
from seg_ros.training.tensorboard_log import TensorBoardLog
from seg_ros.training.versions import versions

LOGGER = logging.getLogger('seg_ros.training')
"""What it is told between ``open`` and ``close`` is printed and stands in the run's log."""


class RunFolder:
    """Files of a run, kept true over a kill at any moment and ``--resume``.

    After each epoch, in this order: ``last.safetensors`` if the epoch is validated,
    :meth:`add_epoch`, the checkpoint, :meth:`keep_best`. So the lines of metrics may be ahead of
    the checkpoint, never behind it, and ``best.safetensors`` is never ahead; what is, is put
    right by :meth:`start_after`.

    :param path: the folder.
    :ivar recipe: the recipe, with every default; the seed is in it.
    :ivar versions: of seg_ros and what it ran on, at the last start.
    :ivar log: every line that the run printed, with time stamps.
    :ivar metrics: one line of JSON an epoch.
    :ivar tensorboard: the same numbers for TensorBoard; the step is the epoch.
    :ivar checkpoint: the state after the last whole epoch, to resume from.
    :ivar last: model file of the last validated epoch.
    :ivar best: model file of the epoch with the highest validation mIoU.
    :ivar curves: picture of the metrics.
    :ivar worst_pictures: validation pictures that the network labels worst.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recipe = path / 'recipe.yaml'
        self.versions = path / 'versions.json'
        self.log = path / 'log.txt'
        self.metrics = path / 'metrics.jsonl'
        self.tensorboard = path / 'tensorboard'
        self.checkpoint = path / 'last.pt'
        self.last = path / 'last.safetensors'
        self.best = path / 'best.safetensors'
        self.curves = path / 'curves.png'
        self.worst_pictures = path / 'worst_pictures.png'
        self._lock: int | None = None
        self._handlers: list[logging.Handler] = []
        self._events: TensorBoardLog | None = None

    def open(self, resume: bool) -> 'RunFolder':
        """Make the folder, or take up the run in it; from now on the run's words are logged.

        Until :meth:`close` no other process can open it.

        :return: itself, for a ``with`` statement, which also logs what ends the run.
        :raises ConfigError: it holds a run and is not to go on with it, holds none to go on
            with, is written by another process, or cannot be made.
        """
        if resume and not self.checkpoint.exists():
            raise ConfigError(f'{self.checkpoint.resolve()}: no checkpoint to resume from; check '
                              '--out, or start the run without --resume')
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = lock_folder(self.path)
        except OSError as error:
            raise ConfigError(f'{self.path.resolve()}: cannot be made: {error.strerror}; give '
                              'another --out') from error
        if not resume:
            self._expect_no_run()
        for left_by_a_kill in self.path.glob('.*.part*'):
            with contextlib.suppress(OSError):
                left_by_a_kill.unlink()
        self._handlers = [_Console(), _LogFile(self)]
        for handler in self._handlers:
            LOGGER.addHandler(handler)
        LOGGER.setLevel(logging.INFO)
        LOGGER.propagate = False  # or a root handler of some library would print it once more
        return self

    def _expect_no_run(self) -> None:
        """Refuse to write over what cost hours.

        A run that ended before its first checkpoint may leave a model file and a line of metrics.
        """
        if self.checkpoint.exists():
            remedy = 'go on with it by --resume'
        elif self.best.exists() or self.last.exists() and len(self.lines()) > 1:
            remedy = 'move its files away'
        else:
            return
        self.close()
        raise ConfigError(f'{self.path.resolve()}: holds a run; {remedy} or give another --out')

    def close(self) -> None:
        """Log no more, and let others open the folder."""
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None
        for handler in self._handlers:
            LOGGER.removeHandler(handler)
        self._handlers = []
        LOGGER.propagate = True
        self._events = None

    def __enter__(self) -> 'RunFolder':
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if error is not None:  # the command prints it
            said = 'interrupted' if isinstance(error, KeyboardInterrupt) else f'error: {error}'
            with contextlib.suppress(TrainingError):
                for handler in self._handlers[1:]:
                    handler.emit(logging.makeLogRecord({'msg': said}))
        self.close()

    def write_recipe(self, recipe: Recipe) -> None:
        """:raises TrainingError: the disk is full or the folder is gone."""
        with self.writing(self.recipe), written_whole(self.recipe) as beside:
            beside.write_text(yaml.safe_dump(to_mapping(recipe), sort_keys=False),
                              encoding='utf-8')

    def write_versions(self, device: str) -> None:
        """Write what the run is computed with; the log keeps it of every start.

        :param device: of the network, e.g. ``cpu`` or ``cuda:0``.
        :raises TrainingError: the disk is full or the folder is gone.
        """
        values = versions(device)
        LOGGER.info(', '.join(f'{key} {value}' for key, value in values.items() if value))
        with self.writing(self.versions):
            write_json(self.versions, values)

    def lines(self) -> list[dict[str, Any]]:
        """Metrics of each epoch so far; a line that a kill or a full disk left half is no line."""
        lines = []
        for text in self.metrics.read_bytes().splitlines() if self.metrics.exists() else ():
            with contextlib.suppress(ValueError):
                line = json.loads(text)
                if isinstance(line, dict) and isinstance(line.get('epoch'), int):
                    lines.append(line)
        return lines

    def start_after(self, epochs: int) -> None:
        """Drop what is ahead of the checkpoint, which the run will do again.

        :param epochs: that the checkpoint holds; 0 for a new run.
        :raises TrainingError: the disk is full or the folder is gone.
        """
        if self.metrics.exists():
            kept = [line for line in self.lines() if line['epoch'] <= epochs]
            with self.writing(self.metrics), written_whole(self.metrics) as beside:
                beside.write_text(''.join(map(_to_text, kept)), encoding='utf-8')
        self.keep_best()
        with self.writing(self.tensorboard):
            self._events = TensorBoardLog(self.tensorboard, epochs)

    def add_epoch(self, line: Mapping[str, Any]) -> None:
        """Keep the metrics of an epoch, in one write and before its checkpoint.

        :param line: ``epoch`` and JSON values; numbers, and those in mappings by class name, go to
            TensorBoard, too.
        :raises TrainingError: the disk is full or the folder is gone.
        """
        self._append(self.metrics, _to_text(line))
        if self._events:
            with self.writing(self.tensorboard):
                self._events.add(line)

    def keep_best(self) -> None:
        """Copy ``last.safetensors`` to ``best.safetensors`` if its validation mIoU is the highest.

        Of several the first stays. To be called when the epoch's checkpoint is written: copied
        before, it would be lost with the epoch if a kill came between.

        :raises TrainingError: the disk is full or the folder is gone.
        """
        lines = self.lines()
        scored = [line for line in lines if isinstance(line.get('val_miou'), int | float)]
        if not scored:
            return
        best = max(scored, key=lambda line: line['val_miou'])
        if best is lines[-1] and _epochs_of(self.last) == best['epoch']:
            with self.writing(self.best), written_whole(self.best) as beside:
                shutil.copyfile(self.last, beside)

    def finished(self, epochs: int) -> bool:
        """Whether the run has come to its end: pictures, which are drawn last, and all.

        :param epochs: of its recipe; it has a validation split.
        """
        lines = self.lines()
        return bool(lines) and lines[-1]['epoch'] >= epochs and self.worst_pictures.exists()

    def _append(self, path: Path, text: str) -> None:
        with self.writing(path), open(path, 'ab') as file:
            file.write(text.encode())

    @contextlib.contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Explain what went wrong where a file of the folder is written.

        :raises TrainingError: instead of an OSError, or of that in a ModelFileError.
        """
        try:
            yield
        except (OSError, ModelFileError) as error:
            cause = error.__cause__ or error
            gone = not self.path.is_dir()
            then = 'go on with --resume' if gone or self.checkpoint.exists() else 'start again'
            raise TrainingError(
                f'{path.resolve()}: cannot be written '
                f'({getattr(cause, "strerror", None) or cause}); '
                f'{"bring the folder back" if gone else "free some space or make it writable"}, '
                f'then {then}') from error


class _Console(logging.Handler):
    """Prints beside a progress bar, not into it."""

    def emit(self, record: logging.LogRecord) -> None:
        tqdm.write(self.format(record))


class _LogFile(logging.Handler):
    """Appends to the run's log; a fault is raised, as one of any other file of the run is."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__()
        self.folder = folder
        self.setFormatter(logging.Formatter('%(asctime)s %(message)s', '%Y-%m-%d %H:%M:%S'))

    def emit(self, record: logging.LogRecord) -> None:
        self.folder._append(self.folder.log, self.format(record) + '\n')


def _to_text(line: Mapping[str, Any]) -> str:
    return json.dumps(line) + '\n'


def _epochs_of(model_file: Path) -> int | None:
    """Epochs that a model file was trained for; None if it does not say."""
    try:
        return load_model(model_file).spec.provenance.get('epochs')
    except ModelFileError:
        return None
