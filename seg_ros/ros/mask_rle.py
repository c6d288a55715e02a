"""The run-length form of labels that Autoware's point-cloud fusion reads as a mask."""

import sys

import numpy as np
from sensor_msgs.msg import Image
from std_msgs.msg import Header

from seg_ros.ros.messages import payload

# Five bytes without padding. The length has the byte order of the machine, as the reader copies
# it into an int.
RUN = np.dtype([('id', np.uint8), ('length', '=i4')])


def encode_mask(labels: np.ndarray, header: Header) -> Image:
    """Encode labels as runs of equal ids, row by row; a run goes on from one row to the next.

    The message calls itself ``mono8`` of the labels' height, width and step, as Autoware's own
    segmentation does, whatever the length of its data: a viewer cannot show it.

    :param labels: (H, W) uint8 class ids, at least one pixel.
    :param header: becomes the message's own, stamp and frame_id untouched.
    :return: data are runs of 5 bytes: uint8 class id, then int32 length; the lengths add up to
        H * W.
    """
    ids = labels.ravel()
    starts = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    runs = np.empty(len(starts) + 1, RUN)
    runs['id'][0] = ids[0]
    runs['id'][1:] = ids[starts]
    runs['length'] = np.diff(starts, prepend=0, append=ids.size)
    height, width = labels.shape
    mask = Image(header=header, height=height, width=width, encoding='mono8',
                 is_bigendian=int(sys.byteorder == 'big'), step=width)
    mask.data = payload(runs.view(np.uint8))
    return mask
