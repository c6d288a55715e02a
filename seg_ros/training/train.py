"""seg_train: train a network on a folder of pictures and labels."""

import argparse
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import nn
from tqdm import tqdm

from seg_ros import __version__
from seg_ros.cli.edge import run
from seg_ros.errors import ConfigError, DataError, ModelFileError, TrainingError
from seg_ros.labels import CAMVID
from seg_ros.model_file import ModelSpec, save_model
from seg_ros.training.batches import AugmentedData
from seg_ros.training.dataset import DataFolder, open_data
from seg_ros.training.loop import Trainer, run_epochs
from seg_ros.training.losses import class_weights
from seg_ros.training.recipe import Recipe, load_recipe, to_mapping
from seg_ros.training.validation import validate

Rgb = tuple[float, float, float]


def main() -> int:
    return run(_train, _parser())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='seg_train', description=__doc__)
    parser.add_argument('recipe', type=Path, help='YAML file, e.g. config/train_camvid.yaml')
    parser.add_argument('--data', type=Path, required=True, help='folder of the data set')
    parser.add_argument('--out', type=Path, required=True, help='folder of the run, made anew')
    parser.add_argument('--resume', action='store_true', help='go on with the run in --out')
    parser.add_argument('--device', default='cpu', help='cpu (default), cuda, cuda:1, ...')
    parser.add_argument('--threads', type=int, default=0, help='CPU threads; 0: one per core')
    parser.add_argument('--workers', type=int, default=1, help='threads that load pictures')
    return parser


def _train(arguments: argparse.Namespace) -> int:
    if arguments.workers < 1 or arguments.threads < 0:
        raise ConfigError(f'--workers {arguments.workers} --threads {arguments.threads}: expected '
                          '1 or more workers, 0 or more threads')
    recipe = load_recipe(arguments.recipe)
    data = open_data(arguments.data, 'train')
    validation = open_data(arguments.data, 'val')
    if recipe.drawn_share and data.labels != CAMVID:
        raise ConfigError('drawn_share: drawn scenes have the CamVid classes, this data set has '
                          f'{", ".join(data.labels.names)}; set drawn_share to 0')
    if arguments.threads > 0:
        torch.set_num_threads(arguments.threads)
    _prepare_folder(arguments.out, arguments.resume)
    frequencies, mean, std = measure(data)
    spec = ModelSpec(recipe.architecture, dict(recipe.arguments), data.labels, mean, std,
                     _training_size(data))
    try:
        trainer = Trainer(recipe, spec, AugmentedData(data, recipe),
                          class_weights(frequencies, recipe.class_balance),
                          arguments.device, arguments.workers)
    except (RuntimeError, AssertionError) as error:  # torch: a device that it does not have
        reason = str(error).partition('\n')[0]  # torch adds its call stack
        raise ConfigError(f'--device {arguments.device}: {reason}; use cpu, or cuda where torch '
                          'finds a GPU') from error
    if arguments.resume:
        trainer.resume(arguments.out / 'last.pt')
    _cut_metrics(arguments.out / 'metrics.jsonl', trainer.epoch)
    (arguments.out / 'recipe.yaml').write_text(yaml.safe_dump(to_mapping(recipe)))
    try:
        run_epochs(trainer, arguments.out,
                   _Validation(recipe, spec, validation, arguments.out, trainer))
    except (DataError, ModelFileError) as error:  # a file that changed underway, a full disk
        begun = (arguments.out / 'last.pt').exists()
        raise TrainingError(f'{error}; then {"go on with --resume" if begun else "start again"}'
                            ) from error
    print(f'done: {arguments.out / "last.safetensors"}')
    return 0


class _Validation:
    """Score the averaged network and keep it as a model file with those scores in it."""

    def __init__(self, recipe: Recipe, spec: ModelSpec, data: DataFolder, out: Path,
                 trainer: Trainer) -> None:
        self.recipe, self.spec, self.data, self.out = recipe, spec, data, out
        self.trainer = trainer

    def __call__(self, network: nn.Module) -> dict[str, Any]:
        scores = validate(network, self.spec, self.data, drawn=self.recipe.drawn_share > 0)
        provenance = {'data': f'{self.data.root.resolve().name}, train split',
                      'epochs': self.trainer.epoch, 'recipe': to_mapping(self.recipe),
                      'version': __version__, 'commit': _commit(), 'validation': scores}
        save_model(self.out / 'last.safetensors', network, ModelSpec(
            self.spec.architecture, self.spec.arguments, self.spec.labels, self.spec.mean,
            self.spec.std, self.spec.training_size, provenance))
        return scores


def _commit() -> str | None:
    """Commit of the checkout that this code is part of; None for an installed package."""
    git = ['git', '-C', str(Path(__file__).parent)]
    try:
        for command in (['ls-files', '--error-unmatch', Path(__file__).name],
                        ['describe', '--always', '--abbrev=40', '--dirty', '--exclude=*']):
            found = subprocess.run([*git, *command], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def _prepare_folder(out: Path, resume: bool) -> None:
    begun = (out / 'last.pt').exists()
    if begun and not resume:
        raise ConfigError(f'{out.resolve()}: holds a run; go on with it by --resume or give '
                          'another --out')
    if resume and not begun:
        raise ConfigError(f'{(out / "last.pt").resolve()}: no checkpoint to resume from; check '
                          '--out, or start the run without --resume')
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f'{out.resolve()}: cannot be made: {error.strerror}; give another '
                          '--out') from error


def _cut_metrics(path: Path, epochs: int) -> None:
    """Drop lines of epochs that the checkpoint does not hold."""
    if path.exists():
        path.write_text(''.join(path.read_text().splitlines(keepends=True)[:epochs]))


def measure(data: DataFolder) -> tuple[np.ndarray, Rgb, Rgb]:
    """Read all pictures once.

    :return: share of each class among labelled pixels; mean and standard deviation of R, G, B.
    """
    counts = np.zeros(len(data.labels))
    sums, squares, pixels = np.zeros(3), np.zeros(3), 0
    for index in tqdm(range(len(data)), desc='measuring the data', unit='picture', leave=False):
        sample = data[index]
        counts += np.bincount(sample.target.reshape(-1), minlength=256)[:len(counts)]
        rgb = sample.rgb.reshape(-1, 3).astype(np.float64)
        sums += rgb.sum(axis=0)
        squares += (rgb ** 2).sum(axis=0)
        pixels += len(rgb)
    if not counts.any():
        raise DataError(f'{data.root.resolve()}: all pixels of its {data.split} split are void, '
                        'there is nothing to learn; check the ids in the label files')
    mean = sums / pixels
    std = np.sqrt(np.maximum(squares / pixels - mean ** 2, 1.0))
    return counts / max(counts.sum(), 1), _rounded(mean), _rounded(std)


def _rounded(rgb: np.ndarray) -> Rgb:
    red, green, blue = np.round(rgb, 2).tolist()
    return red, green, blue


def _training_size(data: DataFolder) -> tuple[int, int]:
    height, width = data[0].target.shape
    return height, width


if __name__ == '__main__':
    raise SystemExit(main())
