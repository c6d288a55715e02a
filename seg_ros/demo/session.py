"""One run of the demo, from its start to the summary."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from seg_ros.demo.live import LiveGraph, LiveNode, live_graph
from seg_ros.demo.options import Options
from seg_ros.demo.processes import RosProcess, ros_environment
from seg_ros.demo.recording import LOGS, Recorder, prepare_folder

FOLDER = Path('demo_output')
LAST_MESSAGES_PATIENCE_S = 3.0
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
    node = RosProcess('the segmentation node', 'seg_ros.ros.node', options.node_parameters,
                      FOLDER / LOGS[0])
    source = RosProcess('the image source', 'seg_ros.ros.image_source',
                        options.source_parameters, FOLDER / LOGS[1])
    with live_graph(node, source) as graph:
        session = _Session(options, graph)
        session.live.wait_for_first_label()
        session.watch()
        written = session.finish()
    for path in written:
        print(f'wrote {path}')


class _Session:
    def __init__(self, options: Options, graph: LiveGraph) -> None:
        self._options = options
        self._first_frame_s: float | None = None
        self._recorder = Recorder(options.seconds)
        self.live = LiveNode(graph, options.drawn, self._record)
        self._monitor = self.live.monitor

    def watch(self) -> None:
        """Print a line a second until the time is over, or Ctrl-C where it is to be kept."""
        if self._options.keep:
            print(self._how_to_connect(), flush=True)
        begun_s = time.monotonic()
        line = 1
        try:
            while self._options.keep or time.monotonic() - begun_s < self._options.seconds:
                self.live.listen()
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
            self.live.listen()
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
