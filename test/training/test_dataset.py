"""Data sets on disk: all layouts, and what is wrong with them is told."""

import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml

from seg_ros.errors import DataError
from seg_ros.labels import CAMVID, LabelSet
from seg_ros.training.dataset import DataFolder, join, open_data, read_rgb, sequence_of


def color_of(ids):
    return np.stack([20 * ids + 10, 255 - 20 * ids, 7 * ids], axis=-1).astype(np.uint8)


def fault(path: Path, *said: str) -> None:
    """Opening and reading all of a folder's training split names this file and says this."""
    root = path
    while not (root / 'train').is_dir() and not (root / 'images').is_dir():
        root = root.parent
    with pytest.raises(DataError) as caught:
        data = open_data(root, 'train')
        for index in range(len(data)):
            data[index]
    for words in (str(path.resolve()), *said):
        assert words in str(caught.value)


def test_camvid_layout_is_read_in_the_order_of_names(camvid):
    data = open_data(camvid, 'train')
    assert len(data) == 5 and len(open_data(camvid, 'val')) == 2
    assert data.labels == CAMVID
    assert [p.name for p, _ in data.pairs] == ['000.png', '001.png', '002.png', '003.png',
                                               '004.png']
    ids = cv2.imread(str(camvid / 'trainannot' / '003.png'), cv2.IMREAD_UNCHANGED)
    sample = data[3]
    assert np.array_equal(sample.rgb, color_of(ids))  # R, G, B in this order
    assert 11 in ids  # void
    assert np.array_equal(sample.target, np.where(ids == 11, 255, ids))
    assert sample.rgb.dtype == sample.target.dtype == np.uint8


def test_plain_layout_maps_ids_to_the_order_of_classes(plain):
    data = open_data(plain, 'train')
    assert data.labels == LabelSet(('ground', 'wall'), ((1, 2, 3), (4, 5, 6)), (3, 200))
    assert [p.name for p, _ in data.pairs] == ['a.png', 'b.JPG']
    corners = data[0].target[::63, ::63]
    assert corners.tolist() == [[0, 1], [255, 255]]


def test_plain_layout_needs_neither_ids_nor_void(plain):
    (plain / 'classes.yaml').write_text('names: [a, b]\ncolors: [[0, 0, 0], [1, 1, 1]]\n')
    for path in (plain / 'labels' / 'train').iterdir():
        cv2.imwrite(str(path), np.tile(np.uint8([[0], [1], [255]]), (22, 64))[:64])
    assert open_data(plain, 'train')[1].target[:3, 0].tolist() == [0, 1, 255]


def test_hidden_files_are_no_pictures(camvid):
    (camvid / 'train' / '._003.png').write_bytes(b'left by another system')
    assert len(open_data(camvid, 'train')) == 5


def test_label_file_may_end_in_capitals(camvid):
    path = camvid / 'trainannot' / '002.png'
    path.rename(path.with_suffix('.PNG'))
    assert open_data(camvid, 'train').pairs[2][1] == path.with_suffix('.PNG')


@pytest.mark.parametrize(('name', 'sequence'), [
    ('0001TP_006690.png', '0001TP'), ('0016E5_08640.png', '0016E5'),
    ('aachen_000000_000019_leftImg8bit.png', 'aachen'), ('frame17.jpg', 'frame17'),
    ('a.b_1.png', 'a.b'), ('_1.png', '_1')])
def test_sequence_is_named_before_the_first_underscore(name, sequence):
    assert sequence_of(Path('some_folder', name)) == sequence


def test_splits_are_joined_and_parted_by_picture(camvid):
    train, val = open_data(camvid, 'train'), open_data(camvid, 'val')
    both = join(train, val)
    assert both.split == 'train + val' and both.pairs == train.pairs + val.pairs
    fold = both.only(lambda picture: picture.stem in ('001', '004'), 'fold 1')
    assert fold.split == 'fold 1' and fold.labels == CAMVID
    assert [picture.relative_to(camvid).as_posix() for picture, _ in fold.pairs] == [
        'train/001.png', 'train/004.png', 'val/001.png']
    assert np.array_equal(fold[2].target, val[1].target)


def test_choice_of_no_picture_is_refused(camvid):
    with pytest.raises(DataError, match='fold 2 holds none of the 5 pictures of train'):
        open_data(camvid, 'train').only(lambda picture: False, 'fold 2')


def test_255_classes_can_all_be_told_apart(tmp_path):
    labels = LabelSet(tuple(f'c{i}' for i in range(255)), ((0, 0, 0),) * 255)
    ids = np.arange(256, dtype=np.uint8).reshape(16, 16)
    cv2.imwrite(str(tmp_path / 'p.png'), color_of(ids % 12))
    cv2.imwrite(str(tmp_path / 'l.png'), ids)
    data = DataFolder(tmp_path, 'train', ((tmp_path / 'p.png', tmp_path / 'l.png'),), labels,
                      frozenset())
    assert np.array_equal(data[0].target, ids)


def test_grey_pictures_are_read_as_rgb(tmp_path):
    grey = np.arange(64, dtype=np.uint8).reshape(8, 8)
    cv2.imwrite(str(tmp_path / 'grey.png'), grey)
    assert np.array_equal(read_rgb(tmp_path / 'grey.png'), np.dstack([grey] * 3))


def test_missing_folder_is_told(tmp_path):
    for path in (tmp_path / 'none', tmp_path / 'file'):
        (tmp_path / 'file').touch()
        with pytest.raises(DataError, match='no such folder; give the data set with --data'):
            open_data(path, 'train')


def test_folder_of_no_layout_is_told_all(tmp_path, camvid):
    for root, split in ((tmp_path, 'train'), (camvid, 'test')):
        with pytest.raises(DataError, match=rf'{split}annot/ .*CamVid.* leftImg8bit/{split}/ .*'
                                            rf'Cityscapes.* nor images/{split}/ .*plain'):
            open_data(root, split)


@pytest.mark.parametrize('part', ['images', 'labels'])
def test_missing_split_of_the_plain_layout_is_named(plain, part):
    (plain / part / 'train').rename(plain / part / 'other')
    with pytest.raises(DataError, match=rf'{part}/train: no such folder; check'):
        open_data(plain, 'train')


def test_folder_without_pictures_is_named(camvid):
    for path in (camvid / 'train').iterdir():
        path.unlink()
    fault(camvid / 'train', 'holds no picture')


def test_picture_without_labels_is_named(camvid):
    (camvid / 'trainannot' / '002.png').unlink()
    fault(camvid / 'trainannot' / '002.png', 'missing (of 5 label files 1 are)')


@pytest.mark.parametrize('damage', [b'', b'no picture', b'\x89PNG\r\n\x1a\n'])
def test_damaged_picture_is_named(camvid, damage):
    path = camvid / 'train' / '001.png'
    path.write_bytes(damage)
    fault(path, 'cannot be read as a picture (', '); restore or remove it')


def test_jpeg_without_its_end_is_not_filled_with_grey(plain):
    path = plain / 'images' / 'train' / 'b.JPG'
    data = path.read_bytes()
    for length in (len(data) - 1, len(data) * 2 // 3):
        path.write_bytes(data[:length])
        with pytest.raises(DataError, match=f'{path}: cannot be read .*the JPEG is cut off'):
            open_data(plain, 'train')[1]


@pytest.mark.parametrize('suffix', ['bmp', 'tif', 'webp', 'ppm'])
def test_other_formats_are_read_and_cut_ones_named(tmp_path, suffix):
    path = tmp_path / f'p.{suffix}'
    bgr = color_of(np.arange(64).reshape(8, 8) % 12).repeat(8, axis=0).repeat(8, axis=1)
    cv2.imwrite(str(path), bgr)
    assert np.array_equal(read_rgb(path), cv2.imread(str(path))[..., ::-1])
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=f'p.{suffix}: cannot be read as a picture .*; restore'):
        read_rgb(path)


def test_picture_that_vanished_is_named(camvid):
    data = open_data(camvid, 'train')
    for index, folder in ((1, 'train'), (2, 'trainannot')):
        path = camvid / folder / f'00{index}.png'
        path.unlink()
        with pytest.raises(DataError, match=f'{path}: no such file; restore it'):
            data[index]
        path.mkdir()
        with pytest.raises(DataError, match=f'{path}: cannot be read: Is a directory'):
            data[index]


def test_data_that_vanished_is_told_with_what_is_left(camvid):
    data = open_data(camvid, 'train')
    for gone, left in ((camvid / 'trainannot', camvid), (camvid, camvid.parent)):
        gone.rename(gone.with_name('away'))
        with pytest.raises(DataError) as caught:
            data[0]
        assert f'000.png: its folder is gone, of the way to it {left} is left; bring it back' in (
            str(caught.value))
        gone.with_name('away').rename(gone)


def test_picture_that_claims_a_huge_size_is_named(camvid):
    path = camvid / 'train' / '001.png'
    data = bytearray(path.read_bytes())
    data[16:24] = struct.pack('>II', 90_000, 90_000)
    data[29:33] = struct.pack('>I', zlib.crc32(data[12:29]))
    path.write_bytes(data)
    fault(path, 'cannot be read as a picture')


def test_damaged_labels_are_named(camvid):
    path = camvid / 'trainannot' / '001.png'
    path.write_bytes(path.read_bytes()[:30])
    fault(path, 'cannot be read, the file is damaged; restore it')


def test_labels_of_another_size_are_told_beside_the_picture(camvid):
    path = camvid / 'trainannot' / '001.png'
    cv2.imwrite(str(path), np.zeros((48, 32), np.uint8))
    fault(path, '32x48 pixels, its picture has 64x64')


def test_ids_of_no_class_are_listed(camvid):
    path = camvid / 'trainannot' / '001.png'
    ids = np.zeros((64, 64), np.uint8)
    ids[3, 4], ids[9, 9], ids[0, 0] = 12, 254, 11
    cv2.imwrite(str(path), ids)
    fault(path, 'class ids [12, 254] are neither a class', 'nor void ([11, 255])')


@pytest.mark.parametrize(('change', 'said'), [
    (None, 'No such file or directory; the plain layout needs it'),
    ('names: [a, b', 'expected'), ('', 'expected a mapping'), ('[a, b]', 'expected a mapping'),
    ({'colors': None}, 'expected lists'), ({'names': ['a', 'a']}, 'occur once'),
    ({'ids': [3, 300]}, 'class id 300'), ({'void': 9}, 'void 9: expected a list of ids, 0 to 255'),
    ({'void': ['9']}, 'expected a list of ids'), ({'void': [-1]}, 'expected a list of ids'),
    ({'void': [256]}, 'expected a list of ids'), ({'void': [3, 9]}, '[3] are ids of classes too'),
    ({'names': ['a', '2024-13-99']}, None), ('names: [2024-13-99]', 'month'),
])
def test_list_of_classes_with_a_fault_is_named(plain, change, said):
    path = plain / 'classes.yaml'
    if change is None:
        path.unlink()
    elif isinstance(change, str):
        path.write_text(change)
    else:
        path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **change}))
    if said is None:
        open_data(plain, 'train')
    else:
        fault(path, said)


def test_list_of_classes_that_is_no_text_is_named(plain):
    (plain / 'classes.yaml').write_bytes(b'\xff\xfe\x00')
    fault(plain / 'classes.yaml')
