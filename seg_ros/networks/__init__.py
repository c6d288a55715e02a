"""The networks, by the name that a model file gives them."""

import inspect
from collections.abc import Mapping
from typing import Any

from torch import nn

from seg_ros.errors import ConfigError
from seg_ros.networks.asymmetric import AsymmetricNetwork
from seg_ros.networks.strip import StripNetwork

NETWORKS: dict[str, type[nn.Module]] = {'asymmetric': AsymmetricNetwork, 'strip': StripNetwork}


def default_arguments(architecture: str) -> dict[str, Any]:
    """Arguments of a network's constructor but ``classes``, with their defaults, as JSON has them.

    :param architecture: a key of ``NETWORKS``.
    """
    parameters = inspect.signature(NETWORKS[architecture]).parameters.values()
    return {parameter.name: list(parameter.default) if isinstance(parameter.default, tuple)
            else parameter.default for parameter in parameters if parameter.name != 'classes'}


def build_network(architecture: str, arguments: Mapping[str, Any]) -> nn.Module:
    """Build an untrained network.

    :param architecture: a key of ``NETWORKS``.
    :param arguments: the keyword arguments of its constructor, ``classes`` among them.
    :raises ConfigError: no such architecture, or arguments that it cannot be built with.
    """
    if not isinstance(architecture, str) or architecture not in NETWORKS:
        raise ConfigError(f'architecture {architecture!r}: known are {", ".join(NETWORKS)}')
    try:
        return NETWORKS[architecture](**arguments)
    except (TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError) as error:
        reason = str(error).partition('\n')[0]  # torch adds its call stack
        raise ConfigError(f'architecture {architecture!r} cannot be built with '
                          f'{dict(arguments)!r}: {reason}') from error
