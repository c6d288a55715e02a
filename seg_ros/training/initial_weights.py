"""Starting a network from the weights of a model file."""

from torch import Tensor, nn

from seg_ros.errors import ConfigError
from seg_ros.labels import LabelSet
from seg_ros.model_file import Model, ModelSpec
from seg_ros.networks import build_network


def start_from(model: Model, labels: LabelSet, *networks: nn.Module) -> str:
    """Copy every tensor of the model that has its name and shape in the networks, in place.

    What another decoder makes differ keeps its initial weights, and so does the head, unless the
    classes are the same.

    :param labels: classes of the networks.
    :param networks: of one architecture.
    :return: what was kept and what begins anew, for the user.
    :raises ConfigError: nothing fits.
    """
    tensors = model.network.state_dict()
    if labels.names != model.spec.labels.names:
        tensors = {name: tensors[name] for name in tensors.keys() - head_of(model.spec)}
    new: set[str] = set()
    fitting: dict[str, Tensor] = {}
    for network in networks:
        own = network.state_dict()
        fitting = {name: tensor for name, tensor in tensors.items()
                   if name in own and own[name].shape == tensor.shape}
        new = own.keys() - fitting.keys()
        if not any(tensor.ndim > 1 for tensor in fitting.values()):  # no convolution
            raise ConfigError(f'{model.path}: none of its weights fits the network of the recipe; '
                              'give the recipe the architecture and arguments of the file: '
                              f'{model.spec.architecture}, {dict(model.spec.arguments)}')
        network.load_state_dict(fitting, strict=False)
    boxes = sorted({name.partition('.')[0] for name in new})
    told = [f'parts of {box}' if any(name.startswith(f'{box}.') for name in fitting) else box
            for box in boxes]
    return f'{model.path}: its weights are kept' + (
        f', but for those of {", ".join(told)}, which begin anew' if told else '')


def head_of(spec: ModelSpec) -> set[str]:
    """Names of the tensors whose shape follows the number of classes."""
    ours = spec.build().state_dict()
    wider = build_network(spec.architecture,
                          {**spec.arguments, 'classes': len(spec.labels) + 1}).state_dict()
    return {name for name, tensor in ours.items() if tensor.shape != wider[name].shape}
