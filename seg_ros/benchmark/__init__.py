"""How fast it is, against what: ``seg_bench``."""

from seg_ros.errors import SegRosError


class BenchmarkError(SegRosError):
    """A measurement stopped before its end."""

    exit_code = 1
