"""Where the time of a training step goes."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

import torch

from seg_ros.training.batches import deal
from seg_ros.training.loop import Trainer
from seg_ros.training.versions import cores, processor

WARM_UP_STEPS = 3
STAGES = {'data': 'waiting for data', 'forward': 'forward', 'loss': 'loss',
          'backward': 'backward', 'update': 'optimiser, averaging'}


@dataclass(frozen=True)
class Profile:
    """Times of the steps of one process.

    :param stages: median seconds of each of ``STAGES``.
    :param step: median seconds of a whole step.
    :param waiting_share: part of all the time, 0..1, in which the step waited for its data.
    :param loading: seconds of one core that loading the data of a step takes, beside the step.
    :param cores: that this process may use.
    :param setting: what it ran on and with.
    """

    stages: Mapping[str, float]
    step: float
    waiting_share: float
    loading: float
    cores: int
    setting: Mapping[str, str]


class Stopwatch:
    """Seconds of each stage of each step, by being told when a stage has ended."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.steps: list[dict[str, float]] = []
        self.start()

    def start(self) -> None:
        """Begin an epoch."""
        self.last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """Note that a stage has ended, the first of which begins a step."""
        if self.device.type == 'cuda':
            torch.cuda.synchronize(self.device)  # or the stage would have been begun only
        now = time.perf_counter()
        if stage == next(iter(STAGES)):
            self.steps.append({})
        self.steps[-1][stage] = now - self.last
        self.last = now


def profile_training(trainer: Trainer, steps: int = 20) -> Profile:
    """Time training steps, after some to warm up.

    The steps are real ones: the trainer is worth nothing afterwards. Nothing is written.

    :param steps: how many to time; they run on into further epochs where one has fewer.
    """
    watch = Stopwatch(trainer.device)
    while (left := WARM_UP_STEPS + steps - len(watch.steps)) > 0:
        watch.start()
        trainer.train_epoch(watch.lap, min(left, trainer.steps_per_epoch))
    timed = watch.steps[WARM_UP_STEPS:]
    wholes = [sum(step.values()) for step in timed]
    waiting = sum(step['data'] for step in timed)
    return Profile({stage: median(step[stage] for step in timed) for stage in STAGES},
                   median(wholes), waiting / sum(wholes), _loading(trainer), cores(),
                   _setting(trainer))


def _loading(trainer: Trainer) -> float:
    """Processor time, of OpenCV's own threads too, that the data of some steps take, a step."""
    batches = deal(trainer.dataset, trainer.epoch, trainer.group.rank, trainer.group.size)[:3]
    began = time.process_time()
    for indices in batches:
        for index in indices:
            trainer.dataset[trainer.epoch, index]
    return (time.process_time() - began) / len(batches)


def _setting(trainer: Trainer) -> dict[str, str]:
    device = trainer.device
    recipe = trainer.recipe
    height, width = recipe.augmentation.crop
    setting = {'processor': f'{processor()}, {cores()} cores', 'torch': torch.__version__,
               'threads': f'{torch.get_num_threads()} compute, {trainer.workers} load',
               'processes': str(trainer.group.size), 'network': recipe.architecture,
               'batch': str(recipe.batch), 'crop': f'{width}x{height}',
               'precision': recipe.precision}
    if device.type == 'cuda':
        setting['GPU'] = torch.cuda.get_device_name(device)
    return setting


def table(profile: Profile) -> str:
    """The profile as lines of text."""
    rows = [(STAGES[stage], seconds) for stage, seconds in profile.stages.items()]
    lines = [f'{"stage":<22}{"p50 ms":>9}']
    lines += [f'{name:<22}{1000 * seconds:>9.1f}' for name, seconds in rows]
    lines += [f'{"whole step":<22}{1000 * profile.step:>9.1f}', '',
              f'Waiting for data is {100 * profile.waiting_share:.1f} % of the time of all steps.',
              f'Loading takes {1000 * profile.loading:.1f} ms of processor time a step, '
              f'{100 * profile.loading / (profile.cores * profile.step):.1f} % of what '
              f'{profile.cores} cores have in that time.', '']
    lines += [f'{name:<22}{value}' for name, value in profile.setting.items()]
    return '\n'.join(lines)
