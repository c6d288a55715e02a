"""seg_train: train a network on a folder of pictures and labels."""

import argparse
from pathlib import Path

import torch

from seg_ros.cli.edge import run
from seg_ros.errors import ConfigError
from seg_ros.model_file import Model, load_model
from seg_ros.training import processes
from seg_ros.training.data_check import check_data
from seg_ros.training.experiments import (
    leave_sequences_out,
    read_variants,
    run_experiments,
    write_table,
)
from seg_ros.training.profile import profile_training, table
from seg_ros.training.recipe import Recipe, load_recipe, with_changes
from seg_ros.training.run import Computing, make_trainer, open_run_data, train_run

FOLDS = 3


def main() -> int:
    return run(_train, _parser())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='seg_train', description=__doc__)
    parser.add_argument('recipe', type=Path, help='YAML file, e.g. config/train_camvid.yaml')
    parser.add_argument('--data', type=Path, required=True, help='folder of the data set')
    parser.add_argument('--out', type=Path, required=True, help='folder of the run, made anew')
    parser.add_argument('--resume', action='store_true', help='go on with the run in --out')
    parser.add_argument('--init', type=Path, metavar='FILE',
                        help='start from the weights of a model file, such as asymmetric_camvid; '
                             "those that do not fit the recipe's network or the classes of the "
                             'data begin anew')
    parser.add_argument('--epochs', type=int, metavar='N',
                        help="this many instead of the recipe's, such as for a trial")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument('--check', action='store_true',
                         help='do not train: look for faults in the data, show their classes, and '
                              'write OUT/contact_sheet.png')
    instead.add_argument('--profile', action='store_true',
                         help='do not train: measure where the time of a step goes')
    instead.add_argument('--folds', action='store_true',
                         help=f'train {FOLDS} times on train and val, leaving sequences out in '
                              'turn, and score each run on those; goes on where it stopped')
    instead.add_argument('--variants', type=Path, metavar='FILE',
                         help='train variants of the recipe and compare them, e.g. '
                              'config/study_class_terms.yaml; goes on where it stopped')
    parser.add_argument('--device', default='auto',
                        help='cpu, cuda, cuda:1, ... or auto (default): cuda where torch finds a '
                             'GPU, else cpu; under torchrun each process takes a GPU of its own')
    parser.add_argument('--threads', type=int, default=0, help='CPU threads; 0: one per core')
    parser.add_argument('--workers', type=int, default=1, help='threads that load pictures')
    return parser


def _train(arguments: argparse.Namespace) -> int:
    if arguments.workers < 1 or arguments.threads < 0:
        raise ConfigError(f'--workers {arguments.workers} --threads {arguments.threads}: expected '
                          '1 or more workers, 0 or more threads')
    _refuse_together(arguments, 'resume', ('init', 'check', 'profile', 'folds', 'variants'))
    _refuse_together(arguments, 'check', ('init',))
    if arguments.threads > 0:
        torch.set_num_threads(arguments.threads)
    with processes.group() as group:
        recipe = load_recipe(arguments.recipe)
        if arguments.epochs is not None:
            recipe = with_changes(recipe, {'epochs': arguments.epochs}, '--epochs')
        if arguments.check:
            return 1 if group.first and check_data(arguments.data, recipe, arguments.out) else 0
        computing = Computing(arguments.device, arguments.workers, group)
        start = load_model(arguments.init) if arguments.init else None
        if arguments.folds or arguments.variants:
            return _compare(arguments, recipe, computing, start)
        data = open_run_data(arguments.data, recipe)
        if arguments.profile:
            trainer = make_trainer(recipe, data, computing, start)
            profile = profile_training(trainer)
            if group.first:
                print(table(profile))
            return 0
        train_run(recipe, data, arguments.out, computing, start, arguments.resume)
    return 0


def _refuse_together(arguments: argparse.Namespace, name: str, others: tuple[str, ...]) -> None:
    for other in others:
        if getattr(arguments, name) and getattr(arguments, other):
            raise ConfigError(f'--{name} with --{other}: they do not go together; leave one out')


def _compare(arguments: argparse.Namespace, recipe: Recipe, computing: Computing,
             start: Model | None) -> int:
    if arguments.variants:
        experiments = read_variants(arguments.variants, recipe, arguments.data)
    else:
        experiments = leave_sequences_out(recipe, arguments.data, FOLDS)
    results = run_experiments(experiments, arguments.out, computing, start)
    if computing.group.first:
        print(write_table(experiments, results, arguments.out))
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
