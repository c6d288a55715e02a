"""The bag that is read: a folder with metadata.yaml, or one .mcap or .db3 file."""

from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

from rosbags.interfaces import Connection
from rosbags.rosbag2 import CompressionMode, Reader, ReaderError

from seg_ros.errors import ConfigError, DataError


class InputBag:
    """An open bag, to be used in a ``with`` statement.

    :param storage: 'sqlite3' or 'mcap'.
    :param compression: of its files, its messages or what lies in its storage.
    :param custom_data: what was written into its metadata beside what ROS writes.
    :raises ConfigError: there is no bag at the path.
    :raises DataError: it is damaged, or of a kind that is not known.
    :raises OSError: it must not be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.exists():
            raise ConfigError(f'{path.absolute()}: no such bag; give a folder with metadata.yaml, '
                              'or a .mcap or .db3 file')
        if path.is_dir() and not (path / 'metadata.yaml').is_file():
            raise DataError(f'{path.resolve()}: no metadata.yaml in this folder; expected a bag '
                            'that was recorded to its end: "ros2 bag reindex" writes the file '
                            'anew, or give the .mcap or .db3 file itself')
        try:
            self._reader = Reader(path)
            self._reader.open()
        except OSError:
            raise
        except Exception as error:  # whatever rosbags meets in bytes that make no sense
            raise self._unreadable(error) from error
        source: Any = self._reader.storage
        storages: list[Any] = getattr(source, 'storages', [source])
        self.storage = 'mcap' if any(each.path.suffix == '.mcap' for each in storages) \
            else 'sqlite3'
        self.compression = CompressionMode.NONE
        if self._reader.compression_mode:
            self.compression = CompressionMode[self._reader.compression_mode.upper()]
        elif any(chunk.compression for each in storages for chunk in getattr(each, 'chunks', ())):
            self.compression = CompressionMode.STORAGE
        self.custom_data: dict[str, str] = source.metadata.custom or {}

    @property
    def connections(self) -> list[Connection]:
        """Topics, each with its type, QoS profiles and number of messages."""
        return self._reader.connections

    def messages(self, connections: Collection[Connection] = ()) -> \
            Iterator[tuple[Connection, int, bytes]]:
        """Read messages in the order of their times: connection, nanoseconds, bytes.

        :param connections: that are wanted; all, if none is given.
        :raises DataError: one cannot be read.
        """
        messages = self._reader.messages(connections)
        while True:
            try:
                message = next(messages)
            except StopIteration:
                return
            except OSError:
                raise
            except Exception as error:  # as above
                raise self._unreadable(error) from error
            yield message

    def first_messages(self, topic: str, message_type: str, number: int) -> list[bytes]:
        """Bytes of the first messages of a topic, at most ``number``.

        :raises DataError: one cannot be read.
        """
        connections = [each for each in self.connections
                       if each.topic == topic and each.msgtype == message_type and each.msgcount]
        if not connections:
            return []
        return [data for _, _, data in islice(self.messages(connections), number)]

    def check_count(self, number: int) -> None:
        """Compare the number of messages that were read with the one that the bag tells.

        :raises DataError: some are missing.
        """
        told = sum(connection.msgcount for connection in self.connections)
        if number < told:
            raise DataError(f'{self._path.resolve()}: only {number} of its {told} messages could '
                            'be read; its metadata.yaml does not fit its files, or they are '
                            'damaged: try "ros2 bag reindex"')

    def _unreadable(self, error: Exception) -> DataError:
        reason = str(error).rstrip('.')
        if not isinstance(error, ReaderError):  # its own say enough, others may be but a key
            reason = f'{type(error).__name__} {reason}'
        return DataError(f'{self._path.resolve()}: cannot be read as a bag: {reason}; it is cut '
                         'short, damaged or no rosbag2: "ros2 bag reindex", "mcap recover" or '
                         '"sqlite3 FILE .recover" save what can be saved')

    def __enter__(self) -> 'InputBag':
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._reader.close()
