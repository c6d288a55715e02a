"""The place where the newest frame of each camera waits for the network."""

import itertools
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Frame:
    """A camera's message and the monotonic time of its arrival in seconds."""

    camera: Any
    message: Any
    arrived_s: float


class FrameSlots:
    """Holds one frame of each camera: a newer one takes the place of one not yet taken. Never a
    queue, as a late label image is worse than a missing one.

    First comes the camera whose last frame was taken longest ago. By the age of the frames that
    wait, cameras would starve: those that send faster, whose frames are always younger, and of
    those that send in step all but the first.
    """

    def __init__(self) -> None:
        self._waiting: dict[Hashable, Frame] = {}
        self._last_turn: dict[Hashable, int] = {}
        self._turns = itertools.count(1)
        self._open = True
        self._changed = threading.Condition()

    def put(self, camera: Hashable, message: Any) -> bool:
        """Place a frame; return whether an older one of that camera was dropped for it."""
        with self._changed:
            dropped = camera in self._waiting
            self._waiting[camera] = Frame(camera, message, time.monotonic())
            self._changed.notify()
            return dropped

    def take(self, counts: Sequence[int], size_of: Callable[[Any], Hashable]) -> list[Frame]:
        """Wait for a frame; take it, and as many as go with it of those that wait already.

        :param counts: how many may be taken at once; 1 is among them.
        :param size_of: of a message; only frames of one size are taken together.
        :return: in the order of the cameras' turns; empty after :meth:`close`.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or not self._open)
            if not self._open:
                return []
            frames = sorted(self._waiting.values(),
                            key=lambda frame: self._last_turn.get(frame.camera, 0))
            if max(counts) > 1 and len(frames) > 1:
                frames = self._of_one_size(frames, size_of)
            frames = frames[:max(count for count in counts if count <= len(frames))]
            for frame in frames:
                del self._waiting[frame.camera]
                self._last_turn[frame.camera] = next(self._turns)
            return frames

    def _of_one_size(self, frames: Sequence[Frame],
                     size_of: Callable[[Any], Hashable]) -> list[Frame]:
        """The first and those of its size that take the turn of no other: cameras that are many
        of one size would have more turns than others.
        """
        sizes = [size_of(frame.message) for frame in frames]
        turns = [self._last_turn.get(frame.camera, 0) for frame in frames]
        others = [turn for turn, size in zip(turns, sizes, strict=True) if size != sizes[0]]
        return [frame for frame, turn, size in zip(frames, turns, sizes, strict=True)
                if size == sizes[0] and turn <= min(others, default=turn)]

    def close(self) -> None:
        """Let :meth:`take` return nothing from now on; frames that wait are forgotten."""
        with self._changed:
            self._open = False
            self._changed.notify_all()
