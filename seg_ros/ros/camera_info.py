"""CameraInfo of the outputs."""

import copy

from sensor_msgs.msg import CameraInfo
from std_msgs.msg import Header


def scale_camera_info(info: CameraInfo, header: Header, width: int, height: int) -> CameraInfo:
    """Return the calibration of a picture resized to ``width`` x ``height`` pixels.

    Focal lengths and principal point of K and P, and the region of interest, scale with the
    picture (the convention of image_proc's resize node); R and the distortion stay.

    :param info: is not changed; one without a size is passed on with the new header.
    """
    scaled = copy.deepcopy(info)
    scaled.header = header
    if not info.width or not info.height or (info.width, info.height) == (width, height):
        return scaled
    x, y = width / info.width, height / info.height
    scaled.width, scaled.height = width, height
    for matrix, columns in ((scaled.k, 3), (scaled.p, 4)):
        matrix[:columns] *= x
        matrix[columns:2 * columns] *= y
    scaled.roi.x_offset = round(info.roi.x_offset * x)
    scaled.roi.width = round(info.roi.width * x)
    scaled.roi.y_offset = round(info.roi.y_offset * y)
    scaled.roi.height = round(info.roi.height * y)
    return scaled
