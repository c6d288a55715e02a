"""What a process takes of the machine, as the kernel tells it."""

from pathlib import Path

from seg_ros.soak.process_state import ProcessState, read_process

GROWING = ('memory_mb', 'file_descriptors', 'threads')


def footprint(pid: int) -> ProcessState:
    """What a running process holds."""
    state = read_process(Path(f'/proc/{pid}'))
    assert state is not None, f'{pid} has ended'
    return state


def grown(before: ProcessState, after: ProcessState, flat_mb: float) -> dict[str, tuple]:
    """What was less before, with both values; up to ``flat_mb`` more of memory are no more."""
    pairs = {name: (getattr(before, name), getattr(after, name)) for name in GROWING}
    return {name: (old, new) for name, (old, new) in pairs.items()
            if new > old + (flat_mb if name == 'memory_mb' else 0)}


def waited_s(pid: int) -> float:
    """Seconds for which a process was ready to run while others had the processor.

    Of its main thread alone; also of one that has ended and was not waited for.
    """
    return int(Path(f'/proc/{pid}/schedstat').read_text().split()[1]) / 1e9
