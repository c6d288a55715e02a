"""The way from frames to labels and pictures of them on the GPU, without a stop on the CPU."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from seg_ros.inference.engine_torch import TorchEngine
from seg_ros.inference.engines import Engine
from seg_ros.inference.kept import Kept
from seg_ros.inference.segmenter import Segmentation, Segmenter
from seg_ros.label_map import LabelMap
from seg_ros.labels import UNKNOWN
from seg_ros.model_file import Model


def create_segmenter(model: Model, engine: Engine, network_size: tuple[int, int] | None = None,
                     output_size: tuple[int, int] | None = None,
                     label_map: LabelMap | None = None) -> Segmenter:
    """Make the segmenter that suits the engine; arguments as of :class:`Segmenter`."""
    if isinstance(engine, TorchEngine) and engine.on_gpu:
        return DeviceSegmenter(model, engine, network_size, output_size, label_map)
    return Segmenter(model, engine, network_size, output_size, label_map)


class DeviceSegmenter(Segmenter):
    """A segmenter whose frames are uploaded whole; results are downloaded when they are read.

    It resizes as :func:`seg_ros.inference.segmenter.resize_picture` does, but for the rounding of
    bilinear values and, where an odd side is halved, the weight of pixels that two areas share.

    :param engine: whose device does all the work.
    """

    def __init__(self, model: Model, engine: TorchEngine,
                 network_size: tuple[int, int] | None = None,
                 output_size: tuple[int, int] | None = None,
                 label_map: LabelMap | None = None) -> None:
        super().__init__(model, engine, network_size, output_size, label_map)
        self._torch = engine
        self._ids = (None if self._id_of_channel is None
                     else torch.from_numpy(self._id_of_channel).to(engine.device))
        self._palettes: Kept[Tensor] = Kept()

    def _label(self, frames: Sequence[np.ndarray], size: tuple[int, int],
               min_confidence: float, confidence: bool) -> list[Segmentation]:
        return self._torch.attempt((len(frames), *size, 3), lambda: self._label_on_device(
            frames, size, min_confidence, confidence))

    @torch.no_grad()
    def _label_on_device(self, frames: Sequence[np.ndarray], size: tuple[int, int],
                         min_confidence: float, confidence: bool) -> list[Segmentation]:
        uploaded = [self._upload(frame) for frame in frames]
        labels, probabilities = self._torch.run(
            torch.stack([shrink(frame, size) for frame in uploaded]))
        if self._ids is not None:
            labels = self._ids[labels.long()]
        if min_confidence > 0:
            labels = labels.masked_fill(probabilities < min_confidence * 255, UNKNOWN)
        results: list[Segmentation] = []
        for index, frame in enumerate(frames):
            at = self.size_of_result(frame)
            results.append(DeviceSegmentation(
                self._torch, self._palettes, resize_map(labels[index], at),
                resize_map(probabilities[index], at) if confidence else None,
                uploaded[index]))
        return results

    def _upload(self, frame: np.ndarray) -> Tensor:
        picture = torch.from_numpy(np.ascontiguousarray(frame))
        if self._torch.on_gpu:
            picture = picture.pin_memory()
        return picture.to(self._torch.device, non_blocking=True)


class DeviceSegmentation(Segmentation):
    """Labels and pictures on the device; each is computed and downloaded when it is asked for.

    :param palettes: that are on the device already, by their bytes.
    :raises EngineError: at reading, what failed on the device meanwhile.
    """

    def __init__(self, engine: TorchEngine, palettes: Kept[Tensor], labels: Tensor,
                 confidence: Tensor | None, rgb: Tensor) -> None:
        self._engine = engine
        self._palettes = palettes
        self._on_device = labels, confidence, rgb

    @cached_property
    def labels(self) -> np.ndarray:  # type: ignore[override]
        return self._download(lambda: self._on_device[0])

    @cached_property
    def confidence(self) -> np.ndarray | None:  # type: ignore[override]
        confidence = self._on_device[1]
        return None if confidence is None else self._download(lambda: confidence)

    def color(self, palette: np.ndarray) -> np.ndarray:
        return self._download(lambda: self._color(palette))

    def overlay(self, palette: np.ndarray, alpha: float) -> np.ndarray:
        return self._download(lambda: self._mix(palette, alpha))

    def _mix(self, palette: np.ndarray, alpha: float) -> Tensor:
        labels, _, rgb = self._on_device
        picture = rgb.float()
        if rgb.shape[:2] != labels.shape:
            picture = _resize(picture, (labels.shape[0], labels.shape[1])).round()
        mixed = torch.where((labels == UNKNOWN)[..., None], picture,
                            (1 - alpha) * picture + alpha * self._color(palette).float())
        return mixed.round().to(torch.uint8)

    def _color(self, palette: np.ndarray) -> Tensor:
        labels = self._on_device[0]
        uploaded = self._palettes.get(palette.tobytes(), lambda: torch.from_numpy(
            np.ascontiguousarray(palette)).to(labels.device))
        return uploaded[labels.long()]

    def _download(self, make: Callable[[], Tensor]) -> np.ndarray:
        """Download what is made on the device."""
        return self._engine.attempt(tuple(self._on_device[0].shape),
                                    lambda: make().cpu().numpy())


def shrink(frame: Tensor, size: tuple[int, int]) -> Tensor:
    """Resize (H, W, 3) uint8: halved by areas as often as possible, the rest bilinearly."""
    picture = frame.float()
    while picture.shape[0] >= 2 * size[0] and picture.shape[1] >= 2 * size[1]:
        half = (picture.shape[0] // 2, picture.shape[1] // 2)
        picture = (_to_picture(F.interpolate(_to_map(picture), size=half, mode='area')) + 0.5
                   ).floor()  # as OpenCV rounds
    return _resize(picture, size).round().to(torch.uint8)


def resize_map(values: Tensor, size: tuple[int, int]) -> Tensor:
    """Resize (H, W) uint8 to the values of the nearest pixels."""
    # By whole numbers: in floating point, which of two equally near pixels is taken varies.
    rows, columns = ((2 * torch.arange(side, device=values.device) + 1) * was // (2 * side)
                     for was, side in zip(values.shape, size, strict=True))
    return values[rows[:, None], columns]


def _resize(picture: Tensor, size: tuple[int, int]) -> Tensor:
    if tuple(picture.shape[:2]) == size:
        return picture
    return _to_picture(F.interpolate(_to_map(picture), size=size, mode='bilinear'))


def _to_map(picture: Tensor) -> Tensor:
    return picture.permute(2, 0, 1)[None]


def _to_picture(values: Tensor) -> Tensor:
    return values[0].permute(1, 2, 0)
