"""The check of a data set: everything that is wrong is found, and what it holds is told."""

import dataclasses
import math
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml

from seg_ros.errors import ConfigError, DataError
from seg_ros.model_file import load_model
from seg_ros.training.batches import AugmentedData
from seg_ros.training.data_check import check_data
from seg_ros.training.dataset import open_data
from seg_ros.training.recipe import load_recipe

CUSTOM_RECIPE = Path(__file__).parents[2] / 'config' / 'train_custom.yaml'


@pytest.fixture
def check(tmp_path, recipe, capsys):
    """Check a folder; give the number of problems and the lines that were printed."""
    def run(root: Path) -> tuple[int, list[str]]:
        count = check_data(root, recipe(), tmp_path / 'run')
        return count, capsys.readouterr().out.splitlines()
    return run


def row(lines: list[str], name: str) -> list[str]:
    """Cells of the table's line of a class."""
    line, = [line for line in lines if line.startswith(f'{name} ')]
    return line.split()[1:]


def below(lines: list[str], heading: str) -> list[str]:
    """The indented lines that follow the one line which starts with a heading."""
    start, = [i for i, line in enumerate(lines) if line.startswith(heading)]
    found = []
    for line in lines[start + 1:]:
        if not line.startswith('  '):
            break
        found.append(line.strip())
    return found


def test_sound_data_has_no_problem_and_a_table(camvid, check):
    count, lines = check(camvid)
    assert count == 0 and lines[-1] == '0 problems found'
    # Of 16 blocks the classes 0 to 3 have two, the others one, void one.
    often, seldom = 2 / 15, 1 / 15
    for name, share in (('Sky', often), ('Road', often), ('Pavement', seldom),
                        ('Bicyclist', seldom)):
        assert row(lines, name) == [f'{100 * share:.2f}', '5', f'{100 * share:.2f}', '2',
                                    f'{1 / math.sqrt(math.log(1.1 + share)):.3f}']
    assert row(lines, 'void') == ['6.25', '6.25']
    assert 'train: 64x64 (5)' in lines and 'val: 64x64 (2)' in lines
    assert not [line for line in lines if 'note' in line]


def test_weights_follow_the_class_balance_of_the_recipe(camvid, tmp_path, recipe, capsys):
    check_data(camvid, recipe(class_balance=1), tmp_path / 'run')
    cells = row(capsys.readouterr().out.splitlines(), 'Fence')
    assert cells[-1] == f'{1 / math.log(1.1 + 1 / 15):.3f}'


def test_weights_and_sheet_are_of_all_splits_that_are_trained_on(plain, tmp_path, recipe, capsys):
    for path in (plain / 'labels' / 'val').iterdir():
        cv2.imwrite(str(path), np.full((64, 64), 3, np.uint8))
    check_data(plain, recipe(splits=['val', 'train']), tmp_path)
    lines = capsys.readouterr().out.splitlines()
    # Of 2 x 4096 labelled pixels of val and 2 x 2048 of train, 2 x 1024 are wall.
    assert row(lines, 'wall') == ['0.00', '0', '50.00', '2',
                                  f'{1 / math.sqrt(math.log(1.1 + 1 / 6)):.3f}']
    assert f'4 augmented samples with their labels: {tmp_path / "contact_sheet.png"}' in lines


def test_every_problem_of_both_splits_is_listed(camvid, check):
    train, annot = camvid / 'train', camvid / 'trainannot'
    (annot / '000.png').unlink()                                        # 1
    (train / '001.png').write_bytes(b'no picture')                      # 2, 3: both of the pair
    (annot / '001.png').write_bytes(b'no labels')
    ids = np.full((48, 64), 12, np.uint8)                               # 4, 5: both of one file
    cv2.imwrite(str(annot / '002.png'), ids)
    shutil.copy(camvid / 'valannot' / '000.png', camvid / 'valannot' / '007.png')    # 6
    (camvid / 'val' / '001.png').unlink()                                            # 7
    count, lines = check(camvid)
    assert count == 7 and lines[-1] == ('7 problems found; correct the data before training on it')
    assert below(lines, 'train, pictures without labels') == [f'{annot / "000.png"}: missing']
    unread = below(lines, 'train, files that cannot be read: 2')
    assert unread[0].startswith(f'{train / "001.png"}: cannot be read as a picture')
    assert unread[1].startswith(f'{annot / "001.png"}: cannot be read as a PNG')
    assert below(lines, 'train, labels of another size')[0].startswith(
        f'{annot / "002.png"}: 64x48 pixels, its picture has 64x64')
    assert below(lines, 'train, labels with ids of no class')[0].startswith(
        f'{annot / "002.png"}: class ids [12] are neither')
    assert below(lines, 'val, labels without a picture') == [
        f'{camvid / "valannot" / name}: has no picture' for name in ('001.png', '007.png')]
    # What is left is counted: two pictures of train, one of val.
    assert row(lines, 'Sky')[1::2] == ['2', '1']


def test_cut_jpeg_is_told(plain, check):
    path = plain / 'images' / 'train' / 'b.JPG'
    path.write_bytes(path.read_bytes()[:-2])
    count, lines = check(plain)
    assert count == 1
    assert below(lines, 'train, files that cannot be read')[0].startswith(
        f'{path}: cannot be read as a picture (the JPEG is cut off: it has no end)')


def test_pictures_that_share_their_labels_are_told(plain, check):
    shutil.copy(plain / 'images' / 'train' / 'a.png', plain / 'images' / 'train' / 'a.bmp')
    count, lines = check(plain)
    assert count == 1
    assert below(lines, 'train, labels of several pictures') == [
        f'{plain / "labels" / "train" / "a.png"}: of a.bmp, a.png']


def test_folders_of_pictures_beside_others_are_told(plain, check):
    for folder in ('second_drive/left', '.thumbnails', 'notes'):
        (plain / 'images' / 'val' / folder).mkdir(parents=True)
    for folder in ('second_drive', 'second_drive/left', '.thumbnails'):
        shutil.copy(plain / 'images' / 'val' / 'a.png', plain / 'images' / 'val' / folder)
    count, lines = check(plain)
    assert count == 1
    assert below(lines, 'val, folders that are not read') == [
        f'{plain / "images" / "val" / "second_drive"}: pictures in it: 2']


def test_sheet_is_drawn_of_what_can_be_used(camvid, check, tmp_path):
    (camvid / 'train' / '000.png').write_bytes(b'no picture')
    _, lines = check(camvid)
    path = tmp_path / 'run' / 'contact_sheet.png'
    assert f'4 augmented samples with their labels: {path}' in lines
    assert cv2.imread(str(path)).shape[1] == 2 * 816 + 16


def test_sheet_shows_what_training_will_see(camvid, recipe, tmp_path):
    # Views of 400 pixels are drawn at their size.
    big = recipe(augmentation={'crop': [400, 400], 'scale': [5, 8]})
    check_data(camvid, big, tmp_path)
    sheet = cv2.imread(str(tmp_path / 'contact_sheet.png'))[..., ::-1]
    views = AugmentedData(open_data(camvid, 'train'), big)
    height = 400 + 24 + 16  # of a view, its caption and the gap below
    top = sheet.shape[0] - 3 * height
    for index in range(5):
        y, x = top + index // 2 * height, 16 + index % 2 * 816
        assert np.array_equal(sheet[y:y + 400, x:x + 400], views[0, index][0])


def test_only_the_first_problems_of_a_kind_are_shown(camvid, check):
    for i in range(20, 43):
        shutil.copy(camvid / 'train' / '000.png', camvid / 'train' / f'{i:03}.png')
    count, lines = check(camvid)
    shown = below(lines, 'train, pictures without labels')
    assert count == 23 and len(shown) == 21
    assert shown[0] == f'{camvid / "trainannot" / "020.png"}: missing'
    assert shown[19].endswith('039.png: missing') and shown[20] == '... and 3 more'


@pytest.mark.parametrize('empty', [True, False])
def test_split_that_is_empty_or_missing_does_not_hide_the_other(camvid, check, tmp_path, empty):
    for path in (camvid / 'train').iterdir():
        path.unlink()
    if not empty:
        (camvid / 'train').rmdir()
    (camvid / 'valannot' / '001.png').unlink()
    count, lines = check(camvid)
    said = 'holds no picture' if empty else 'has neither train/ with trainannot/'
    assert count == 2 and said in below(lines, 'splits that cannot be read')[0]
    assert below(lines, 'val, pictures without labels') == [
        f'{camvid / "valannot" / "001.png"}: missing']
    assert row(lines, 'Sky') == ['13.33', '1']
    assert not (tmp_path / 'run' / 'contact_sheet.png').exists()


def test_wrong_list_of_classes_is_one_problem(plain, check):
    (plain / 'classes.yaml').write_text('names: [a, a]\ncolors: [[0, 0, 0], [1, 1, 1]]\n')
    count, lines = check(plain)
    assert count == 1 and f'{plain / "classes.yaml"}: class names' in lines[1]


def test_folder_without_a_usable_pair_is_told(plain, check):
    for path in (plain / 'labels' / 'train').iterdir():
        path.write_bytes(b'')
    count, lines = check(plain)
    assert count == 2 and 'train: no pair that can be used' in lines
    assert row(lines, 'ground')[:2] == ['0.00', '0']


def test_split_of_void_alone_is_a_problem(plain, check):
    for path in (plain / 'labels' / 'val').iterdir():
        cv2.imwrite(str(path), np.full((64, 64), 9, np.uint8))
    count, lines = check(plain)
    assert count == 1 and 'all pixels of its val split are void' in below(
        lines, 'val, nothing is labelled')[0]
    assert row(lines, 'void') == ['50.00', '100.00']


def test_sizes_and_absent_classes_are_notes(plain, check):
    for kind, channels in (('images', 3), ('labels', 1)):
        array = np.full((48, 32, channels), 3, np.uint8)
        cv2.imwrite(str(plain / kind / 'val' / 'a.png'), array)
        cv2.imwrite(str(plain / kind / 'val' / f'b.{"JPG" if channels == 3 else "png"}'),
                    np.full((64, 64, channels), 3, np.uint8))
    count, lines = check(plain)
    assert count == 0
    assert 'val: note: pictures of several sizes: 32x48 (1), 64x64 (1)' in lines
    assert 'val: note: no pixel of wall' in lines


def test_drawn_scenes_beside_other_classes_are_a_problem(plain, tmp_path, recipe, capsys):
    assert check_data(plain, recipe(drawn_share=0.5), tmp_path / 'run') == 1
    assert 'the recipe does not fit: 1\n  drawn_share: ' in capsys.readouterr().out


def test_out_that_cannot_be_made_is_told(camvid, recipe, tmp_path):
    (tmp_path / 'file').touch()
    with pytest.raises(ConfigError, match='file/run: cannot be made: Not a directory; give anoth'):
        check_data(camvid, recipe(), tmp_path / 'file' / 'run')


def test_missing_data_makes_no_folder(recipe, tmp_path):
    with pytest.raises(DataError, match='none: no such folder; give the data set with --data'):
        check_data(tmp_path / 'none', recipe(), tmp_path / 'run')
    assert not (tmp_path / 'run').exists()


def test_custom_recipe_loads_and_fits_the_weights_that_ship():
    recipe, shipped = load_recipe(CUSTOM_RECIPE), load_model().spec
    assert recipe.architecture == shipped.architecture
    assert recipe == dataclasses.replace(recipe, arguments=shipped.arguments)
    assert recipe.drawn_share == 0  # drawn scenes have CamVid's classes alone


def test_custom_recipe_gives_an_example_of_classes_that_can_be_read(plain):
    lines = CUSTOM_RECIPE.read_text().splitlines()
    start, = [i for i, line in enumerate(lines) if 'DATA/classes.yaml' in line]
    example = '\n'.join(line[1:].strip() for line in lines[start + 1:start + 5])
    assert list(yaml.safe_load(example)) == ['names', 'colors', 'ids', 'void']
    (plain / 'classes.yaml').write_text(example)
    data = open_data(plain, 'train')
    assert data.labels.ids == (1, 2, 7) and data.void_ids == {0}
