"""Where ONNX Runtime runs a network, and in which precision."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seg_ros.errors import ConfigError
from seg_ros.model_file import Model

CPU, CUDA = 'CPUExecutionProvider', 'CUDAExecutionProvider'
TENSORRT = 'TensorrtExecutionProvider'

Provider = tuple[str, dict[str, Any]]


def choose_device(device: str, available: Sequence[str], gpus: int) -> str:
    """Find a device.

    :param device: 'auto' (the first GPU, else the CPU), 'cpu', 'cuda' or 'cuda:N'.
    :param available: providers of the installed ONNX Runtime.
    :param gpus: how many the driver finds.
    :return: 'cpu' or 'cuda:N'.
    :raises ConfigError: it is not there.
    """
    usable = gpus if CUDA in available else 0
    known = ['cpu', *(['cuda'] if usable else []), *(f'cuda:{index}' for index in range(usable))]
    if device == 'auto':
        return 'cuda:0' if usable else 'cpu'
    if device not in known:
        lacking = '' if usable else ' and no CUDA GPU'
        if gpus and not usable:
            lacking = '; for the GPU install onnxruntime-gpu in the place of onnxruntime'
        raise ConfigError(f'device {device!r}: the onnxruntime engine finds '
                          f'{", ".join(known)}{lacking}')
    return 'cuda:0' if device == 'cuda' else device


def choose_precision(model: Model, device: str, tensorrt: bool, precision: str) -> str:
    """Find the precision in which a model is run.

    :param device: 'cpu' or 'cuda:N'.
    :param tensorrt: whether TensorRT is used.
    :param precision: 'auto' is that of an int8 file, float16 on a GPU, else float32.
    :raises ConfigError: model and device do not have it.
    """
    if device == 'cpu':
        known = [model.precision]
    elif model.precision == 'int8':
        raise ConfigError(f'{model.path}: is quantised for CPUs; on {device} run the model that '
                          'it was made from, in float16, or give the device cpu')
    elif model.onnx is None or tensorrt:
        known = ['float16', 'float32']
    else:  # CUDA computes in the types that the graph is written in
        known = ['float32']
    if precision == 'auto':
        return known[0]
    if precision not in known:
        raise ConfigError(f'precision {precision!r}: the onnxruntime engine has '
                          f'{", ".join(known)} for this model on {device}')
    return precision


def providers_for(device: str) -> list[Provider]:
    """Providers for a session, the first that can run a node being taken for it.

    :param device: 'cpu' or 'cuda:N'.
    """
    if device == 'cpu':
        return [(CPU, {})]
    return [(CUDA, {'device_id': _index(device)}), (CPU, {})]


def tensorrt_for(device: str, half: bool, cache: Path | None) -> list[Provider]:
    """Providers for a session of TensorRT, as of :func:`providers_for`.

    :param device: 'cuda:N'.
    :param half: whether layers may compute in float16.
    :param cache: existing folder that TensorRT's engine is read from or written to.
    """
    options: dict[str, Any] = {'device_id': _index(device), 'trt_fp16_enable': half}
    if cache is not None:
        options.update(trt_engine_cache_enable=True, trt_engine_cache_path=str(cache))
    return [(TENSORRT, options), *providers_for(device)]


def _index(device: str) -> int:
    return int(device.partition(':')[2])
