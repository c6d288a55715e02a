"""One soak, from its start to its judgement."""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from seg_ros.demo import DemoError
from seg_ros.demo.live import LiveNode, live_graph
from seg_ros.demo.processes import RosProcess
from seg_ros.errors import SegRosError
from seg_ros.files import write_json
from seg_ros.soak import SoakError
from seg_ros.soak.judgement import Finding, judge
from seg_ros.soak.options import Options
from seg_ros.soak.process_state import PROC, check_system, read_process
from seg_ros.soak.record import Record
from seg_ros.soak.report import explain, live_line, table, to_json

WIDTH, HEIGHT = 640, 480
PERIOD_S, MOST_SAMPLES = 1.0, 1800  # slopes are told from all pairs of samples
LINE_PERIOD_S, MOST_LINES = 10.0, 60


def run_soak(options: Options) -> None:
    """Start the node and the image source, watch the node, end both, tell and judge.

    :raises ConfigError: the system does not tell what processes hold.
    :raises DemoError: no frame was labelled, or a process ended early.
    :raises SoakError: something grew, or too little was measured to tell.
    :raises KeyboardInterrupt: it was interrupted; what it had measured is told.
    """
    check_system()
    with _folder_of_logs() as folder:
        soak = _Soak(options, folder)
        try:
            soak.run()
        except (DemoError, KeyboardInterrupt) as ending:
            soak.tell(str(ending) or 'interrupted')
            raise
        findings = soak.tell()
        if not findings:
            raise SoakError(f'too little was measured to judge; the logs are in {folder}/')
        if faults := explain(findings):
            raise SoakError(f'{faults}; the logs are in {folder}/')


class _Soak:
    def __init__(self, options: Options, folder: Path) -> None:
        self._options = options
        self._record = Record()
        self._node = RosProcess('the segmentation node', 'seg_ros.ros.node', {},
                                folder / 'node.log')
        self._source = RosProcess('the image source', 'seg_ros.ros.image_source', {
            'source': 'drawn', 'width': WIDTH, 'height': HEIGHT,
            'rate_hz': options.rate_hz}, folder / 'image_source.log')

    def run(self) -> None:
        """Watch the node for its time.

        :raises DemoError: no frame was labelled, or a process ended.
        :raises KeyboardInterrupt: all is to end.
        """
        with live_graph(self._node, self._source) as graph:
            live = LiveNode(graph, drawn=False, on_frame=self._count_overlay)
            self._record.statistics = live.monitor.statistics
            live.wait_for_first_label()
            self._watch(live)

    def tell(self, ended: str = '') -> list[Finding]:
        """Print the table and write the file, if anything was measured.

        :param ended: why it ended before its time.
        :return: the judgement.
        """
        if not self._record.samples:
            return []
        findings = judge(self._record.samples, self._record.silence_s, self._options.rate_hz)
        print(table(self._record, findings), flush=True)
        if self._options.json is not None:
            write_json(self._options.json, to_json(self._options, self._record, findings, ended))
        return findings

    def _watch(self, live: LiveNode) -> None:
        record, seconds = self._record, self._options.seconds
        period_s = max(PERIOD_S, seconds / MOST_SAMPLES)
        line_period_s = max(LINE_PERIOD_S, seconds / MOST_LINES)
        process = PROC / str(self._node.pid)
        begun_s = time.monotonic()
        sample_due_s, line_due_s = period_s, line_period_s
        while (passed_s := time.monotonic() - begun_s) < seconds:
            live.listen()
            record.listened(passed_s)
            record.diagnostics = live.monitor.diagnostics
            if passed_s >= sample_due_s and (state := read_process(process)) is not None:
                record.add(passed_s, state)
                sample_due_s = passed_s + period_s
                if passed_s >= line_due_s:
                    print(live_line(record), flush=True)
                    line_due_s = passed_s + line_period_s

    def _count_overlay(self, labels: np.ndarray, overlay: np.ndarray) -> None:
        self._record.overlays += 1


@contextlib.contextmanager
def _folder_of_logs() -> Iterator[Path]:
    """A folder that stays where a soak failed, for the logs in it to be read."""
    folder = Path(tempfile.mkdtemp(prefix='seg_ros_soak_'))
    failed = False
    try:
        yield folder
    except SegRosError:
        failed = True
        raise
    finally:
        if not failed:
            shutil.rmtree(folder)
