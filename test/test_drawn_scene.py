"""The drawn scene: pictures, exact labels, motion, sizes, refusals."""

import time

import cv2
import numpy as np
import pytest

from seg_ros.drawn_scene import DrawnScene
from seg_ros.drawn_scene.camera import NEAR_M, View, clip_near
from seg_ros.errors import ConfigError
from seg_ros.labels import CAMVID

SKY, BUILDING, POLE, ROAD, PAVEMENT, TREE, SIGN, FENCE, CAR, PEDESTRIAN, BICYCLIST = range(11)


@pytest.fixture(scope='module')
def frames() -> list[tuple[np.ndarray, np.ndarray]]:
    """Moments of ten streets, at 640x480."""
    return [scene.frame(moment) for scene in map(DrawnScene, range(10)) for moment in (0.0, 7.0)]


def test_same_seed_and_time_give_the_same_arrays():
    first, again = DrawnScene(5, 160, 120), DrawnScene(5, 160, 120)
    again.frame(30.0)  # what was asked before must not matter
    for one, other in zip(first.frame(4.2), again.frame(4.2), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_moment_looks_the_same_after_a_long_drive():
    scene = DrawnScene(2, 64, 48)
    expected = scene.frame(1.0)
    for moment in range(0, 3000, 15):
        scene.frame(float(moment))
    for one, other in zip(scene.frame(1.0), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_different_seeds_give_different_streets():
    labels = [DrawnScene(seed, 160, 120).frame(0.0)[1] for seed in range(6)]
    for one in range(6):
        for other in range(one):
            assert (labels[one] != labels[other]).mean() > 0.1


@pytest.mark.parametrize(('width', 'height'), [
    (32, 32), (33, 47), (47, 33), (200, 32), (32, 200), (480, 360), (641, 479), (1920, 1080)])
def test_any_size_gives_picture_and_labels_of_that_size(width: int, height: int):
    scene = DrawnScene(3, width, height)
    for moment in (0.0, 3.3, -12.0, 1e5):
        picture, labels = scene.frame(moment)
        assert picture.shape == (height, width, 3) and picture.dtype == np.uint8
        assert labels.shape == (height, width) and labels.dtype == np.uint8
        assert picture.flags.c_contiguous and labels.flags.c_contiguous
        assert labels.max() < len(CAMVID)
        assert picture.std() > 15


def test_each_class_is_well_visible_in_most_frames(frames):
    # 150 pixels at 640x480: a pedestrian 30 pixels tall, or a sign 14 pixels wide.
    visible = np.mean([np.bincount(labels.ravel(), minlength=11) >= 150 for _, labels in frames],
                      axis=0)
    assert visible.shape == (11,)
    assert dict(zip(CAMVID.names, visible >= 0.6, strict=True)) == dict.fromkeys(CAMVID.names,
                                                                               True)


def test_sky_is_above_and_brighter_than_road(frames):
    for picture, labels in frames:
        rows = np.arange(480)[:, None].repeat(640, 1)
        assert rows[labels == SKY].max() < rows[labels == ROAD].max()
        assert rows[labels == SKY].mean() + 150 < rows[labels == ROAD].mean()
        assert picture[labels == SKY].mean() > picture[labels == ROAD].mean() + 20


def test_no_sky_below_the_horizon_and_no_ground_above(frames):
    for _, labels in frames:
        assert not np.isin(labels[:200], (ROAD, PAVEMENT)).any()
        assert not (labels[250:] == SKY).any()


def test_label_borders_lie_on_picture_edges(frames):
    """Where sky meets a roof the picture changes more than a few rows above."""
    for picture, labels in frames:
        gray = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY).astype(float)
        change = np.abs(gray[2:] - gray[:-2])  # over two rows: blur may spread an edge
        border = (labels[1:-1] == SKY) & (labels[2:] == BUILDING)
        assert border.sum() > 20
        above = np.roll(border, -5, 0)  # five rows up in the sky
        above[-5:] = False
        assert np.median(change[border]) > 3 * np.median(change[above]) + 8


def test_labels_shifted_sideways_fit_the_picture_less_well(frames):
    """What the labels call sky is most uniform where they are, not a few pixels beside."""
    def spread(picture: np.ndarray, labels: np.ndarray, shift: int) -> float:
        return float(picture[np.roll(labels, shift, 1) == SKY, 0].std())

    for shift in (-3, 3):
        worse = [spread(*frame, shift) > spread(*frame, 0) for frame in frames]
        assert np.mean(worse) > 0.9


def test_camera_projects_as_worked_out_by_hand():
    view = View(focal=500.0, center=(319.5, 220.5), x=-1.5, s=100.0, yaw=0.0)
    # 2 m to the right of the camera and on the road 1.45 m below it, 10 m ahead.
    pixel = view.to_pixels(view.to_camera(np.array((0.5, 0.0, 110.0))))
    np.testing.assert_allclose(pixel, (319.5 + 500 * 2 / 10, 220.5 + 500 * 1.45 / 10))


def test_turned_camera_sees_what_is_straight_ahead_on_the_other_side():
    view = View(focal=500.0, center=(319.5, 220.5), x=0.0, s=0.0, yaw=0.1)
    seen = view.to_camera(np.array((0.0, 1.45, 20.0)))
    np.testing.assert_allclose(seen, (-20 * np.sin(0.1), 0.0, 20 * np.cos(0.1)), atol=1e-12)


def test_plane_matrix_agrees_with_the_projection_of_its_points():
    view = View(focal=400.0, center=(160.0, 110.0), x=0.3, s=5.0, yaw=-0.05)
    corner, across, down = np.array(((6.0, 7.0, 12.0), (0.0, 0.0, 14.0), (0.0, -7.0, 0.0)))
    matrix = view.homographies(np.array([[across, down, corner]]))[0]
    for a, b in ((0, 0), (1, 0), (0.25, 0.75)):
        column, row, scale = matrix @ (a, b, 1)
        expected = view.to_pixels(view.to_camera(corner + a * across + b * down))
        np.testing.assert_allclose((column / scale, row / scale), expected)


def test_clipping_keeps_the_part_in_front_of_the_camera():
    triangle = np.array(((0.0, 0.0, -1.0), (2.0, 0.0, NEAR_M + 1.0), (0.0, 3.0, NEAR_M + 1.0)))
    clipped = clip_near(triangle)
    assert len(clipped) == 4  # one corner cut off leaves two
    assert clipped[:, 2].min() == pytest.approx(NEAR_M)
    assert len(clip_near(triangle - (0, 0, 10))) == 0
    np.testing.assert_array_equal(clip_near(triangle + (0, 0, 10)), triangle + (0, 0, 10))


def test_geometry_scales_with_the_picture():
    for seed in range(4):
        large, small = DrawnScene(seed, 640, 480), DrawnScene(seed, 320, 240)
        for moment in (0.0, 6.0):
            agreement = large.frame(moment)[1][1::2, 1::2] == small.frame(moment)[1]
            assert agreement.mean() > 0.95


def test_surfaces_are_textured_not_flat(frames):
    """No class but the sky is one colour: neighbouring pixels inside it differ."""
    for class_id in (BUILDING, ROAD, TREE, CAR, FENCE):
        spreads = [picture[labels == class_id].astype(float).std(0).mean()
                   for picture, labels in frames if (labels == class_id).sum() > 500]
        assert np.median(spreads) > 8


def test_consecutive_frames_differ_a_little():
    for seed in (0, 1, 2):
        scene = DrawnScene(seed)
        for moment in (0.0, 5.0):
            picture, labels = scene.frame(moment)
            next_picture, next_labels = scene.frame(moment + 0.033)
            assert 0.9 < (labels == next_labels).mean() < 1.0
            assert (picture != next_picture).any()


def test_camera_drives_forward():
    scene = DrawnScene(1, 160, 120)
    labels = [scene.frame(float(moment))[1] for moment in range(5)]
    for one, other in zip(labels[:-1], labels[1:], strict=True):
        assert (one != other).mean() > 0.02


def test_a_frame_is_fast_enough_for_a_live_stream():
    scene = DrawnScene(0)
    for step in range(5):
        scene.frame(step / 10)
    times = []
    for step in range(20):
        start = time.process_time()
        scene.frame(1 + step / 30)
        times.append(time.process_time() - start)
    # About 0.01 s on an idle core; the bound leaves room for a slow and busy machine.
    assert min(times) < 0.06


@pytest.mark.parametrize(('arguments', 'word'), [
    ((-1,), 'seed -1'), ((1.5,), 'seed 1.5'), ((True,), 'seed True'),
    ((0, 31, 480), 'width 31'), ((0, 640, 31), 'height 31'), ((0, 8193, 480), 'width 8193'),
    ((0, 640, 8193), 'height 8193'), ((0, 640.0, 480), 'width 640.0')])
def test_arguments_out_of_range_are_refused_by_name(arguments: tuple, word: str):
    with pytest.raises(ConfigError, match=word):
        DrawnScene(*arguments)


@pytest.mark.parametrize('moment', [float('nan'), float('inf')])
def test_time_that_is_no_number_is_refused(moment: float):
    with pytest.raises(ConfigError, match='finite'):
        DrawnScene(0, 32, 32).frame(moment)
