"""What became of the frames of a stream, seen from outside."""

from collections import deque

import numpy as np

KEPT = 100_000  # latencies that percentiles are taken over


class StreamStatistics:
    """Follows each frame by its stamp, from the first labelled one on.

    A frame ends as labelled, or as dropped once a later one is labelled; the rest is in flight.

    :ivar latencies_ms: of the labelled frames, from stamp to arrival; the last ``KEPT``.
    """

    def __init__(self) -> None:
        self.frames_in = 0
        self.labelled = 0
        self.dropped = 0
        self._in_flight: list[int] = []  # stamps in order of time
        self._unannounced: set[int] = set()
        self._first_labelled = self._newest_labelled = -1
        self._arrivals_ns: tuple[int, int] = (0, 0)  # of the first and the newest label image
        self.latencies_ms: deque[float] = deque(maxlen=KEPT)
        self._closed = False

    def frame_published(self, stamp_ns: int) -> None:
        """A frame left the camera; may be heard after its label image."""
        if stamp_ns in self._unannounced:
            self._unannounced.remove(stamp_ns)
        elif not self._closed and stamp_ns > self._first_labelled:
            self._in_flight.append(stamp_ns)
            if self.labelled:
                self.frames_in += 1
            self._drop_older()

    def frame_labelled(self, stamp_ns: int, arrived_ns: int) -> bool:
        """A label image arrived.

        :param arrived_ns: by the clock that the stamp is from.
        :return: whether it counts: not if its frame came after the close.
        """
        if stamp_ns in self._in_flight:
            self._in_flight.remove(stamp_ns)
            self.frames_in += not self.labelled
        elif self._closed:
            return False
        else:
            self._unannounced.add(stamp_ns)
            self.frames_in += 1
        if not self.labelled:
            # What came before the first labelled frame belongs to the start.
            self._in_flight = [stamp for stamp in self._in_flight if stamp > stamp_ns]
            self.frames_in += len(self._in_flight)
            self._first_labelled = stamp_ns
            self._arrivals_ns = (arrived_ns, arrived_ns)
        self.labelled += 1
        self._arrivals_ns = (self._arrivals_ns[0], arrived_ns)
        self.latencies_ms.append((arrived_ns - stamp_ns) / 1e6)
        self._newest_labelled = max(self._newest_labelled, stamp_ns)
        self._drop_older()
        return True

    def close(self) -> None:
        """Count no further frames; those in flight may still be labelled."""
        self._closed = True

    def give_up(self) -> None:
        """Count what is still in flight as dropped."""
        self.dropped += len(self._in_flight)
        self._in_flight.clear()

    @property
    def in_flight(self) -> int:
        """Frames that are neither labelled nor dropped yet."""
        return len(self._in_flight)

    @property
    def seconds(self) -> float:
        """From the first label image to the newest."""
        first, newest = self._arrivals_ns
        return (newest - first) / 1e9

    @property
    def fps(self) -> float:
        """Label images a second."""
        return (self.labelled - 1) / self.seconds if self.seconds > 0 else 0.0

    def latency_ms(self) -> tuple[float, float] | None:
        """Median and 95th percentile of the time from stamp to arrival; None before the first."""
        if not self.latencies_ms:
            return None
        p50, p95 = np.percentile(self.latencies_ms, (50, 95))
        return float(p50), float(p95)

    def _drop_older(self) -> None:
        if self.labelled:
            kept = [stamp for stamp in self._in_flight if stamp > self._newest_labelled]
            self.dropped += len(self._in_flight) - len(kept)
            self._in_flight = kept
