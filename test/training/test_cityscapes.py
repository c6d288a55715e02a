"""Data sets in the folders of Cityscapes."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from seg_ros.errors import DataError
from seg_ros.labels import CITYSCAPES
from seg_ros.training.dataset import open_data


@pytest.fixture
def cityscapes(tmp_path) -> Path:
    """Cityscapes' folders: two cities of two pictures, with label files of each kind."""
    root = tmp_path / 'cityscapes'
    ids = np.uint8([[0, 18], [7, 255]]).repeat(8, axis=0).repeat(8, axis=1)
    for name in ('ulm_000001_000019', 'aachen_000002_000019', 'aachen_000001_000019',
                 'ulm_000000_000019'):
        folder = Path('train', name.partition('_')[0])
        for path, array in ((root / 'leftImg8bit' / folder / f'{name}_leftImg8bit.png',
                             np.dstack([ids] * 3)),
                            (root / 'gtFine' / folder / f'{name}_gtFine_labelTrainIds.png', ids),
                            (root / 'gtFine' / folder / f'{name}_gtFine_labelIds.png', ids + 7)):
            path.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(path), array)
    return root


def test_cityscapes_layout_is_read_city_by_city(cityscapes):
    data = open_data(cityscapes, 'train')
    assert data.labels == CITYSCAPES and len(CITYSCAPES) == 19
    assert [(picture.relative_to(cityscapes / 'leftImg8bit'),
             labels.relative_to(cityscapes / 'gtFine')) for picture, labels in data.pairs] == [
        (Path(f'train/{city}/{city}_{number}_000019_leftImg8bit.png'),
         Path(f'train/{city}/{city}_{number}_000019_gtFine_labelTrainIds.png'))
        for city, number in (('aachen', '000001'), ('aachen', '000002'), ('ulm', '000000'),
                             ('ulm', '000001'))]
    assert data[2].target[::15, ::15].tolist() == [[0, 18], [7, 255]]


def test_cityscapes_classes_have_their_official_ids_and_colours():
    known = dict(zip(CITYSCAPES.names, zip(CITYSCAPES.ids, CITYSCAPES.colors, strict=True),
                     strict=True))
    assert known['road'] == (0, (128, 64, 128)) and known['bicycle'] == (18, (119, 11, 32))
    assert known['traffic sign'] == (7, (220, 220, 0)) and known['person'] == (11, (220, 20, 60))
    assert known['car'] == (13, (0, 0, 142)) and known['train'] == (16, (0, 80, 100))


def test_cityscapes_without_train_ids_is_told_how_to_make_them(cityscapes):
    for path in (cityscapes / 'gtFine').rglob('*labelTrainIds.png'):
        path.unlink()
    with pytest.raises(DataError, match='aachen_000001_000019_gtFine_labelTrainIds.png: missing '
                       r'\(of 4 label files 4 are\); .*not labelIds; .*cityscapesscripts, then '
                       f'CITYSCAPES_DATASET={cityscapes} csCreateTrainIdLabelImgs'):
        open_data(cityscapes, 'train')


def test_empty_or_missing_split_of_cityscapes_is_named(cityscapes):
    with pytest.raises(DataError, match='leftImg8bit/val: no such folder'):
        open_data(cityscapes, 'val')
    for kind in ('leftImg8bit', 'gtFine'):
        (cityscapes / kind / 'val').mkdir()
    with pytest.raises(DataError, match='leftImg8bit/val: holds no picture'):
        open_data(cityscapes, 'val')
