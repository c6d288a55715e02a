"""The bag that is written: whole under its name, or not there."""

import contextlib
import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from rosbags.interfaces import (
    Connection,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import get_types_from_msg
from rosbags.typesys.store import Typestore

from seg_ros.bag.image_messages import IMAGE, TYPES
from seg_ros.errors import ConfigError

VERSION: Literal[8] = 8  # of the metadata: the one that Humble and its successors read
# What the library does not know it still wants to be told: the hash of nothing.
UNKNOWN_HASH = 'RIHS01_' + 64 * '0'
_FOREVER = QosTime(9223372036, 854775807)
# That of the node's outputs.
OUTPUT_QOS = Qos(QosHistory.KEEP_LAST, 1, QosReliability.RELIABLE, QosDurability.VOLATILE,
                 _FOREVER, _FOREVER, QosLiveliness.AUTOMATIC, _FOREVER, False)


class OutputBag:
    """A bag that gets its name at the end of a ``with`` statement, unless that fails.

    Until then it lies in a hidden folder beside, which is removed in any case.

    :param path: where nothing may lie yet.
    :param storage: 'sqlite3' or 'mcap'.
    :param compression: kept where the storage knows it.
    :param custom_data: goes into its metadata.
    :raises ConfigError: the storage cannot write to a path of that name.
    :raises OSError: with the name of ``path``: the disk is full, or it cannot be written.
    """

    def __init__(self, path: Path, storage: str, compression: CompressionMode,
                 custom_data: Mapping[str, str]) -> None:
        if storage == 'sqlite3' and set('?#%') & set(str(path.absolute())):
            raise ConfigError(f'{path.absolute()}: sqlite3 cannot write to a name with ?, # or '
                              '%; give another one, or --storage mcap')
        if storage == 'sqlite3' and compression == CompressionMode.STORAGE:
            compression = CompressionMode.NONE  # known to mcap alone
        self._path = path
        self._storage = StoragePlugin[storage.upper()]
        self._compression = compression
        self._custom_data = dict(custom_data)

    def __enter__(self) -> 'OutputBag':
        with self._named():
            self._beside = Path(tempfile.mkdtemp('.part', f'.{self._path.name}.',
                                                 self._path.absolute().parent))
        try:
            # In a folder of its own, as the files in the bag take its name from the start.
            self._writer = Writer(self._beside / self._path.name, version=VERSION,
                                  storage_plugin=self._storage)
            self._writer.set_compression(self._compression, CompressionFormat.ZSTD)
            for key, value in self._custom_data.items():
                self._writer.set_custom_data(key, str(value))
            with self._named():
                self._writer.open()
        except BaseException:
            shutil.rmtree(self._beside, ignore_errors=True)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        try:
            if error is not None:
                with contextlib.suppress(Exception):  # what failed is told by ``error``
                    self._writer.abort()
                return
            with self._named():
                self._writer.close()
                os.rename(self._writer.path, self._path)
        finally:
            shutil.rmtree(self._beside, ignore_errors=True)

    def add_copy(self, connection: Connection) -> Connection:
        """Add a topic of another bag, with its type, definition, hash and QoS profiles."""
        for each in self._writer.connections:  # two channels of an mcap may be alike
            if (each.topic, each.msgtype, each.ext) == (connection.topic, connection.msgtype,
                                                        connection.ext):
                return each
        definition, digest = _definition(connection)
        of_rosbag2: Any = connection.ext
        with self._named():
            return self._writer.add_connection(
                connection.topic, connection.msgtype, msgdef=definition, rihs01=digest,
                serialization_format=of_rosbag2.serialization_format,
                offered_qos_profiles=of_rosbag2.offered_qos_profiles)

    def add_output(self, topic: str) -> Connection:
        """Add a topic of Images, as one of the node's outputs."""
        with self._named():
            return self._writer.add_connection(topic, IMAGE, typestore=TYPES,
                                               offered_qos_profiles=[OUTPUT_QOS])

    def write(self, connection: Connection, time_ns: int, data: bytes | memoryview) -> None:
        """Write a message.

        :param connection: which was added.
        :param time_ns: at which it was recorded, nanoseconds.
        """
        with self._named():
            self._writer.write(connection, time_ns, data)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error
        except sqlite3.Error as error:  # what a full disk is to it
            raise OSError(errno.EIO, str(error), str(self._path)) from error


def _definition(connection: Connection) -> tuple[str, str]:
    """Definition and hash of a topic's type; made up for where its bag does not tell.

    Before Humble's successor bags had no hashes, and those of sqlite3 no definitions.
    """
    name, definition, digest = connection.msgtype, connection.msgdef.data, connection.digest
    if not definition and name in TYPES.fielddefs:
        definition, _ = TYPES.generate_msgdef(name, ros_version=2)
    return definition, digest or _hash(name, definition)


def _hash(name: str, definition: str) -> str:
    types = Typestore()
    try:
        # Not registered: that would run code that is made of the definition.
        types.fielddefs = get_types_from_msg(definition, name)
        return types.hash_rihs01(name) if definition else UNKNOWN_HASH
    except Exception:  # a definition in another language
        return UNKNOWN_HASH
