"""QoS of topics as parameters, under rclpy's names: ``qos_overrides./image.subscription.depth``.

rclpy's own overrides tell of a wrong value only when a topic is made, which here is whenever a
listener comes, and know no reliability that follows the publishers.
"""

from enum import IntEnum
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from seg_ros.errors import ConfigError

POLICIES: dict[str, type[IntEnum] | None] = {
    'history': HistoryPolicy, 'depth': None, 'durability': DurabilityPolicy,
    'reliability': ReliabilityPolicy}
DEEPEST = 1000


def override_qos(node: Node, topic: str, entity: str, qos: QoSProfile) -> QoSProfile:
    """QoS of a topic as the parameters say, else as given.

    :param topic: fully resolved name.
    :param entity: 'publisher' or 'subscription'.
    :raises ConfigError: a parameter has a value that its policy does not.
    """
    return QoSProfile(**{policy: read_override(node, topic, entity, policy, getattr(qos, policy))
                         for policy in POLICIES})


def read_override(node: Node, topic: str, entity: str, policy: str, default: Any) -> Any:
    """Value of one policy by its parameter, which the first call declares.

    :param policy: one of ``POLICIES``.
    :param default: what is returned where nobody overrides it. The parameter shows it; '' for
        None.
    :raises ConfigError: the parameter has a value that the policy does not.
    """
    values = POLICIES[policy]
    shown = default.name.lower() if isinstance(default, IntEnum) else default
    name = f'qos_overrides.{topic}.{entity}.{policy}'
    try:
        if not node.has_parameter(name):
            node.declare_parameter(name, '' if shown is None else shown, ParameterDescriptor(
                description=f'{policy} of the {entity} of {topic}; given at start.',
                dynamic_typing=True, read_only=True))
        value = node.get_parameter(name).value
    except ParameterException as error:  # says the parameter and the value
        raise ConfigError(str(error)) from error
    if value == '' or type(value) is type(shown) and value == shown:
        return default
    if values is None:
        if type(value) is int and 1 <= value <= DEEPEST:
            return value
        expected = f'a whole number from 1 to {DEEPEST}'
    else:
        choices = {member.name.lower(): member for member in values if member.name != 'UNKNOWN'}
        if value in choices:
            return choices[value]
        expected = f'one of {", ".join(choices)}'
    raise ConfigError(f'parameter {name}: got {value!r}, expected {expected}')
