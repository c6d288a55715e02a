"""Pictures as a camera would see them."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from seg_ros.drawn_scene import DrawnScene
from seg_ros.errors import ConfigError, ImageError
from seg_ros.picture_sources import (
    DrawnPictures,
    FolderPictures,
    LivePictures,
    VideoPictures,
    open_webcam,
)

FRAMES, RATE_HZ = 20, 10.0


def write_picture(path: Path, rgb: tuple[int, int, int], size: tuple[int, int] = (8, 6)) -> None:
    width, height = size
    assert cv2.imwrite(str(path), np.full((height, width, 3), rgb[::-1], np.uint8))


@pytest.fixture
def video(tmp_path: Path) -> Path:
    """Frame number n is grey of 10 * n."""
    path = tmp_path / 'grey.avi'
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*'MJPG'), RATE_HZ, (64, 48))
    for number in range(FRAMES):
        writer.write(np.full((48, 64, 3), 10 * number, np.uint8))
    writer.release()
    return path


def frame_number(rgb: np.ndarray) -> int:
    return round(float(rgb.mean()) / 10)


def test_drawn_pictures_show_the_scene_of_the_moment_with_its_ids() -> None:
    source = DrawnPictures(3, 96, 64)
    rgb, ids = DrawnScene(3, 96, 64).frame(1.5)
    picture = source.picture_at(1.5)
    assert np.array_equal(picture.rgb, rgb)
    assert picture.ids is not None and np.array_equal(picture.ids, ids)


def test_drawn_pictures_of_an_impossible_size_are_refused() -> None:
    with pytest.raises(ConfigError, match='width 8'):
        DrawnPictures(0, 8, 64)


def test_folder_is_shown_in_the_order_of_names_and_from_the_start_again(tmp_path: Path) -> None:
    write_picture(tmp_path / 'b.png', (0, 255, 0), (10, 4))
    write_picture(tmp_path / 'a.PNG', (255, 0, 0))
    write_picture(tmp_path / 'c.bmp', (0, 0, 255), (3, 9))
    (tmp_path / 'notes.txt').write_text('no picture')
    (tmp_path / 'd.png').mkdir()
    source = FolderPictures(tmp_path)
    shown = [source.picture_at(0.0).rgb for _ in range(4)]
    assert [picture.shape for picture in shown] == [(6, 8, 3), (4, 10, 3), (9, 3, 3), (6, 8, 3)]
    assert [tuple(picture[0, 0]) for picture in shown] == [
        (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 0, 0)]


def test_grey_and_transparent_pictures_become_rgb(tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / 'a.png'), np.full((4, 5), 77, np.uint8))
    cv2.imwrite(str(tmp_path / 'b.png'), np.full((4, 5, 4), (1, 2, 3, 0), np.uint8))
    source = FolderPictures(tmp_path)
    assert tuple(source.picture_at(0.0).rgb[0, 0]) == (77, 77, 77)
    assert tuple(source.picture_at(0.0).rgb[0, 0]) == (3, 2, 1)


def test_broken_picture_is_named_and_the_next_one_comes(tmp_path: Path) -> None:
    (tmp_path / 'a.png').write_bytes(b'\x89PNG no more')
    write_picture(tmp_path / 'b.png', (9, 9, 9))
    source = FolderPictures(tmp_path)
    with pytest.raises(ImageError, match=r'a\.png: cannot be read'):
        source.picture_at(0.0)
    assert tuple(source.picture_at(0.1).rgb[0, 0]) == (9, 9, 9)


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='nowhere: no such folder'):
        FolderPictures(tmp_path / 'nowhere')


def test_folder_without_pictures_is_refused(tmp_path: Path) -> None:
    (tmp_path / 'notes.txt').write_text('no picture')
    with pytest.raises(ConfigError, match='no pictures in this folder'):
        FolderPictures(tmp_path)


def test_folder_of_broken_pictures_only_is_refused(tmp_path: Path) -> None:
    for name in ('a.png', 'b.jpg'):
        (tmp_path / name).write_bytes(b'nothing')
    with pytest.raises(ConfigError, match='none of the 2 pictures'):
        FolderPictures(tmp_path)


def test_video_shows_the_frame_of_the_moment(video: Path) -> None:
    source = VideoPictures(video)
    times_s = (0.0, 0.05, 0.15, 0.95, 1.05)
    assert [frame_number(source.picture_at(t).rgb) for t in times_s] == [0, 0, 1, 9, 10]


def test_video_starts_again_after_its_end(video: Path) -> None:
    source = VideoPictures(video)
    times_s = (0.0, 1.95, 2.05, 2.15, 4.25)
    assert [frame_number(source.picture_at(t).rgb) for t in times_s] == [0, 19, 0, 1, 2]


def test_missing_video_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'no\.mp4: no such file'):
        VideoPictures(tmp_path / 'no.mp4')


def test_file_that_is_no_video_is_refused_without_other_noise(
        tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    (tmp_path / 'text.mp4').write_text('no video')
    with pytest.raises(ConfigError, match=r'text\.mp4: cannot be read as a video'):
        VideoPictures(tmp_path / 'text.mp4')
    assert capfd.readouterr().err == ''


def test_live_capture_gives_its_newest_picture_and_says_when_none_comes(video: Path) -> None:
    source = LivePictures(cv2.VideoCapture(str(video)), 'camera 7')
    shown = []
    with pytest.raises(ImageError, match='camera 7 gave no picture'):  # after the last frame
        while True:
            shown.append(frame_number(source.picture_at(0.0).rgb))
    source.close()
    assert shown[-1] == FRAMES - 1
    assert shown == sorted(set(shown))


def test_missing_webcam_is_refused() -> None:
    with pytest.raises(ConfigError, match='camera 60 cannot be opened'):
        open_webcam(60, 640, 480)
