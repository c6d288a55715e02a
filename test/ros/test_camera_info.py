import numpy as np
from sensor_msgs.msg import CameraInfo
from std_msgs.msg import Header

from seg_ros.ros.camera_info import scale_camera_info


def calibration() -> CameraInfo:
    info = CameraInfo(width=640, height=480, distortion_model='plumb_bob', d=[.1, .2, 0., 0., 0.])
    info.k = [400., 0., 330., 0., 420., 250., 0., 0., 1.]
    info.p = [410., 0., 331., -41., 0., 430., 251., 8.6, 0., 0., 1., 0.]
    info.roi.x_offset, info.roi.y_offset, info.roi.width, info.roi.height = 64, 48, 320, 240
    return info


def test_projected_points_scale_with_the_picture():
    info = calibration()
    scaled = scale_camera_info(info, Header(frame_id='out'), 160, 240)
    point = np.array([0.3, -0.2, 2.0, 1.0])
    before, after = (np.array(i.p).reshape(3, 4) @ point for i in (info, scaled))
    assert np.allclose(after[:2] / after[2], before[:2] / before[2] * [160 / 640, 240 / 480])
    before, after = (np.array(i.k).reshape(3, 3) @ point[:3] for i in (info, scaled))
    assert np.allclose(after[:2] / after[2], before[:2] / before[2] * [160 / 640, 240 / 480])
    assert (scaled.width, scaled.height, scaled.header.frame_id) == (160, 240, 'out')
    roi = scaled.roi
    assert (roi.x_offset, roi.y_offset, roi.width, roi.height) == (16, 24, 80, 120)
    assert list(scaled.d) == [.1, .2, 0., 0., 0.]


def test_input_stays_as_it_was():
    info = calibration()
    scale_camera_info(info, Header(), 64, 48)
    assert info == calibration()


def test_same_size_or_none_changes_only_the_header():
    for info in (calibration(), CameraInfo()):
        same = scale_camera_info(info, Header(frame_id='new'), info.width, info.height)
        assert same.header.frame_id == 'new'
        assert list(same.k) == list(info.k)
