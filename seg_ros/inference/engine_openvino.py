"""The deployed network in OpenVINO."""

import numpy as np
import openvino
import torch
from openvino.frontend import FrontEndManager
from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

from seg_ros.errors import ConfigError, EngineError
from seg_ros.inference import deploy
from seg_ros.inference.deploy import DeployedNetwork
from seg_ros.inference.kept import Kept
from seg_ros.model_file import Model, digest
from seg_ros.model_spec import to_values

# What int8 leaves over is computed in float32.
PRECISION_HINTS = {'float32': 'f32', 'float16': 'f16', 'bfloat16': 'bf16', 'int8': 'f32'}
CAPABILITIES = {'float32': 'FP32', 'float16': 'FP16', 'bfloat16': 'BF16'}


# The last graph, as torch keeps what it has traced to the end of the process (its issue 35600):
# 15 MB for each time that a node is configured.
_converted: dict[str, openvino.Model] = {}


class OpenVinoEngine:
    """Implements ``seg_ros.inference.engines.Engine``.

    Compiled once for each input shape, in about 0.15 s: a graph for any shape is a fifth slower.

    :param device: 'auto' (the CPU) or a device that OpenVINO finds, such as 'cpu' or 'gpu'.
    :param precision: 'auto' is bfloat16 on a CPU that has instructions for it, else float32.
    :param threads: on the CPU; 0 leaves OpenVINO's choice.
    :raises ConfigError: no such device, or it lacks the precision.
    :raises EngineError: the network cannot be converted.
    """

    name = 'openvino'

    def __init__(self, model: Model, device: str, precision: str, threads: int) -> None:
        self._core = openvino.Core()
        self.device = _find_device(self._core, device)
        self.precision = 'int8' if model.precision == 'int8' else _find_precision(
            self._core, self.device, precision)
        self._settings: dict[str, str | int] = {
            'PERFORMANCE_HINT': 'LATENCY',
            'INFERENCE_PRECISION_HINT': PRECISION_HINTS[self.precision]}
        if threads > 0 and self.device == 'cpu':
            self._settings['INFERENCE_NUM_THREADS'] = threads
        try:
            self._graph: openvino.Model | None = _convert(self._core, model)
        except Exception as error:  # OpenVINO documents no set of errors
            raise EngineError(f'openvino: the network cannot be converted: {error}') from error
        self._requests: Kept[openvino.InferRequest] = Kept()

    def infer(self, rgb: np.ndarray,
              confidence: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        if self._graph is None:
            raise EngineError('openvino: the engine has been closed')
        try:
            # Copies, as the request's own arrays are overwritten by the next inference.
            graph = self._graph
            request = self._requests.get(rgb.shape, lambda: self._compile(graph, rgb.shape))
            results = request.infer([rgb], share_outputs=False)
            return results[0], results[1] if confidence else None
        except Exception as error:  # OpenVINO documents no set of errors
            raise EngineError(f'openvino on {self.device}: failed on pictures of shape '
                              f'{rgb.shape}: {error}') from error

    def _compile(self, graph: openvino.Model, shape: tuple[int, ...]) -> openvino.InferRequest:
        graph = graph.clone()
        graph.reshape(list(shape))
        compiled = self._core.compile_model(graph, self.device.upper(), self._settings)
        return compiled.create_infer_request()

    def close(self) -> None:
        self._graph = None
        self._requests.clear()


def _convert(core: openvino.Core, model: Model) -> openvino.Model:
    if model.onnx is not None:
        return core.read_model(model.onnx)
    key = digest({**to_values(model.spec), 'folds': list(deploy.FOLDS)},
                 model.network.state_dict())
    if key not in _converted:
        _converted.clear()
        _converted[key] = _convert_traced(model)
    return _converted[key]


def _convert_traced(model: Model) -> openvino.Model:
    """Convert without ``openvino.convert_model``, which takes three times as long and traces the
    network three times, to check the result.
    """
    example = torch.zeros((1, 64, 96, 3), dtype=torch.uint8)
    traced = torch.jit.trace(DeployedNetwork(model), example, check_trace=False)
    frontend = FrontEndManager().load_by_framework('pytorch')
    decoder = TorchScriptPythonDecoder(traced, example_input=(example,))
    return frontend.convert(frontend.load(decoder))


def _find_device(core: openvino.Core, device: str) -> str:
    known = [name.lower() for name in core.available_devices]
    found = {'auto': 'cpu'}.get(device, device.lower())
    if found not in known:
        raise ConfigError(f'device {device!r}: the openvino engine finds {", ".join(known)}')
    return found


def _find_precision(core: openvino.Core, device: str, precision: str) -> str:
    capabilities = core.get_property(device.upper(), 'OPTIMIZATION_CAPABILITIES')
    known = [name for name, capability in CAPABILITIES.items() if capability in capabilities]
    if precision == 'auto':
        # Half the time of float32 at the same mIoU; a GPU's float16 is not measured.
        return 'bfloat16' if device == 'cpu' and 'bfloat16' in known else 'float32'
    if precision not in known:
        raise ConfigError(f'precision {precision!r}: the openvino engine has {", ".join(known)} '
                          f'on this {device}')
    return precision
