"""What the kernel tells of a process, of this one and of one that ends."""

import os
import subprocess
import sys
import time

import pytest

from seg_ros.errors import ConfigError
from seg_ros.soak import process_state
from seg_ros.soak.process_state import PROC, check_system, read_process

pytestmark = pytest.mark.skipif(sys.platform != 'linux', reason='only Linux has /proc')


CHILD = """
import mmap, threading, time
print('begun', flush=True)
input()
files = [open('/dev/null') for _ in range(5)]
threads = [threading.Thread(target=threading.Event().wait, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
own = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
shared = mmap.mmap(-1, 32 << 20)
own.write(bytes(64 << 20))
shared.write(bytes(32 << 20))
while time.process_time() < 0.3:
    pass
print(time.process_time(), flush=True)
input()
"""


def test_what_a_process_takes_is_seen():
    with subprocess.Popen([sys.executable, '-c', CHILD], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as child:
        folder = PROC / str(child.pid)
        assert child.stdout.readline() == 'begun\n'
        before = read_process(folder)
        print(file=child.stdin, flush=True)
        used_s = float(child.stdout.readline())
        with_all = read_process(folder)
        child.communicate('\n')
    assert with_all.file_descriptors - before.file_descriptors == 5
    assert with_all.threads - before.threads == 3
    assert with_all.memory_mb - before.memory_mb == pytest.approx(64, abs=4)
    assert with_all.shared_mb - before.shared_mb == pytest.approx(32, abs=1)
    assert with_all.cpu_s == pytest.approx(used_s, abs=0.1)


def test_a_process_that_has_ended_is_told_also_before_it_is_waited_for():
    child = subprocess.Popen([sys.executable, '-c', 'print(1)'], stdout=subprocess.PIPE)
    child.stdout.read()  # ends with it
    folder = PROC / str(child.pid)
    deadline = time.monotonic() + 20
    while '\nState:\tZ' not in (folder / 'status').read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert read_process(folder) is None
    child.communicate()
    assert read_process(folder) is None


def test_a_name_with_brackets_and_spaces_does_not_shift_the_numbers(tmp_path):
    fields = ' '.join(['R', *map(str, range(4, 14)), '300', '200', *map(str, range(16, 30))])
    (tmp_path / 'stat').write_text(f'77 (a) S (b) {fields}\n')
    (tmp_path / 'status').write_text('Name:\ta) S (b\nRssAnon:\t  2048 kB\nRssFile:\t1024 kB\n'
                                       'RssShmem:\t512 kB\nThreads:\t4\n')
    (tmp_path / 'fd').mkdir()
    state = read_process(tmp_path)
    assert (state.memory_mb, state.shared_mb, state.threads) == (3, 0.5, 4)
    assert state.file_descriptors == 0
    assert state.cpu_s == 500 / os.sysconf('SC_CLK_TCK')


def test_a_system_that_does_not_tell_is_refused(tmp_path, monkeypatch):
    check_system()
    monkeypatch.setattr(process_state, 'PROC', tmp_path / 'proc')
    with pytest.raises(ConfigError, match='proc: is not there, or does not tell enough; .*Linux'):
        check_system()
