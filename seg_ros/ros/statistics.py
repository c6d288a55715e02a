"""What happened to the frames of one camera: counts and times, from any thread."""

import threading
import time
from collections import deque
from collections.abc import Mapping

import numpy as np

WINDOW = 300  # frames that percentiles are taken over: ten seconds at 30 Hz
RECENT = 10  # frames that tell how things are now


class FrameStatistics:
    """Counts since activation, and the stages' times over the last frames.

    ``received`` frames end as ``processed``, ``dropped`` for a newer one, ``refused`` as
    malformed or ``failed`` in the engine or on their way out.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(('received', 'processed', 'dropped', 'refused', 'failed'), 0)
        self._fates: deque[str] = deque(maxlen=WINDOW)
        self._times_ms: dict[str, deque[float]] = {}
        self._failures: deque[bool] = deque(maxlen=RECENT)  # of the frames that the engine got
        self._last_error = ''
        self._last_frame_s = time.monotonic()

    def count_received(self, dropped_older: bool) -> None:
        with self._lock:
            self._counts['received'] += 1
            if dropped_older:
                self._end('dropped')
            self._last_frame_s = time.monotonic()

    def count_processed(self, times_ms: Mapping[str, float]) -> None:
        """:param times_ms: milliseconds by name of the stage."""
        with self._lock:
            self._end('processed')
            self._failures.append(False)
            for stage, value in times_ms.items():
                self._times_ms.setdefault(stage, deque(maxlen=WINDOW)).append(value)

    def count_refused(self, reason: str) -> None:
        with self._lock:
            self._end('refused')
            self._last_error = reason

    def count_failed(self, reason: str) -> None:
        with self._lock:
            self._end('failed')
            self._failures.append(True)
            self._last_error = reason

    def _end(self, fate: str) -> None:
        self._counts[fate] += 1
        self._fates.append(fate)

    def restart_wait(self) -> None:
        """Begin to wait for frames now, as after subscribing."""
        with self._lock:
            self._last_frame_s = time.monotonic()

    @property
    def failing(self) -> bool:
        """Whether the last frame to be labelled was lost, or most of the last ones were."""
        with self._lock:
            failures = self._failures
            return bool(failures) and (failures[-1] or 2 * sum(failures) > len(failures))

    @property
    def silence_s(self) -> float:
        """Seconds since the last frame arrived, or since the wait began."""
        with self._lock:
            return time.monotonic() - self._last_frame_s

    def share(self, fate: str) -> float:
        """Share of the last frames that ended so; 0 of only a few.

        :param fate: 'processed', 'dropped', 'refused' or 'failed'.
        """
        with self._lock:
            if len(self._fates) < RECENT:
                return 0.0
            return self._fates.count(fate) / len(self._fates)

    @property
    def image_age_s(self) -> float:
        """How old the last images were once they were labelled, by their stamps: the median.

        Negative where stamps lie in the future; 0 where images have no stamp.
        """
        with self._lock:
            ages_ms = list(self._times_ms.get('image_age', ()))[-RECENT:]
            return float(np.median(ages_ms)) / 1e3 if ages_ms else 0.0

    def values(self) -> dict[str, str]:
        """All of it as text, in the order in which it is shown in diagnostics."""
        with self._lock:
            shown = {name: str(count) for name, count in self._counts.items()}
            for stage, times in self._times_ms.items():
                p50, p95 = np.percentile(list(times), (50, 95))
                shown[f'{stage}_p50_ms'] = f'{p50:.1f}'
                shown[f'{stage}_p95_ms'] = f'{p95:.1f}'
            shown['last_error'] = self._last_error
            return shown
