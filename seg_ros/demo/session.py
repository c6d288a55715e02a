"""One run of the demo, from its start to the summary."""

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seg_ros.demo import DemoError
from seg_ros.demo.context import ros_context
from seg_ros.demo.fast_dds import use_profile
from seg_ros.demo.interruption import Interruption
from seg_ros.demo.monitor import Monitor
from seg_ros.demo.options import Options
from seg_ros.demo.processes import RosProcess, ros_environment, running
from seg_ros.demo.recording import LOGS, Recorder, prepare_folder
from seg_ros.ros.diagnostics import could_not_start

FOLDER = Path('demo_output')
STARTUP_PATIENCE_S = 180.0  # the first start of an engine may build it for the device
NEWS_PERIOD_S = 10.0
LAST_MESSAGES_PATIENCE_S = 3.0
LISTEN_S = 0.05
ENGINE_KEYS = ('engine', 'device', 'precision')
RVIZ_CONFIG = Path(__file__).parents[2] / 'config' / 'seg.rviz'
TOPICS = ('image', 'camera_info', 'segmentation/labels', 'segmentation/confidence',
          'segmentation/overlay', 'segmentation/color', 'segmentation/camera_info', '/diagnostics')


def run_demo(options: Options) -> None:
    """Start the node and the image source, watch them, write ``demo_output/``, end them.

    :raises ConfigError: the folder cannot be written.
    :raises DemoError: no frame was labelled, or a process ended early.
    """
    prepare_folder(FOLDER)
    os.environ.update(ros_environment())
    node = RosProcess('the segmentation node', 'seg_ros.ros.node', options.node_parameters,
                      FOLDER / LOGS[0])
    source = RosProcess('the image source', 'seg_ros.ros.image_source',
                        options.source_parameters, FOLDER / LOGS[1])
    with tempfile.TemporaryDirectory() as scratch, Interruption() as interruption:
        use_profile(Path(scratch))
        with running([node, source]), ros_context():
            session = _Session(options, node, source, interruption)
            session.wait_for_first_label()
            session.watch()
            written = session.finish()
    for path in written:
        print(f'wrote {path}')


class _Session:
    def __init__(self, options: Options, node: RosProcess, source: RosProcess,
                 interruption: Interruption) -> None:
        self._options = options
        self._interruption = interruption
        self._node = node
        self._processes: Sequence[RosProcess] = (node, source)
        self._started_s = time.monotonic()
        self._first_frame_s: float | None = None
        self._recorder = Recorder(options.seconds)
        self._monitor = Monitor(options.drawn, self._record)

    def wait_for_first_label(self) -> None:
        """Show how the node comes up.

        :raises DemoError: it does not, or not within a time.
        """
        print(f'starting the image source and the node; their logs are in {FOLDER}/', flush=True)
        stage, said_s = '', 0.0
        while not self._monitor.statistics.labelled:
            self._listen()
            passed_s = time.monotonic() - self._started_s
            now = self._monitor.startup_stage
            if now != stage or passed_s - said_s >= NEWS_PERIOD_S:
                print(f'{passed_s:6.1f} s  {now}', flush=True)
                stage, said_s = now, passed_s
            if could_not_start(self._monitor.diagnostics):
                raise DemoError(f'the segmentation node could not start{self._node.end_of_log()}')
            if passed_s > STARTUP_PATIENCE_S:
                logs = ''.join(process.end_of_log() for process in self._processes)
                raise DemoError(f'no label image within {STARTUP_PATIENCE_S:g} s: {now}{logs}')
        print(f'first label image after {time.monotonic() - self._started_s:.1f} s', flush=True)

    def watch(self) -> None:
        """Print a line a second until the time is over, or Ctrl-C where it is to be kept."""
        if self._options.keep:
            print(self._how_to_connect(), flush=True)
        begun_s = time.monotonic()
        line = 1
        try:
            while self._options.keep or time.monotonic() - begun_s < self._options.seconds:
                self._listen()
                passed_s = time.monotonic() - begun_s
                if passed_s >= line:
                    print(self._live_line(passed_s), flush=True)
                    line = int(passed_s) + 1
        except KeyboardInterrupt:
            if not self._options.keep:
                raise
            print()

    def finish(self) -> list[Path]:
        """Wait for the frames in flight, then write everything.

        :return: the files.
        """
        statistics = self._monitor.statistics
        statistics.close()
        deadline_s = time.monotonic() + LAST_MESSAGES_PATIENCE_S
        while time.monotonic() < deadline_s and (
                statistics.in_flight or 'image_age_p50_ms' not in self._monitor.diagnostics):
            self._listen()
        statistics.give_up()
        classes = self._monitor.read_classes()
        miou = self._monitor.miou(classes)
        summary = self._summary()
        if self._options.drawn:
            summary['miou'] = None if miou is None else round(miou, 2)
        print(f'{statistics.frames_in} frames in, {statistics.labelled} labelled, '
              f'{statistics.dropped} dropped, {statistics.fps:.1f} labelled a second')
        if miou is not None:
            print(f'mIoU against the exact labels of the drawn scene: {miou:.2f} %')
        return self._recorder.write(FOLDER, classes, statistics.fps, summary)

    def _listen(self) -> None:
        """Receive for a moment.

        :raises DemoError: a process ended.
        :raises KeyboardInterrupt: the demo is to end.
        """
        self._monitor.listen(LISTEN_S)
        self._interruption.check()
        for process in self._processes:
            process.check()

    def _record(self, labels: np.ndarray, overlay: np.ndarray) -> None:
        now_s = time.monotonic()
        if self._first_frame_s is None:
            self._first_frame_s = now_s
        self._recorder.add(now_s - self._first_frame_s, labels, overlay)

    def _live_line(self, passed_s: float) -> str:
        statistics, diagnostics = self._monitor.statistics, self._monitor.diagnostics
        p50, p95 = statistics.latency_ms() or (0.0, 0.0)
        age = diagnostics.get('image_age_p50_ms', '?')
        engine = ' '.join(diagnostics.get(key, '?') for key in ENGINE_KEYS)
        return (f'{passed_s:4.0f} s  in {statistics.frames_in}  labelled {statistics.labelled}  '
                f'dropped {statistics.dropped}  latency p50 {p50:.0f} p95 {p95:.0f} ms  '
                f'image age {age} ms  {engine}')

    def _summary(self) -> dict[str, Any]:
        statistics, diagnostics = self._monitor.statistics, self._monitor.diagnostics
        p50, p95 = statistics.latency_ms() or (None, None)
        ages = {name: diagnostics.get(f'image_age_{name}_ms') for name in ('p50', 'p95')}
        return {
            'frames_in': statistics.frames_in, 'labelled': statistics.labelled,
            'dropped': statistics.dropped,
            'latency_ms': {'p50': _rounded(p50), 'p95': _rounded(p95)},
            'age_ms': {name: _rounded(age) for name, age in ages.items()},
            'fps': round(statistics.fps, 2),
            **{key: diagnostics.get(key) for key in ENGINE_KEYS}}

    def _how_to_connect(self) -> str:
        exports = ' '.join(f'{name}={value}' for name, value in ros_environment().items())
        config = f' -d {RVIZ_CONFIG}' if RVIZ_CONFIG.is_file() else ''
        return (f'Running until Ctrl-C. In another terminal with ROS 2:\n  export {exports}\n'
                f'  rviz2{config}\nTopics: {", ".join(TOPICS)}')


def _rounded(milliseconds: float | str | None) -> float | None:
    return None if milliseconds is None else round(float(milliseconds), 1)
