"""Where TensorRT's engines are kept: building one takes minutes."""

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from seg_ros.inference.announce import Announce

BEGUN = '.begun.'  # starts the name of a folder whose engine is being built
LONGEST_BUILD_S = 86400.0  # a folder that was begun before was left by a process that was killed
ROOM_BYTES = 300_000_000  # some engines; with less left nothing is written


def cache_root(environment: Mapping[str, str]) -> Path | None:
    """Folder of all engines in the user's cache folder; None where the user has none.

    :param environment: variables of the process.
    """
    for name, below in (('XDG_CACHE_HOME', ''), ('HOME', '.cache')):
        folder = Path(environment.get(name, ''))
        if folder.is_absolute():  # as the XDG specification demands
            return folder / below / 'seg_ros' / 'tensorrt'
    return None


def engine_name(graph: bytes, precision: str, gpu: str, onnxruntime: str,
                tensorrt: int | None) -> str:
    """Name of an engine's folder, by all that the engine depends on.

    ONNX Runtime itself finds an engine by the names in the graph alone, and fails on one that was
    made for other weights, another size, GPU or version.

    :param graph: that the engine is built of, its input's shape fixed.
    :param onnxruntime: version.
    :param tensorrt: version.
    """
    digest = hashlib.sha256(graph).hexdigest()[:24]
    gpu = re.sub(r'[^A-Za-z0-9]+', '-', gpu).strip('-')
    return f'{digest}_{precision}_{gpu}_onnxruntime-{onnxruntime}_tensorrt-{tensorrt}'


class EngineCache:
    """Folders of engines. One that cannot be written is told of once, and is no error.

    Several processes may use it: a folder gets its name when the engine in it is whole.

    :param root: folder of all of them; None where there is none.
    :param announce: is told why engines are not kept.
    :param room: bytes that must be free for a new one.
    """

    def __init__(self, root: Path | None, announce: Announce, room: int = ROOM_BYTES) -> None:
        self._root = root
        self._announce = announce
        self._room = room
        self._told = False

    def find(self, name: str) -> Path | None:
        """Folder in which an engine of this name is kept."""
        folder = self._root / name if self._root else None
        return folder if folder and any(folder.glob('*.engine')) else None

    @contextmanager
    def build(self, name: str, instead_of: Path | None = None) -> Iterator[Path | None]:
        """Give an empty folder to write an engine to, kept when the block ends; None if none can.

        Nothing is kept of a block that fails, nor where another process has been faster.

        :param instead_of: folder that :meth:`find` gave, of an engine that cannot be used.
        """
        folder = self._begin()
        try:
            yield folder
            if self._root and folder and any(folder.glob('*.engine')):
                if instead_of:
                    shutil.rmtree(instead_of, ignore_errors=True)
                with suppress(OSError):  # there is one by now
                    os.rename(folder, self._root / name)
        finally:
            if folder:
                shutil.rmtree(folder, ignore_errors=True)

    def _begin(self) -> Path | None:
        reason = 'neither XDG_CACHE_HOME nor HOME names a folder'
        if self._root:
            try:
                return _begin_in(self._root, self._room)
            except OSError as error:
                reason = f'{self._root}: {error.strerror}'
        if not self._told:
            self._told = True
            self._announce(f'TensorRT engines are not kept: {reason}; free some space, or set '
                           'XDG_CACHE_HOME to a folder that can be written')
        return None


def _begin_in(root: Path, room: int) -> Path:
    """Make an empty folder, and remove those that were left behind.

    :raises OSError: it cannot be written, or has not the room.
    """
    root.mkdir(parents=True, exist_ok=True)
    for left_over in root.glob(f'{BEGUN}*'):
        with suppress(FileNotFoundError):  # another process has removed it
            if left_over.stat().st_mtime < time.time() - LONGEST_BUILD_S:
                shutil.rmtree(left_over, ignore_errors=True)
    free = shutil.disk_usage(root).free
    if free < room:  # TensorRT would leave half an engine, and say nothing
        raise OSError(0, f'{free // 1_000_000} MB left, {room // 1_000_000} are wanted')
    return Path(tempfile.mkdtemp(prefix=BEGUN, dir=root))
