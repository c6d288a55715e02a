"""A tiny model, and model files taken apart and put together by the safetensors format itself."""

import hashlib
import json
import struct
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import nn

from seg_ros.errors import ModelFileError
from seg_ros.labels import LabelSet
from seg_ros.model_file import ModelSpec, load_model

torch.set_num_threads(1)  # the tensors here are too small to share out

TINY = {'widths': [5, 16, 40], 'dilations2': [2], 'dilations3': [3], 'pyramid': 8}
LABELS = LabelSet(('Fahrbahn', 'Gehweg é', 'sky'), ((1, 2, 3), (40, 50, 60), (255, 0, 9)),
                  (0, 7, 3))
SPEC = ModelSpec('asymmetric', TINY, LABELS, (100.5, 99.25, 98.0), (60.0, 61.0, 62.5), (64, 96),
                 {'data': 'made up', 'epochs': 3, 'validation': {'miou': 12.5, 'absent': None}})


def tiny_network() -> nn.Module:
    """A network with BatchNorm statistics of its own."""
    torch.manual_seed(5)
    network = SPEC.build().eval()
    for buffer in network.buffers():
        if buffer.is_floating_point() and buffer.ndim == 1:
            buffer.uniform_(0.5, 2.0)
    return network


def taken_apart(data: bytes) -> tuple[dict, dict]:
    """Metadata and tensors of a model file's bytes, by the safetensors format itself."""
    size, = struct.unpack('<Q', data[:8])
    header = json.loads(data[8:8 + size])
    return json.loads(header['__metadata__']['seg_ros']), safetensors.torch.load(data)


def put_together(path: Path, values, tensors: dict, sign: bool = True) -> Path:
    """Write a file whose checksum is right, so that only what the test changed is wrong."""
    if sign:
        values = {key: value for key, value in values.items() if key != 'sha256'}
        digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode())
        for name, tensor in sorted(tensors.items()):
            digest.update(f'{name} {tensor.dtype} {tuple(tensor.shape)}\n'.encode())
            digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
        values['sha256'] = digest.hexdigest()
    safetensors.torch.save_file(tensors, path, {'seg_ros': json.dumps(values)})
    return path


def refusal(path: Path) -> str:
    """The message with which a file is refused: it always names the file and is one line."""
    with pytest.raises(ModelFileError) as caught:
        load_model(path)
    said = str(caught.value)
    assert said.startswith(f'{path.resolve()}: ')
    assert '\n' not in said
    return said
