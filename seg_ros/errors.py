"""Errors that a user can act on: each message says what came, what was expected, what to do.

The core raises them; the edge (node, command line) decides: the node logs one line and goes on,
a command prints one line and leaves with ``exit_code``.
"""


class SegRosError(Exception):
    """Base of all errors that are explained to the user without a traceback."""

    exit_code = 2  # wrong use; 1 is for work that failed underway


class ConfigError(SegRosError):
    """A parameter, argument or recipe has a value that cannot be used."""


class ModelFileError(SegRosError):
    """A model file is missing, damaged or made for something else."""


class ImageError(SegRosError):
    """A picture, video or image message cannot be read as an image."""


class DataError(SegRosError):
    """A training or evaluation data set is incomplete or inconsistent."""


class EngineError(SegRosError):
    """The inference engine failed while working."""

    exit_code = 1


class TrainingError(SegRosError):
    """A training run stopped before its end and can be resumed."""

    exit_code = 1
