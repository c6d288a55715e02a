"""The place where the newest frame of a camera waits for the network."""

import threading
import time
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Frame:
    """A message and the monotonic time of its arrival in seconds."""

    message: Any
    arrived_s: float


class FrameSlot:
    """Holds one frame: a newer one takes the place of one not yet taken. Never a queue, as a
    late label image is worse than a missing one.
    """

    def __init__(self) -> None:
        self._frame: Frame | None = None
        self._open = True
        self._changed = threading.Condition()

    def put(self, message: Any) -> bool:
        """Place a frame; return whether an older one was dropped for it."""
        with self._changed:
            dropped = self._frame is not None
            self._frame = Frame(message, time.monotonic())
            self._changed.notify()
            return dropped

    def take(self) -> Frame | None:
        """Wait for a frame and take it; None after :meth:`close`."""
        with self._changed:
            self._changed.wait_for(lambda: self._frame is not None or not self._open)
            frame, self._frame = self._frame, None
            return frame if self._open else None

    def close(self) -> None:
        """Let :meth:`take` return None from now on; a frame that waits is forgotten."""
        with self._changed:
            self._open = False
            self._changed.notify_all()
