"""Training in several processes, on one machine or more, as torchrun starts them.

torchrun tells each process its number by the environment; without that a process is alone.
Processes meet through gloo on CPUs and through NCCL on GPUs, one GPU a process.
"""

import atexit
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from seg_ros.errors import ConfigError, SegRosError, TrainingError

VARIABLES = ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')
PATIENCE = timedelta(hours=6)
"""How long processes wait for one that is alive, e.g. while it validates on many pictures."""

T = TypeVar('T')


@dataclass(frozen=True)
class Group:
    """The processes that train one network together, as one of them sees them.

    :param rank: number of this process, from 0.
    :param size: how many there are.
    """

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files, validates and speaks to the user."""
        return self.rank == 0

    def device(self, name: str) -> torch.device:
        """Device of this process: for ``cuda`` the GPU of its number on its machine.

        :param name: cpu, cuda, cuda:1, ... or auto: cuda where torch finds a GPU, else cpu.
        :raises ConfigError: torch has no such device, or too few for the processes.
        """
        try:
            device = torch.device(name if name != 'auto' else
                                  'cuda' if torch.cuda.is_available() else 'cpu')
            if self.size > 1 and device.type == 'cuda':
                device = _gpu_of_process(device)
            torch.empty(0, device=device)
            if device.type == 'cuda':
                torch.cuda.set_device(device)  # where NCCL computes, too
        except (RuntimeError, AssertionError) as error:  # AssertionError: torch without CUDA
            reason = str(error).partition('\n')[0]  # torch adds its call stack
            raise ConfigError(f'--device {name}: {reason}; use cpu, or cuda where torch finds a '
                              'GPU') from error
        return device

    def parallel(self, network: nn.Module) -> nn.Module:
        """The network such that its gradients are the mean over all processes; alone, itself.

        Its weights and statistics become those of the first process.
        What this returns has to live as long as gradients are to be averaged, and no longer.
        """
        if self.size == 1:
            return network
        return DistributedDataParallel(network)

    def mean(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Mean over all processes of tensors of the same shapes, floats on the same device."""
        if self.size == 1:
            return [*tensors]
        flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        dist.all_reduce(flat)
        parts = (flat / self.size).split([tensor.numel() for tensor in tensors])
        return [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]

    def share(self, compute: Callable[[], T]) -> T:
        """What the first process computes, given to all; it is to be picklable."""
        values = [compute() if self.first else None]
        if self.size > 1:
            dist.broadcast_object_list(values, src=0, device=torch.device('cpu'))
        return values[0]  # type: ignore[return-value]

    def wait(self) -> None:
        """Go on when all processes have come here."""
        if self.size > 1:
            dist.all_reduce(torch.zeros(1))  # on the CPU, where waiting costs nothing


ALONE = Group()
"""The one process of a run without torchrun."""


def _gpu_of_process(device: torch.device) -> torch.device:
    local, beside = (int(os.environ[name]) for name in ('LOCAL_RANK', 'LOCAL_WORLD_SIZE'))
    if device.index is not None and beside > 1:
        raise ConfigError(f'--device {device}: each of the {beside} processes takes a GPU of its '
                          'own; give --device cuda')
    if device.index is None:
        found = torch.cuda.device_count()
        if 0 < found < beside:
            raise ConfigError(f'--device cuda: torch finds {found} GPU for {beside} processes; '
                              f'start torchrun with --nproc-per-node {found}, or give --device '
                              'cpu')
        device = torch.device('cuda', local)
    return device


@contextmanager
def group() -> Iterator[Group]:
    """Join the processes that torchrun started, until the block ends; alone without torchrun.

    Where an error ends the block in one process, the others end too, and only the first to fail
    lets its error through: the user sees one message. That of Ctrl-C comes from process 0.

    :raises TrainingError: a process was killed or its machine was lost, with a word on resuming.
    """
    if any(name not in os.environ for name in VARIABLES):
        yield ALONE
        return
    if not dist.is_available():
        raise ConfigError('this build of torch trains in one process only; start seg_train '
                          'without torchrun')
    # Some of its functions keep the group that there is when they are imported: with its threads
    # alive, Python would now and then abort at the very end.
    importlib.import_module('torch.distributed.nn')
    store, rank, size = next(iter(dist.rendezvous('env://')))
    backend = 'cpu:gloo,cuda:nccl' if torch.cuda.is_available() else 'gloo'
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)
    joined = Group(rank, size)
    try:
        yield joined
        joined.wait()
    except BaseException as error:
        last_word = _last_word(error, rank, store)
        if last_word is error:
            raise
        raise last_word from error
    dist.destroy_process_group()


def _last_word(error: BaseException, rank: int, store: 'dist.Store') -> BaseException:
    """What ends this process: the error, or silence where another process speaks."""
    code = error.exit_code if isinstance(error, SegRosError) else 1
    try:
        speaks = store.add('failed processes', 1) == 1
    except RuntimeError:  # torchrun is gone, and with it what the processes share
        speaks = rank == 0
    if isinstance(error, KeyboardInterrupt):  # which all processes get at once
        speaks, code = rank == 0, 130
    elif not speaks:
        time.sleep(10)  # torchrun ends all when one ends, and the one that speaks is to be first
    atexit.register(_leave, code)
    if not speaks:
        return SystemExit(code)
    if isinstance(error, dist.DistError) or (
            isinstance(error, RuntimeError) and 'gloo' in str(error)):
        error = TrainingError(
            'another process of the run was lost without a word, as one is that the system ends '
            'for lack of memory; see to its machine, then go on with --resume')
    _tell_torchrun(str(error))
    if rank:
        print(file=sys.stderr)  # what will be said is not to stand behind a bar of the first
    return error


def _tell_torchrun(message: str) -> None:
    """Have torchrun's own report, which comes last, say why."""
    path = os.environ.get('TORCHELASTIC_ERROR_FILE')
    with suppress(OSError):
        if path:
            Path(path).write_text(json.dumps({'message': {
                'message': message, 'extraInfo': {'timestamp': str(int(time.time()))}}}))


def _leave(code: int) -> None:
    """End now: a gradient on its way to processes that have failed would hold this one back."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
