"""The node on a stream of pictures, for all to see: ``python -m seg_ros.demo``."""

from seg_ros.errors import SegRosError


class DemoError(SegRosError):
    """The demo could not show what it is for."""

    exit_code = 1
