"""What a soak has measured so far."""

from itertools import islice

import numpy as np

from seg_ros.demo.stream_statistics import StreamStatistics
from seg_ros.soak.judgement import Sample
from seg_ros.soak.process_state import ProcessState

COUNTERS = ('received', 'processed', 'dropped', 'refused', 'failed')  # of the node


class Record:
    """Filled while the node runs.

    :ivar statistics: of the label images.
    :ivar diagnostics: newest of the node, by key.
    :ivar overlays: number of label images that came with an overlay.
    :ivar silence_s: the longest time without a label image.
    """

    def __init__(self) -> None:
        self.statistics = StreamStatistics()
        self.diagnostics: dict[str, str] = {}
        self.samples: list[Sample] = []
        self.overlays = 0
        self.silence_s = 0.0
        self._heard, self._heard_s = 0, 0.0
        self._aged = 0  # label images whose age is in a sample

    def counters(self) -> dict[str, int]:
        """What became of the frames by the word of the node, since it was activated."""
        return {name: int(self.diagnostics.get(name, 0)) for name in COUNTERS}

    def listened(self, time_s: float) -> None:
        """Follow how long it has been silent.

        :param time_s: since the first label image.
        """
        if self.statistics.labelled > self._heard:
            self._heard, self._heard_s = self.statistics.labelled, time_s
        self.silence_s = max(self.silence_s, time_s - self._heard_s)

    def add(self, time_s: float, state: ProcessState) -> None:
        """Take a sample.

        :param state: of the node.
        """
        ages_ms = list(islice(reversed(self.statistics.latencies_ms),
                              self.statistics.labelled - self._aged))
        self._aged = self.statistics.labelled
        counters = self.counters()
        self.samples.append(Sample(
            time_s, state.memory_mb, state.shared_mb, state.file_descriptors, state.threads,
            state.cpu_s,
            float(np.median(ages_ms)) if ages_ms else None,
            counters['refused'] + counters['failed']))
