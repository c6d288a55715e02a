"""The soak from its command line to its judgement, with the real node and the model that ships."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from command_run import CommandRun

MEASURED = ('memory', 'shared_memory', 'image_age', 'file_descriptors', 'threads',
            'longest_silence', 'frames_refused_or_failed')


@pytest.fixture
def soak(tmp_path: Path, monkeypatch) -> Iterator:
    monkeypatch.setenv('TMPDIR', str(tmp_path))  # where it puts the logs
    runs = []

    def start(*arguments: str) -> CommandRun:
        runs.append(CommandRun(tmp_path, 'seg_ros.soak', *arguments, '--json', 'soak.json'))
        return runs[-1]

    yield start
    for run in runs:
        run.close()


def logs(folder: Path) -> list[Path]:
    return list(folder.glob('seg_ros_soak_*/node.log'))


@pytest.mark.alone
def test_node_stays_flat_for_a_minute(soak, tmp_path):
    run = soak('1')
    assert run.wait() == 0, run.out + run.err
    assert not run.left_behind() and not logs(tmp_path)
    values = json.loads((tmp_path / 'soak.json').read_text())
    assert values['flat'] is True and values['ended'] == ''
    assert tuple(values['findings']) == MEASURED
    for finding in values['findings'].values():
        assert finding['change'] <= finding['limit']
    assert values['findings']['memory']['first'] > 100  # MB: a network and its engine
    assert values['judged_s'][1] - values['judged_s'][0] > 35

    frames, counters = values['frames'], values['counters']
    assert frames['labelled'] > 20
    assert frames['sent'] == frames['labelled'] + frames['dropped'] + frames['in_flight']
    assert 0 <= frames['labelled'] - frames['overlays'] <= 2  # both are listened to
    # Told once a second, so up to some seconds old on a busy machine.
    assert 0.8 * frames['labelled'] < counters['processed'] <= 1.1 * frames['labelled'] + 5
    assert counters['refused'] == counters['failed'] == 0
    assert 0 < values['age_ms']['p50'] <= values['age_ms']['p95'] <= values['age_ms']['p99']
    times_s = [sample['time_s'] for sample in values['samples']]
    assert len(times_s) > 40 and np.diff(times_s).min() > 0.9 and times_s[-1] < 60
    assert 0 < values['cores'] <= os.cpu_count()
    for name in MEASURED:
        assert name.replace('_', ' ') in run.out


@pytest.mark.parametrize('who', ['the soak', 'the node'])
def test_a_run_that_ends_early_tells_what_was_measured(soak, tmp_path, who):
    run = soak('5', '--rate', '5')
    run.wait_for('first label image after')
    time.sleep(2.5)
    if who == 'the soak':
        run.process.send_signal(signal.SIGINT)
    else:
        os.kill(process_of(run, 'seg_ros.ros.node'), signal.SIGKILL)
    code = run.wait()
    assert not run.left_behind()
    values = json.loads((tmp_path / 'soak.json').read_text())
    assert values['flat'] is None and len(values['samples']) >= 1
    assert f'{values["frames"]["labelled"]} labelled' in run.out
    if who == 'the soak':
        assert (code, values['ended']) == (130, 'interrupted') and not logs(tmp_path)
        assert run.err == 'soak: interrupted\n'
    else:
        log, = logs(tmp_path)
        assert code == 1 and 'Traceback' not in run.err
        said = 'the segmentation node ended with exit code -9'
        assert said in values['ended'] and f'soak: error: {said}' in run.err
        assert str(log) in run.err


def process_of(run: CommandRun, module: str) -> int:
    pid, = (pid for pid in run.left_behind()
            if module.encode() in Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0'))
    return pid
