"""Where TensorRT's engines are kept: building one takes minutes."""

import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

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

    :param root: folder of all of them; None where there is none.
    :param announce: is told why engines are not kept.
    :param room: bytes that must be free for a new one.
    """

    def __init__(self, root: Path | None, announce: Callable[[str], None],
                 room: int = ROOM_BYTES) -> None:
        self._root = root
        self._announce = announce
        self._room = room
        self._told = False

    def find(self, name: str) -> Path | None:
        """Folder in which an engine of this name is kept."""
        folder = self._root / name if self._root else None
        return folder if folder and any(folder.glob('*.engine')) else None

    def make(self, name: str) -> Path | None:
        """Empty folder to which an engine of this name can be written; None if none can."""
        reason = 'neither XDG_CACHE_HOME nor HOME names a folder'
        if self._root:
            try:
                return self._emptied(self._root / name)
            except OSError as error:
                reason = f'{self._root / name}: {error.strerror}'
        if not self._told:
            self._told = True
            self._announce(f'TensorRT engines are not kept: {reason}; free some space, or set '
                           'XDG_CACHE_HOME to a folder that can be written')
        return None

    def _emptied(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for left_over in folder.iterdir():
            left_over.unlink()
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b'probe')
        free = shutil.disk_usage(folder).free
        if free < self._room:  # TensorRT would leave half an engine, and say nothing
            raise OSError(0, f'{free // 1_000_000} MB left, {self._room // 1_000_000} are wanted')
        return folder
