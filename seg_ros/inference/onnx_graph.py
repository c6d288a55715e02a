"""The deployed network as an ONNX graph."""

import io
import warnings

import onnx
import torch
from onnx.shape_inference import infer_shapes
from torch import Tensor, nn

from seg_ros.errors import EngineError
from seg_ros.inference.deploy import DeployedNetwork
from seg_ros.model_file import Model
from seg_ros.onnx_file import INPUTS, OUTPUTS

OPSET = 17  # the newest that TensorRT 8.6 (JetPack 6) reads
ANY_SIZE = {0: 'batch', 1: 'height', 2: 'width'}


class _OnnxNetwork(nn.Module):
    """The deployed network with the end that ONNX Runtime and OpenVINO both run fast.

    ONNX Runtime takes 25 ms of 110 for the softmax of all classes at 360x480, OpenVINO 5 of 80
    for an ArgMax; the largest logit and its index by one TopK cost neither of them anything.
    """

    def __init__(self, model: Model, dtype: torch.dtype) -> None:
        super().__init__()
        self.deployed = DeployedNetwork(model, dtype)

    def forward(self, rgb: Tensor) -> tuple[Tensor, Tensor]:
        """(B, H, W, 3) uint8 to (B, H, W) uint8 labels and probabilities, 255 for 1."""
        logits = self.deployed.logits(rgb).float()                     # (B, classes, H, W)
        highest, labels = logits.topk(1, dim=1)                        # (B, 1, H, W)
        # The softmax's largest value is all that is needed of it.
        confidence = 255 / torch.exp(logits - highest).sum(dim=1)      # (B, H, W)
        return labels[:, 0].to(torch.uint8), torch.round(confidence).to(torch.uint8)


def export_graph(model: Model, dtype: torch.dtype = torch.float32) -> bytes:
    """Serialised graph of a trained network, for any batch, height and width.

    :param dtype: that it computes in.
    :raises ModelFileError: the model is an exported file itself.
    :raises EngineError: this version of torch cannot export it.
    """
    network = _OnnxNetwork(model, dtype)
    content = io.BytesIO()
    example = torch.zeros((2, 64, 96, 3), dtype=torch.uint8)
    with warnings.catch_warnings():
        # The exporter by tracing is called deprecated, and is chosen: it takes 2 s instead of
        # 20 and needs no further package. The version of torch is pinned.
        warnings.simplefilter('ignore')
        try:
            torch.onnx.export(network, (example,), content,  # type: ignore[arg-type] # a file, too
                              dynamo=False, opset_version=OPSET, input_names=INPUTS,
                              output_names=OUTPUTS,
                              dynamic_axes={name: ANY_SIZE for name in (*INPUTS, *OUTPUTS)})
        except (RuntimeError, torch.onnx.errors.OnnxExporterError) as error:
            reason = str(error).partition('\n')[0]
            raise EngineError(f'the network cannot be exported to ONNX: {reason}') from error
    return content.getvalue()


def labels_only(graph: bytes) -> bytes:
    """Leave out the confidence: engines drop what then leads nowhere."""
    proto = onnx.ModelProto.FromString(graph)
    del proto.graph.output[1:]
    return proto.SerializeToString()


def fixed_to(graph: bytes, shape: tuple[int, ...]) -> bytes:
    """Take pictures of one shape only, (B, H, W, 3); all other shapes in the graph follow."""
    proto = onnx.ModelProto.FromString(graph)
    for value, sides in ((proto.graph.input[0], shape),
                         *((output, shape[:3]) for output in proto.graph.output)):
        for dimension, side in zip(value.type.tensor_type.shape.dim, sides, strict=True):
            dimension.dim_value = side
    return infer_shapes(proto, data_prop=True).SerializeToString()
