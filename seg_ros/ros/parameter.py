"""One ROS parameter: what it is for and which values it takes."""

from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node

from seg_ros.errors import ConfigError
from seg_ros.yaml_files import nearest


@dataclass(frozen=True)
class Parameter:
    """A row in the table of a node's parameters.

    :param default: its type is the parameter's type; a float takes an integer too. A list is one
        of texts.
    :param low: smallest value of a number.
    :param high: largest value of a number.
    :param choices: the allowed texts, if not any.
    :param live: it can change while the node runs.
    """

    name: str
    default: bool | int | float | str | list[str]
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    live: bool = False

    def check(self, value: Any) -> bool | int | float | str | list[str]:
        """Return the value as the parameter's type.

        :raises ConfigError: wrong type or out of range.
        """
        wanted = type(self.default)
        if wanted is float and type(value) is int:
            value = float(value)
        if type(value) is not wanted or not self._allows(value):
            raise ConfigError(f'parameter {self.name}: got {value!r}, expected {self.expected()}')
        return value

    def _allows(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        if self.low is not None and self.high is not None:
            return self.low <= value <= self.high  # false for nan
        return True

    def expected(self) -> str:
        """Say which values are allowed."""
        if self.choices:
            return 'one of ' + ', '.join(choice or "''" for choice in self.choices)
        if self.low is not None:
            kind = 'a whole number' if isinstance(self.default, int) else 'a number'
            return f'{kind} from {self.low:g} to {self.high:g}'
        return {bool: 'true or false', str: 'text'}[type(self.default)]

    def descriptor(self, read_only: bool = False) -> ParameterDescriptor:
        """Descriptor for tools. Types are checked by :meth:`check`, as rcl refuses 0 for 0.0."""
        descriptor = ParameterDescriptor(
            name=self.name, description=self.description, additional_constraints=self.expected(),
            dynamic_typing=True, read_only=read_only)
        if self.low is not None and self.high is not None:
            if isinstance(self.default, float):
                descriptor.floating_point_range = [
                    FloatingPointRange(from_value=float(self.low), to_value=float(self.high))]
            else:
                descriptor.integer_range = [
                    IntegerRange(from_value=int(self.low), to_value=int(self.high), step=1)]
        return descriptor


def warn_of_unknown_parameters(node: Node) -> None:
    """Tell of values that were given at start to parameters that the node has not declared."""
    known = node.get_parameters_by_prefix('')
    for name in getattr(node, '_parameter_overrides', {}):  # rclpy has no public way
        if name not in known:
            node.get_logger().warning(f'parameter {name}: is not known, its value has no effect; '
                                      f'did you mean {nearest(name, known)}?')
