"""Processes that end with the demo, whatever happens."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from seg_ros.demo import DemoError, processes
from seg_ros.demo.interruption import Interruption
from seg_ros.demo.processes import RosProcess, ros_environment, running

WAIT_S = 30.0
ROOT = Path(__file__).parents[2]
STUBBORN = 'import signal\nfor number in (signal.SIGINT, signal.SIGTERM):\n' \
           '    signal.signal(number, signal.SIG_IGN)\n'


@pytest.fixture
def modules(tmp_path, monkeypatch) -> Path:
    """A folder whose Python files a child can run."""
    monkeypatch.setenv('PYTHONPATH', os.pathsep.join([str(tmp_path), str(ROOT)]))
    return tmp_path


def make_process(modules: Path, code: str, **parameters: bool | int | str) -> RosProcess:
    (modules / 'child.py').write_text(code)
    return RosProcess('the child', 'child', parameters, modules / 'child.log')


def waiting(modules: Path, before: str = '') -> str:
    return (f'import os, pathlib, time\n{before}'
            f'pathlib.Path({str(modules)!r}, "pid").write_text(str(os.getpid()))\n'
            'time.sleep(60)\n')


def child_pid(modules: Path) -> int:
    deadline = time.monotonic() + WAIT_S
    while not (modules / 'pid').exists() or not (modules / 'pid').read_text():
        assert time.monotonic() < deadline, 'the child did not start'
        time.sleep(0.02)
    return int((modules / 'pid').read_text())


def is_alive(pid: int) -> bool:
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except FileNotFoundError:
        return False


def test_processes_are_gone_after_an_error_in_the_demo(modules):
    with pytest.raises(ValueError, match='ours'), running([make_process(
            modules, waiting(modules))]):
        pid = child_pid(modules)
        assert is_alive(pid)
        raise ValueError('ours')
    assert not is_alive(pid)


def test_process_that_ignores_the_signals_is_killed(modules, monkeypatch):
    monkeypatch.setattr(processes, 'STOP_SIGNALS', tuple(
        (number, min(patience_s, 0.3)) for number, patience_s in processes.STOP_SIGNALS[:2]
    ) + processes.STOP_SIGNALS[2:])
    with running([make_process(modules, waiting(modules, STUBBORN))]):
        pid = child_pid(modules)
    assert not is_alive(pid)


def test_process_that_ended_is_reported_with_the_end_of_its_log(modules):
    process = make_process(
        modules, 'import sys\nfor number in range(40): print("line", number)\nsys.exit(3)')
    with running([process]), pytest.raises(DemoError) as report:
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            process.check()
            time.sleep(0.05)
    assert 'the child ended with exit code 3' in str(report.value)
    assert str(modules / 'child.log') in str(report.value)
    assert 'line 39' in str(report.value) and 'line 9\n' not in str(report.value)


@pytest.mark.skipif(sys.platform != 'linux', reason='only Linux ends children with their parent')
def test_process_ends_even_if_the_demo_is_killed(modules):
    (modules / 'child.py').write_text(waiting(modules))
    code = ('import pathlib, time\nfrom seg_ros.demo.processes import RosProcess\n'
            f'RosProcess("child", "child", {{}}, pathlib.Path({str(modules / "log")!r})).start()\n'
            'time.sleep(60)\n')
    demo = subprocess.Popen([sys.executable, '-c', code])
    try:
        pid = child_pid(modules)
    finally:
        demo.kill()
        demo.wait()
    deadline = time.monotonic() + WAIT_S
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(pid)


def test_texts_stay_texts_on_the_way_to_the_node(modules):
    """ROS reads the values as YAML, where a bare 123, yes or # is no text."""
    yaml = pytest.importorskip('yaml')
    values = {'a': '/x: y #1', 'b': '123', 'c': 'yes', 'd': 'Größe "1"', 'e': True, 'f': 7}
    process = make_process(modules, 'import sys\nprint(*sys.argv[1:], sep="\\n")', **values)
    with running([process]):
        assert process.ended_by(time.monotonic() + WAIT_S)
    first, *rest = (modules / 'child.log').read_text().splitlines()
    assert first == '--ros-args' and rest[::2] == ['-p'] * len(values)
    read = dict(text.split(':=', 1) for text in rest[1::2])
    assert {key: yaml.safe_load(text) for key, text in read.items()} == values


def test_graph_is_private_and_a_domain_that_is_set_stays(monkeypatch):
    monkeypatch.delenv('ROS_DOMAIN_ID', raising=False)
    assert 1 <= int(ros_environment()['ROS_DOMAIN_ID']) <= 100
    assert ros_environment()['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'LOCALHOST'
    monkeypatch.setenv('ROS_DOMAIN_ID', '47')
    assert ros_environment()['ROS_DOMAIN_ID'] == '47'


def test_ctrl_c_while_ending_leaves_nothing_behind(modules, monkeypatch):
    monkeypatch.setattr(processes, 'STOP_SIGNALS', (
        (signal.SIGINT, 2.0), (signal.SIGKILL, 3.0)))
    ctrl_c = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    with Interruption(), running([make_process(modules, waiting(modules, STUBBORN))]):
        pid = child_pid(modules)
        ctrl_c.start()
    ctrl_c.join()
    assert not is_alive(pid)


def test_ctrl_c_is_kept_until_it_is_asked_for():
    with Interruption() as interruption:
        interruption.check()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.raise_signal(number)
            with pytest.raises(KeyboardInterrupt):
                interruption.check()
            interruption.check()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
