"""The node under a camera's load for a long time: ``python -m seg_ros.soak``."""

from seg_ros.errors import SegRosError


class SoakError(SegRosError):
    """Something grew that was to stay flat, or the node stopped working."""

    exit_code = 1
