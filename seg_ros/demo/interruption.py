"""Ctrl-C, when it suits."""

import signal
from typing import Any


class Interruption:
    """Notes Ctrl-C and the other requests to end, for :meth:`check` to act upon.

    A KeyboardInterrupt out of the blue would come out of rclpy as some other error.
    """

    def __init__(self) -> None:
        self._requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> 'Interruption':
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """:raises KeyboardInterrupt: it was requested since the last call."""
        requested, self._requested = self._requested, False
        if requested:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: object) -> None:
        self._requested = True
