"""What the torch engine does where a GPU fails, shown on the CPU by networks that fail alike."""

import copy
import weakref

import numpy as np
import pytest
import torch
from random_models import random_model
from torch import Tensor, nn

from seg_ros.errors import EngineError
from seg_ros.inference import engine_torch
from seg_ros.inference.engine_torch import TorchEngine
from seg_ros.inference.threads import default_threads, use_threads
from seg_ros.model_file import Model

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a CUDA GPU')
MODEL = random_model()
RGB = np.full((1, 64, 96, 3), 90, np.uint8)


class Failing(nn.Module):
    """A network that computes something, then fails as often as it is told to.

    :ivar computed: what it had computed, as long as something holds that.
    """

    def __init__(self, error: Exception | None, times: int = 1) -> None:
        super().__init__()
        self.network = copy.deepcopy(MODEL.network)
        self.error, self.left = error, times
        self.computed: weakref.ref[Tensor] | None = None

    def __deepcopy__(self, memo) -> 'Failing':
        return self  # so that a test can ask it what it did

    def forward(self, image: Tensor) -> Tensor:
        logits = self.network(image)
        if self.left:
            self.left -= 1
            self.computed = weakref.ref(logits)
            raise type(self.error)(str(self.error))
        return logits


def engine_of(network: nn.Module, device: str = 'cpu', announce=pytest.fail) -> TorchEngine:
    return TorchEngine(Model(network, MODEL.spec), device, 'float32', 1, announce)


@pytest.fixture(autouse=True)
def threads_as_before():
    yield
    use_threads(0)


@pytest.mark.parametrize('error', [
    torch.cuda.OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB.'),
    RuntimeError('CUDA error: out of memory\nCompile with TORCH_USE_CUDA_DSA'),
    RuntimeError('CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`'),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")])
def test_lack_of_memory_frees_what_was_computed_and_the_engine_goes_on(monkeypatch, error):
    network = Failing(error)
    engine = engine_of(network)
    held_when_emptied = []
    monkeypatch.setattr(torch.cuda, 'empty_cache',
                        lambda: held_when_emptied.append(network.computed() is not None))
    with pytest.raises(EngineError, match='set a smaller network_size') as caught:
        engine.infer(RGB)
    assert held_when_emptied == [False]
    said = str(caught.value)
    assert '(1, 64, 96, 3)' in said and str(error).partition('\n')[0] in said
    assert '\n' not in said
    assert engine.infer(RGB)[0].shape == (1, 64, 96)


def test_lack_of_memory_is_recognised_behind_another_error():
    network = Failing(None, times=0)
    engine = engine_of(network)
    with pytest.raises(EngineError, match='set a smaller network_size'):
        engine.attempt((1,), lambda: _end_capturing_after(torch.cuda.OutOfMemoryError('2 GiB')))
    with pytest.raises(EngineError, match='failed on pictures of shape'):
        engine.attempt((1,), lambda: _end_capturing_after(RuntimeError('not permitted')))


def _end_capturing_after(error: Exception) -> None:
    try:
        raise error
    finally:  # as the end of torch.cuda.graph's block does
        raise RuntimeError('operation failed due to a previous error during capture')


def test_cache_that_cannot_be_emptied_hides_nothing(monkeypatch):
    def fail() -> None:
        raise RuntimeError('CUDA error: an illegal memory access was encountered')

    engine = engine_of(Failing(torch.cuda.OutOfMemoryError('CUDA out of memory.')))
    monkeypatch.setattr(torch.cuda, 'empty_cache', fail)
    with pytest.raises(EngineError, match='set a smaller network_size'):
        engine.infer(RGB)
    engine.close()
    with pytest.raises(EngineError, match='closed'):
        engine.infer(RGB)


def test_failure_is_told_with_its_cause():
    engine = engine_of(Failing(RuntimeError('CUDA error: device-side assert triggered')))
    with pytest.raises(EngineError, match='device-side assert') as caught:
        engine.infer(RGB)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_threads_of_one_engine_do_not_stick_to_the_next():
    network = Failing(None, times=0)
    for asked, expected in ((1, 1), (0, default_threads()), (3, 3),
                            (0, default_threads())):
        TorchEngine(Model(network, MODEL.spec), 'cpu', 'float32', asked, pytest.fail)
        assert torch.get_num_threads() == expected


def test_first_error_of_a_failed_capture_is_told(monkeypatch):
    said: list[str] = []
    engine = engine_of(Failing(None, times=0), announce=said.append)
    engine._captures = True  # as on a GPU
    monkeypatch.setattr(engine_torch, 'CapturedGraph', lambda network, rgb: _end_capturing_after(
        RuntimeError('operation not permitted when stream is capturing')))
    assert engine.infer(RGB)[0].shape == (1, 64, 96)
    assert len(said) == 1 and said[0].endswith('operation not permitted when stream is capturing')


def test_capture_that_lacked_memory_is_tried_again(monkeypatch):
    engine = engine_of(Failing(None, times=0))
    engine._captures = True
    monkeypatch.setattr(engine_torch, 'CapturedGraph', lambda network, rgb: _end_capturing_after(
        torch.cuda.OutOfMemoryError('CUDA out of memory.')))
    for _ in range(2):
        with pytest.raises(EngineError, match='set a smaller network_size'):
            engine.infer(RGB)


@needs_gpu
def test_capturing_that_fails_leaves_the_stream_and_tells_the_first_error():
    said: list[str] = []
    network = Failing(None, times=0)
    engine = engine_of(network, 'cuda', said.append)
    before = torch.cuda.current_stream()
    network.register_forward_hook(
        lambda *_: torch.cuda.is_current_stream_capturing() and torch.cuda.synchronize())
    assert engine.infer(RGB)[0].shape == (1, 64, 96)
    assert torch.cuda.current_stream() == before
    assert len(said) == 1 and 'previous error during capture' not in said[0]
