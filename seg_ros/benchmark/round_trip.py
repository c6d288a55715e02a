"""Nodes side by side on the same stream: from publishing a picture to its labels, through DDS."""

import os
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from rclpy.executors import Executor
from rclpy.node import Node
from tqdm import tqdm

from seg_ros.benchmark import BenchmarkError
from seg_ros.benchmark.contender import draw
from seg_ros.benchmark.frame_path import camera_image
from seg_ros.benchmark.memory import high_water_mb
from seg_ros.benchmark.rows import RanOn, Row, base_row, compared, timed
from seg_ros.benchmark.stream import Stream
from seg_ros.benchmark.variants import Variant, show_size
from seg_ros.demo.context import ros_context
from seg_ros.demo.fast_dds import use_profile
from seg_ros.demo.interruption import Interruption
from seg_ros.demo.processes import RosProcess, ros_environment, running
from seg_ros.demo.stream_statistics import StreamStatistics
from seg_ros.model_file import find_model, load_model
from seg_ros.model_spec import input_size
from seg_ros.ros.diagnostics import could_not_start

PICTURES, PICTURE_PERIOD_S = 4, 0.5
STARTUP_PATIENCE_S, STARTUP_RATE_HZ = 180.0, 4.0
WARM_UP_LABELS = 5
# A turn lasts this long, and on until so many labels have come: a slow node needs more time.
TURN_S, TURN_LABELS, LONGEST_TURN_S = 3.0, 5, 60.0
LAST_LABELS_PATIENCE_S = 30.0
LISTEN_S = 0.05


def measure_round_trip(variants: Sequence[Variant], rounds: int, rate_hz: float) -> list[Row]:
    """Start a node for each variant, each with topics of its own, and send to them in turns.

    All nodes run all the time, but only one of them gets pictures.

    :raises ModelFileError: a model cannot be read.
    :raises BenchmarkError: a node did not start, or does not publish what is listened to.
    """
    sizes = [variant.network_size or input_size(load_model(variant.model).spec, *variant.size)
             for variant in variants]
    os.environ.update(ros_environment())
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        interruption = stack.enter_context(Interruption())
        use_profile(folder)
        processes = [_process(number, variant, folder)
                     for number, variant in enumerate(variants, 1)]
        stack.enter_context(running(processes))
        executor = stack.enter_context(ros_context())
        session = _Session(variants, processes, interruption, executor)
        session.wait_for_all()
        session.take_turns(rounds, 1 / rate_hz)
        return compared([row for number, size in enumerate(sizes, 1)
                         for row in session.rows(number, size)])


def _process(number: int, variant: Variant, folder: Path) -> RosProcess:
    parameters: dict[str, bool | int | str] = {
        'model': str(find_model(variant.model).resolve()), 'threads': variant.threads,
        'network_size': show_size(variant.network_size) if variant.network_size else ''}
    if variant.plain:
        module = 'seg_ros.benchmark.plain_node'
        parameters['queue'] = variant.plain
    else:
        module = 'seg_ros.ros.node'
        parameters |= {'engine': variant.engine, 'device': variant.device,
                       'precision': variant.precision}
    return RosProcess(f'the node of variant {number}, {variant.name},', module, parameters,
                      folder / f'{number}.log', _namespace(number))


def _namespace(number: int) -> str:
    return f'/variant{number}'


@dataclass
class _Lane:
    """A variant with its node, its stream and what became of the pictures in each turn."""

    variant: Variant
    process: RosProcess
    stream: Stream
    turns: list[StreamStatistics] = field(default_factory=list)


class _Session:
    def __init__(self, variants: Sequence[Variant], processes: Sequence[RosProcess],
                 interruption: Interruption, executor: Executor) -> None:
        self._interruption = interruption
        self._executor = executor
        node = Node('seg_bench')
        images = {size: [camera_image(draw(size, number * PICTURE_PERIOD_S))
                         for number in range(PICTURES)]
                  for size in {variant.size for variant in variants}}
        self._lanes = [
            _Lane(variant, process,
                  Stream(node, _namespace(number), variant.outputs, images[variant.size]))
            for number, (variant, process) in enumerate(zip(variants, processes, strict=True), 1)]
        executor.add_node(node)

    def wait_for_all(self) -> None:
        """Send pictures until all nodes have labelled some.

        :raises BenchmarkError: one does not within a time.
        """
        deadline_s = time.monotonic() + STARTUP_PATIENCE_S
        for lane in tqdm(self._lanes, desc='starting', unit='node', leave=False):
            while lane.stream.heard['labels'] < WARM_UP_LABELS:
                lane.stream.publish()
                self._listen_until(time.monotonic() + 1 / STARTUP_RATE_HZ)
                failed = could_not_start(lane.stream.diagnostics)
                if failed or time.monotonic() > deadline_s:
                    raise BenchmarkError(f'{lane.process.name} does not label'
                                         f'{lane.process.end_of_log()}')
            self._wait_for_last_labels(lane)

    def take_turns(self, rounds: int, period_s: float) -> None:
        """Send to one node after the other; each round begins with another of them.

        :raises BenchmarkError: an output that is listened to never comes.
        """
        count = len(self._lanes)
        with tqdm(total=rounds * count, desc='measuring', unit='turn', leave=False) as progress:
            for number in range(rounds):
                for position in range(count):
                    self._take_turn(self._lanes[(number + position) % count], period_s)
                    progress.update()
        for lane in self._lanes:
            if missing := [name for name, times in lane.stream.heard.items() if not times]:
                raise BenchmarkError(f'{lane.process.name} never published {missing[0]}'
                                     f'{lane.process.end_of_log()}')

    def _take_turn(self, lane: _Lane, period_s: float) -> None:
        lane.stream.begin()
        statistics = lane.stream.statistics
        began_s = next_s = time.monotonic()
        while (passed_s := time.monotonic() - began_s) < LONGEST_TURN_S and (
                passed_s < TURN_S or statistics.labelled < TURN_LABELS):
            lane.stream.publish()
            # As a camera, it makes up for no picture that it was too late for; and however late,
            # it takes the time to listen.
            next_s = max(next_s + period_s, time.monotonic() + period_s / 2)
            self._listen_until(next_s)
        self._wait_for_last_labels(lane)
        lane.turns.append(statistics)

    def _wait_for_last_labels(self, lane: _Lane) -> None:
        """Let a node finish, that it does not work on in the turn of another."""
        statistics = lane.stream.statistics
        statistics.close()
        deadline_s = time.monotonic() + LAST_LABELS_PATIENCE_S
        while statistics.in_flight and time.monotonic() < deadline_s:
            self._listen_until(time.monotonic() + LISTEN_S)
        statistics.give_up()

    def _listen_until(self, moment_s: float) -> None:
        """Receive until a moment of the monotonic clock.

        :raises DemoError: a process ended.
        :raises KeyboardInterrupt: the measurement is to end.
        """
        while (left_s := moment_s - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=left_s)
            self._interruption.check()
        for lane in self._lanes:
            lane.process.check()

    def rows(self, number: int, network_size: tuple[int, int]) -> list[Row]:
        """What was measured of a variant, by its number from 1 on."""
        lane = self._lanes[number - 1]
        told = lane.stream.diagnostics
        ran_on = RanOn('torch', 'cpu', 'float32') if lane.variant.plain else RanOn(
            *(told.get(key, '?') for key in RanOn._fields))
        base = base_row(number, lane.variant, network_size, ran_on)
        latencies_s = [latency_ms / 1e3 for turn in lane.turns for latency_ms in turn.latencies_ms]
        if not latencies_s:
            raise BenchmarkError(f'{lane.process.name} labelled nothing in its turns'
                                 f'{lane.process.end_of_log()}')
        seconds = sum(turn.seconds for turn in lane.turns)
        labelled_after = sum(max(turn.labelled - 1, 0) for turn in lane.turns)
        whole = replace(
            timed(base, 'round_trip', latencies_s),
            fps=labelled_after / seconds if seconds else None,
            frames=sum(turn.frames_in for turn in lane.turns),
            dropped=sum(turn.dropped for turn in lane.turns),
            peak_rss_mb=high_water_mb(Path(f'/proc/{lane.process.pid}/status')))
        return [whole, *_node_rows(base, told)]


def _node_rows(base: Row, told: dict[str, str]) -> list[Row]:
    """The stages that the node measures by itself, over its last frames, from its start on."""
    rows = []
    for key, value in told.items():
        if match := re.fullmatch(r'(\w+)_p50_ms', key):
            rows.append(replace(base, stage=f'node.{match[1]}', p50_ms=float(value),
                                p95_ms=float(told[f'{match[1]}_p95_ms'])))
    return rows
