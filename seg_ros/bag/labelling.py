"""A bag copied message by message, each image followed by what is seen in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rosbags.interfaces import Connection

from seg_ros.bag.image_messages import picture_of, read_message, write_image
from seg_ros.bag.input_bag import InputBag
from seg_ros.bag.output_bag import OutputBag
from seg_ros.bag.topics import CameraTopic
from seg_ros.errors import DataError, ImageError
from seg_ros.inference.segmenter import Segmenter


@dataclass
class Camera:
    """A labelled topic on its way from one bag to the other.

    :param labels: connection of its labels.
    :param overlay: connection of its overlays.
    :param labelled: number of its frames that have labels.
    :param refused: number of its frames that are malformed.
    :param refusal: why the first of them is.
    """

    topic: CameraTopic
    labels: Connection
    overlay: Connection
    labelled: int = 0
    refused: int = 0
    refusal: str = ''


@dataclass(frozen=True)
class Labelling:
    """How frames are labelled.

    :param min_confidence: probability, 0..1, below which a pixel becomes unknown.
    :param overlay_alpha: weight of the colours over the picture, 0..1.
    """

    segmenter: Segmenter
    min_confidence: float
    overlay_alpha: float

    def outputs(self, message: Any) -> tuple[memoryview, memoryview]:
        """Bytes of the labels and of the overlay for a message with an image.

        :raises ImageError: it is malformed.
        :raises EngineError: the inference failed.
        """
        segmentation, = self.segmenter.segment([picture_of(message)], self.min_confidence,
                                               confidence=False)
        overlay = segmentation.overlay(self.segmenter.labels.palette, self.overlay_alpha)
        return (write_image(segmentation.labels, message.header),
                write_image(overlay, message.header))


def label_bag(source: InputBag, target: OutputBag, topics: Sequence[CameraTopic],
              labelling: Labelling, advance: Callable[[], object],
              warn: Callable[[str], None]) -> list[Camera]:
    """Copy a bag and label its images.

    :param advance: called after each frame.
    :param warn: told of the first malformed frame of a topic.
    :return: one for each of ``topics``.
    :raises DataError: a message cannot be read, or no frame can be labelled.
    :raises EngineError: the inference failed.
    :raises OSError: the new bag cannot be written.
    """
    copies = {each.id: target.add_copy(each) for each in source.connections}
    cameras = {(each.topic, each.message_type): Camera(
        each, target.add_output(each.labels), target.add_output(each.overlay))
        for each in topics}
    messages = 0
    for connection, time_ns, data in source.messages():
        target.write(copies[connection.id], time_ns, data)
        messages += 1
        camera = cameras.get((connection.topic, connection.msgtype))
        if camera is not None:
            _label(camera, time_ns, data, target, labelling, warn)
            advance()
    source.check_count(messages)
    if not any(camera.labelled for camera in cameras.values()):
        first = next(iter(cameras.values()))
        raise DataError(f'no frame could be labelled; {first.topic.topic}: {first.refusal}')
    return list(cameras.values())


def _label(camera: Camera, time_ns: int, data: bytes, target: OutputBag, labelling: Labelling,
           warn: Callable[[str], None]) -> None:
    try:
        labels, overlay = labelling.outputs(read_message(data, camera.topic.message_type))
    except ImageError as error:  # the next may be fine
        camera.refused += 1
        if camera.refused == 1:
            camera.refusal = str(error)
            warn(f'frame on {camera.topic.topic} refused: {error} (said once a topic)')
        return
    target.write(camera.labels, time_ns, labels)
    target.write(camera.overlay, time_ns, overlay)
    camera.labelled += 1
