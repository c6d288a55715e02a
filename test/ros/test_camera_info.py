import cv2
import numpy as np
import pytest
from sensor_msgs.msg import CameraInfo
from std_msgs.msg import Header

from seg_ros.ros.camera_info import scale_camera_info

POINTS = np.array([[0.3, -0.2, 2.0], [-0.7, 0.4, 5.5], [0.0, 0.0, 1.0], [2.5, 1.5, 9.0]])
REGION = (65, 47, 320, 242)  # x, y, width, height; odd offsets do not scale to whole pixels


def calibration(region=(0, 0, 0, 0), binning=(0, 0)) -> CameraInfo:
    info = CameraInfo(width=640, height=480, distortion_model='plumb_bob', binning_x=binning[0],
                      binning_y=binning[1], d=[.1, -.2, .01, .02, .05])
    info.k = [400., 0., 330., 0., 420., 250., 0., 0., 1.]
    info.r = cv2.Rodrigues(np.array([.01, -.02, .03]))[0].ravel()
    info.p = [410., 0., 331., -41., 0., 430., 251., 8.6, 0., 0., 1., 0.]
    info.roi.x_offset, info.roi.y_offset, info.roi.width, info.roi.height = region
    return info


def pixels_of(info: CameraInfo) -> np.ndarray:
    """Pixels of the points in the picture as it is sent, rectified and raw: (2, N, 2).

    By the comments of sensor_msgs/CameraInfo: projection at full resolution, minus the offset of
    the region of interest, divided by the binning.
    """
    rectified = np.c_[POINTS, np.ones(len(POINTS))] @ info.p.reshape(3, 4).T
    raw, _ = cv2.projectPoints(POINTS, np.zeros(3), np.zeros(3), info.k.reshape(3, 3),
                               np.array(info.d))
    full = np.stack([rectified[:, :2] / rectified[:, 2:], raw[:, 0]])
    return ((full - [info.roi.x_offset, info.roi.y_offset])
            / [max(1, info.binning_x), max(1, info.binning_y)])


@pytest.mark.parametrize(('region', 'binning', 'picture'), [
    ((0, 0, 0, 0), (0, 0), (640, 480)), ((0, 0, 640, 480), (1, 1), (640, 480)),
    ((0, 0, 0, 0), (2, 3), (320, 160)), (REGION, (0, 0), (320, 242)),
    (REGION, (2, 2), (160, 121)), (REGION, (1, 3), (320, 80))])
@pytest.mark.parametrize('size', [(160, 240), (800, 600), (333, 77)])
def test_points_land_on_the_resized_pixel(region, binning, picture, size):
    info = calibration(region, binning)
    scaled = scale_camera_info(info, Header(frame_id='out'), *size)
    expected = pixels_of(info) * [size[0] / picture[0], size[1] / picture[1]]
    assert np.allclose(pixels_of(scaled), expected, rtol=0, atol=1e-9)
    assert (scaled.width, scaled.height, scaled.header.frame_id) == (*size, 'out')


def test_result_describes_a_whole_picture_without_region_and_binning():
    scaled = scale_camera_info(calibration(REGION, (2, 2)), Header(), 80, 60)
    whole = CameraInfo()
    assert (scaled.roi, scaled.binning_x, scaled.binning_y) == (whole.roi, 0, 0)


def test_matrices_by_hand():
    # 640x480, its region 320x240 from (64, 48), binned by 2 to 160x120, resized to 40x60.
    scaled = scale_camera_info(calibration((64, 48, 320, 240), (2, 2)), Header(), 40, 60)
    assert list(scaled.k) == [50, 0, (330 - 64) / 8, 0, 105, (250 - 48) / 4, 0, 0, 1]
    assert list(scaled.p) == [410 / 8, 0, (331 - 64) / 8, -41 / 8,
                              0, 430 / 4, (251 - 48) / 4, 8.6 / 4, 0, 0, 1, 0]


def test_distortion_and_rotation_stay():
    info = calibration()
    scaled = scale_camera_info(info, Header(), 160, 240)
    assert scaled.distortion_model == 'plumb_bob'
    assert list(scaled.d) == list(info.d) and list(scaled.r) == list(info.r)


def test_input_stays_as_it_was():
    for size in ((64, 48), (320, 242)):
        info = calibration(REGION)
        scale_camera_info(info, Header(frame_id='new'), *size)
        assert info == calibration(REGION)


@pytest.mark.parametrize(('info', 'size'), [
    (calibration(), (640, 480)), (calibration((0, 0, 0, 0), (2, 3)), (320, 160)),
    (calibration(REGION), (320, 242)), (calibration(REGION, (2, 2)), (160, 121)),
    (CameraInfo(), (640, 480)), (calibration(REGION, (321, 1)), (640, 480)),
    (calibration((0, 0, 0, 0), (2**32 - 1, 1)), (640, 480))],
    ids=['full', 'binned', 'region', 'both', 'no size', 'region in a bin', 'all in a bin'])
def test_picture_as_it_came_changes_only_the_header(info, size):
    same = scale_camera_info(info, Header(frame_id='new'), *size)
    assert same.header.frame_id == 'new'
    same.header = info.header
    assert same == info


def test_offset_of_a_region_without_size_does_not_count():
    info = calibration((64, 48, 0, 0))
    assert scale_camera_info(info, Header(), 320, 240) == scale_camera_info(
        calibration(), Header(), 320, 240)


def test_camera_without_calibration_stays_without():
    info = calibration(REGION, (2, 2))
    info.k, info.p = np.zeros(9), np.zeros(12)
    scaled = scale_camera_info(info, Header(), 32, 32)
    assert not scaled.k.any() and not scaled.p.any()


@pytest.mark.filterwarnings('error')
def test_calibration_that_is_no_number_is_passed_on():
    info = calibration(REGION)
    info.k, info.p = np.full(9, np.nan), np.full(12, 1e308)
    scaled = scale_camera_info(info, Header(), 8192, 8192)
    assert np.isnan(scaled.k).all() and scaled.width == 8192
