"""Where the time of a network goes in OpenVINO, by the type of its layers."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from seg_ros.benchmark.contender import Contender, folded_up_to, ready_pictures
from seg_ros.inference.engine_openvino import OpenVinoEngine
from seg_ros.inference.int8 import for_precision
from seg_ros.model_file import Model

WARM_UP = 3


class ProfiledEngine(OpenVinoEngine):
    """An engine that notes the time of each layer, which slows it down a little."""

    def __init__(self, model: Model, device: str, precision: str, threads: int) -> None:
        super().__init__(model, device, precision, threads)
        self._settings['PERF_COUNT'] = True

    def layers(self) -> list[tuple[str, float]]:
        """Type and seconds of each layer that ran in the last inference."""
        request = self._requests.newest
        return [(layer.node_type, layer.real_time.total_seconds())
                for layer in request.profiling_info if layer.real_time]


def profile_layers(contender: Contender,
                   runs: int) -> tuple[Mapping[str, Sequence[float]], Mapping[str, int]]:
    """Profile a variant that runs in OpenVINO.

    :return: for each type of layer, that which takes most first, the seconds of each run, and
        how many layers it is.
    """
    variant = contender.variant
    with folded_up_to(variant.folds):
        engine = ProfiledEngine(for_precision(contender.model, variant.precision),
                                contender.engine.device, contender.engine.precision,
                                variant.threads)
    pictures = ready_pictures(contender)
    times: dict[str, list[float]] = {}
    counts: Counter[str] = Counter()
    for number in range(-WARM_UP, runs):
        engine.infer(pictures, confidence='confidence' in variant.outputs)
        if number < 0:
            continue
        layers = engine.layers()
        counts = Counter(kind for kind, _ in layers)
        for kind in counts:
            times.setdefault(kind, []).append(sum(
                seconds for other, seconds in layers if other == kind))
    engine.close()
    return dict(sorted(times.items(), key=lambda item: -float(np.median(item[1])))), counts
