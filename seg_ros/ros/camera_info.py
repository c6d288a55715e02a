"""CameraInfo of the outputs."""

import copy

import numpy as np
from sensor_msgs.msg import CameraInfo
from std_msgs.msg import Header


def scale_camera_info(info: CameraInfo, header: Header, width: int, height: int) -> CameraInfo:
    """Return the calibration of a picture resized to ``width`` x ``height`` pixels.

    The picture that ``info`` describes is its region of interest, binned. Of another size, the
    result describes the resized picture alone: region and binning are in K and P and nowhere else,
    where nothing is rounded and nobody can overlook them. R and the distortion stay. Pixel
    coordinates are multiplied by the ratio of the sizes, as image_proc's resize node does.

    :param info: is not changed, but shares its arrays with the result; one without a size, or
        with a region smaller than its binning, is passed on with the new header.
    """
    sides = (_side(info.width, info.roi.width, info.roi.height, info.binning_x),
             _side(info.height, info.roi.height, info.roi.width, info.binning_y))
    if 0 in sides or sides == (width, height):
        same = copy.copy(info)
        same.header = header
        return same
    k, p = info.k.reshape(3, 3).copy(), info.p.reshape(3, 4).copy()
    has_region = bool(info.roi.width and info.roi.height)
    with np.errstate(all='ignore'):  # a calibration that is no number stays none
        for row, ratio, offset, binning in (
                (0, width / sides[0], info.roi.x_offset, info.binning_x),
                (1, height / sides[1], info.roi.y_offset, info.binning_y)):
            for matrix in (k, p):
                # The last row is 0 0 1, or all 0 of a camera without calibration, which stays so.
                matrix[row] -= offset * has_region * matrix[2]
                matrix[row] *= ratio / max(1, binning)
    return CameraInfo(header=header, width=width, height=height,
                      distortion_model=info.distortion_model, d=info.d, k=k.ravel(), r=info.r,
                      p=p.ravel())


def _side(full: int, region: int, region_across: int, binning: int) -> int:
    """Pixels of a picture's side: a region of 0 in either direction stands for the full picture,
    and binning of 0 for none.
    """
    return (region if region and region_across else full) // max(1, binning)
