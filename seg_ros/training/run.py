"""One training run, from the data to the model file."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

from seg_ros import __version__
from seg_ros.errors import DataError, TrainingError
from seg_ros.model_file import Model, ModelSpec, save_model
from seg_ros.training.batches import AugmentedData
from seg_ros.training.curves import draw_curves
from seg_ros.training.dataset import VALIDATION_SPLIT, DataFolder, join, open_data
from seg_ros.training.initial_weights import start_from
from seg_ros.training.loop import Trainer
from seg_ros.training.losses import class_weights
from seg_ros.training.measure import Measurements, measure
from seg_ros.training.memory import lack_of_memory_told
from seg_ros.training.processes import Group
from seg_ros.training.recipe import Recipe, to_mapping
from seg_ros.training.run_folder import LOGGER, RunFolder
from seg_ros.training.validation import validate
from seg_ros.training.versions import commit
from seg_ros.training.worst_pictures import draw_worst


@dataclass(frozen=True)
class RunData:
    """What a run learns from, and what it is scored on, if anything is left for that."""

    train: DataFolder
    validation: DataFolder | None


@dataclass(frozen=True)
class Computing:
    """How a run is computed.

    Device and workers change nothing of what is learnt but the rounding. More processes make the
    batch larger, and each computes its loss on its own part of it.

    :param device: auto, cpu, cuda, cuda:1, ...
    :param workers: threads that load pictures.
    :param group: the processes that train together.
    """

    device: str
    workers: int
    group: Group


def open_run_data(root: Path, recipe: Recipe) -> RunData:
    """Find the pictures of a recipe's splits.

    :raises DataError: one is missing or incomplete.
    """
    train = reduce(join, (open_data(root, split) for split in recipe.splits))
    if VALIDATION_SPLIT in recipe.splits:
        return RunData(train, None)
    return RunData(train, open_data(root, VALIDATION_SPLIT))


def make_trainer(recipe: Recipe, data: RunData, computing: Computing,
                 start: Model | None) -> Trainer:
    """Make ready to train.

    :param start: weights to start from.
    :raises ConfigError: this recipe cannot be trained on these data or this device.
    """
    labels = data.train.labels
    recipe.expect_classes(labels)
    device = computing.group.device(computing.device)
    measured = computing.group.share(lambda: _measure(data))
    spec = ModelSpec(recipe.architecture, dict(recipe.arguments), labels, measured.mean,
                     measured.std, measured.size)
    if start:  # the statistics that weights were trained with are part of them
        spec = replace(spec, mean=start.spec.mean, std=start.spec.std,
                       provenance={'start': dict(start.spec.provenance)})
    trainer = Trainer(recipe, spec, AugmentedData(data.train, recipe),
                      class_weights(measured.frequencies, recipe.class_balance), device,
                      computing.workers, computing.group)
    if start:
        told = start_from(start, labels, trainer.network, trainer.averaged)
        if computing.group.first:
            LOGGER.info(told)
    return trainer


def _measure(data: RunData) -> Measurements:
    """Measure the pictures trained on; read the others, too, lest one of them end the first epoch
    instead of the start.
    """
    measured = measure(data.train)
    if data.validation:
        for index in range(len(data.validation)):
            data.validation[index]
    return measured


def train_run(recipe: Recipe, data: RunData, out: Path, computing: Computing,
              start: Model | None = None, resume: bool = False) -> None:
    """Train to the recipe's last epoch, with a checkpoint and a line of metrics after each.

    Of several processes the first writes, and the others wait for it.

    :param start: weights to start from; a resumed run has its own.
    :raises ConfigError: the folder, recipe or device cannot be used.
    :raises TrainingError: it stopped underway, and can be resumed.
    """
    folder = RunFolder(out)
    with folder.open(resume) if computing.group.first else nullcontext():
        trainer = make_trainer(recipe, data, computing, start)
        changed = trainer.resume(folder.checkpoint) if resume else []
        if computing.group.first:
            folder.start_after(trainer.epoch)
            folder.write_recipe(recipe)
            folder.write_versions(str(trainer.device))
            LOGGER.info(f'the network trains on {trainer.device}, in {recipe.precision}')
            for change in changed:
                LOGGER.info(change)
        try:
            _train(trainer, data, folder)
        except DataError as error:  # a file changed underway
            then = 'go on with --resume' if folder.checkpoint.exists() else 'start again'
            raise TrainingError(f'{error}; then {then}') from error


def _train(trainer: Trainer, data: RunData, folder: RunFolder) -> None:
    group = trainer.group
    too_large = (f'the memory of {trainer.device} does not suffice for scoring the validation '
                 'pictures, which are labelled whole: make them smaller, their labels by nearest '
                 'neighbour, then go on with --resume')
    while trainer.epoch < trainer.recipe.epochs:
        line = {'epoch': trainer.epoch + 1, **trainer.train_epoch()}
        if group.first:
            with lack_of_memory_told(too_large):
                _end_epoch(trainer, data, folder, line)
        group.wait()
    if group.first:
        with lack_of_memory_told(too_large):
            _draw(trainer, data, folder)


def _end_epoch(trainer: Trainer, data: RunData, folder: RunFolder,
               line: dict[str, Any]) -> None:
    recipe, spec = trainer.recipe, trainer.spec
    if trainer.epoch == recipe.epochs or trainer.epoch % recipe.validate_every == 0:
        scores = validate(trainer.averaged, spec, data.validation, drawn=recipe.drawn_share > 0)
        line.update(scores)
        told = replace(spec, provenance={
            **spec.provenance, 'data': f'{data.train.root.resolve().name}, {data.train.split}',
            'epochs': trainer.epoch, 'recipe': to_mapping(recipe), 'version': __version__,
            'commit': commit(), 'validation': scores})
        with folder.writing(folder.last):
            save_model(folder.last, trainer.averaged, told)
    folder.add_epoch(line)
    with folder.writing(folder.checkpoint):
        trainer.save(folder.checkpoint)
    folder.keep_best()
    LOGGER.info(', '.join(f'{key} {value:.4g}' for key, value in line.items()
                          if isinstance(value, int | float)))


def _draw(trainer: Trainer, data: RunData, folder: RunFolder) -> None:
    with folder.writing(folder.curves):
        draw_curves(folder.lines(), folder.curves, trainer.spec.labels)
    if data.validation:
        with folder.writing(folder.worst_pictures):
            draw_worst(trainer.averaged, trainer.spec, data.validation, folder.worst_pictures)
    LOGGER.info(f'done: {folder.last}')
