"""Quantisation after training: the deployed graph in 8-bit integers, by what pictures show."""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

from seg_ros.errors import ConfigError
from seg_ros.inference.onnx_graph import export_graph
from seg_ros.model_file import Model
from seg_ros.onnx_file import sign_onnx

OPERATORS = ['Conv', 'Relu', 'Concat', 'Split', 'Reshape', 'Transpose', 'MaxPool', 'AveragePool',
             'Resize', 'Add', 'Mul']


def quantise(model: Model, pictures: Iterable[np.ndarray]) -> bytes:
    """Content of an int8 model file.

    Activations are unsigned with a zero point, by the smallest and largest value that they have
    on the pictures; weights are signed, with a scale for each channel. CPUs run that; TensorRT
    does not read it.

    :param model: left unchanged.
    :param pictures: each (H, W, 3) uint8, at the size at which the network sees it.
    :raises ConfigError: the model is quantised already.
    :raises EngineError: it cannot be exported.
    :raises OSError: the folder of temporary files is full.
    """
    if model.precision == 'int8':
        raise ConfigError(f'{model.path}: is quantised already; give the model that it was made '
                          'from')
    with tempfile.TemporaryDirectory(prefix='seg_quantize.') as folder:
        exported, prepared, result = (Path(folder) / f'{name}.onnx'
                                      for name in ('exported', 'prepared', 'result'))
        graph = onnx.ModelProto.FromString(model.onnx or export_graph(model))
        onnx.save(graph, exported)
        quant_pre_process(exported, prepared, skip_optimization=True, skip_symbolic_shape=True)
        quantize_static(
            prepared, result, _Pictures(pictures), QuantFormat.QDQ, OPERATORS, per_channel=True,
            # 7 bits for weights: CPUs without VNNI add products of 8 bits up in too few.
            reduce_range=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
            nodes_to_exclude=_left_in_float(graph.graph),
            calibrate_method=CalibrationMethod.MinMax)
        graph = onnx.load(result)
    del graph.metadata_props[:]  # of the tools, and of an exported model's file
    return sign_onnx(graph.SerializeToString(), model.spec, 'int8')


class _Pictures(CalibrationDataReader):
    def __init__(self, pictures: Iterable[np.ndarray]) -> None:
        self._pictures: Iterator[np.ndarray] = iter(pictures)

    def get_next(self) -> dict[str, np.ndarray] | None:
        picture = next(self._pictures, None)
        return None if picture is None else {'rgb': picture[None]}


def _left_in_float(graph: onnx.GraphProto) -> list[str]:
    """Names of the nodes that lose by int8 in accuracy, or gain nothing by it in time.

    These are what prepares the picture and what becomes of the logits; channel attention, whose
    maps have one pixel; and convolutions to a single channel, which OpenVINO cannot run so.
    """
    kernels = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    kernels.update({node.output[0]: tuple(node.attribute[0].t.dims)
                    for node in graph.node if node.op_type == 'Constant'})
    convolutions = [index for index, node in enumerate(graph.node) if node.op_type == 'Conv']
    pooled: set[str] = set()
    left = []
    for index, node in enumerate(graph.node):
        if node.op_type == 'ReduceMean' or (
                node.op_type in ('Conv', 'Relu', 'Sigmoid') and node.input[0] in pooled):
            pooled.update(node.output)
            left.append(node.name)
        elif not convolutions[0] <= index <= convolutions[-1] or (
                node.op_type == 'Conv' and kernels[node.input[1]][0] == 1):
            left.append(node.name)
    return left
