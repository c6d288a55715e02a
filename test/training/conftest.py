"""Tiny data sets and recipes: a network of 15 000 weights on pictures of 64x64 pixels."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
import yaml

from seg_ros.training.recipe import Recipe, load_recipe

torch.set_num_threads(1)  # also makes results the same to the last bit

TINY_RECIPE = {
    'arguments': {'widths': [5, 16, 40], 'dilations2': [2], 'dilations3': [3], 'pyramid': 8},
    'epochs': 4, 'batch': 2, 'warmup_steps': 2, 'ema': 0.9, 'validate_every': 2, 'seed': 3,
    'augmentation': {'crop': [64, 64], 'scale': [0.75, 1.5]}}


def color_of(ids: np.ndarray) -> np.ndarray:
    """A colour that tells each id, as (..., 3) uint8 RGB."""
    return np.stack([20 * ids + 10, 255 - 20 * ids, 7 * ids], axis=-1).astype(np.uint8)


def write_pair(picture: Path, annotation: Path, ids: np.ndarray) -> None:
    for path in (picture, annotation):
        path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(picture), color_of(ids)[..., ::-1])
    cv2.imwrite(str(annotation), ids)


def blocks(seed: int) -> np.ndarray:
    """(64, 64) uint8 in blocks of 16 pixels: each of the ids 0..11 at least once."""
    ids = np.random.default_rng(seed).permutation([*range(12), 0, 1, 2, 3])
    return ids.reshape(4, 4).astype(np.uint8).repeat(16, axis=0).repeat(16, axis=1)


@pytest.fixture
def camvid(tmp_path) -> Path:
    """A folder in CamVid's layout: five pictures to train on, two to validate on."""
    root = tmp_path / 'camvid'
    for split, count in (('train', 5), ('val', 2)):
        for i in range(count):
            write_pair(root / split / f'{i:03}.png', root / f'{split}annot' / f'{i:03}.png',
                       blocks(100 * count + i))
    return root


@pytest.fixture
def plain(tmp_path) -> Path:
    """A folder in the plain layout: ids 3 and 200 are classes, 9 is void, 255 always is."""
    root = tmp_path / 'plain'
    ids = np.array([[3, 200], [9, 255]], np.uint8).repeat(32, axis=0).repeat(32, axis=1)
    for split in ('train', 'val'):
        for name in ('b.JPG', 'a.png'):
            write_pair(root / 'images' / split / name,
                       root / 'labels' / split / f'{name[0]}.png', ids)
        (root / 'images' / split / 'notes.txt').write_text('no picture')
    (root / 'classes.yaml').write_text(yaml.safe_dump({
        'names': ['ground', 'wall'], 'colors': [[1, 2, 3], [4, 5, 6]], 'ids': [3, 200],
        'void': [9]}))
    return root


@pytest.fixture
def recipe_file(tmp_path):
    """Write a tiny recipe with some values changed; give its path."""
    def write(**changed: object) -> Path:
        path = tmp_path / 'recipe.yaml'
        path.write_text(yaml.safe_dump({**TINY_RECIPE, **changed}))
        return path
    return write


@pytest.fixture
def recipe(recipe_file):
    """Make a tiny recipe with some values changed."""
    def make(**changed: object) -> Recipe:
        return load_recipe(recipe_file(**changed))
    return make
