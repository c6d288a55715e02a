"""Which topics of a bag are labelled, and what their outputs are called."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seg_ros.bag.image_messages import COMPRESSED_IMAGE, IMAGE, why_not_labelled
from seg_ros.bag.input_bag import InputBag
from seg_ros.errors import ConfigError

# What the node publishes, and what an image_transport makes of it.
_OUTPUT = re.compile(r'(^|/)segmentation/(labels|confidence|overlay|color|mask_rle)(/\w+)?$')
_MESSAGES_TRIED = 10


@dataclass(frozen=True)
class CameraTopic:
    """A topic that is labelled.

    :param message_type: ``IMAGE`` or ``COMPRESSED_IMAGE``.
    :param frames: number of its messages.
    """

    topic: str
    message_type: str
    frames: int

    @property
    def labels(self) -> str:
        """Topic of its labels, that of a node in the namespace of the images."""
        return f'{self._namespace}/segmentation/labels'

    @property
    def overlay(self) -> str:
        """Topic of its overlays."""
        return f'{self._namespace}/segmentation/overlay'

    @property
    def raw_topic(self) -> str:
        """What image_transport calls the same pictures uncompressed."""
        compressed = self.message_type == COMPRESSED_IMAGE
        return self.topic.removesuffix('/compressed') if compressed else self.topic

    @property
    def _namespace(self) -> str:
        return self.raw_topic.rpartition('/')[0]


def choose_topics(bag: InputBag, named: Sequence[str], warn: Callable[[str], None]) -> \
        list[CameraTopic]:
    """Topics that are labelled.

    :param named: those and no others; if empty, all that hold pictures and are not labelled yet.
    :param warn: told of each topic with images that is left alone.
    :raises ConfigError: a named topic cannot be labelled, two would have the same outputs, or
        there is none.
    """
    cameras = _cameras(bag)
    if not named:
        chosen = _without_compressed_twins(
            [each for each in cameras.values() if each.frames and not _OUTPUT.search(each.topic)
             and not _warned(bag, each, warn)], warn)
    else:
        chosen = [_named(bag, cameras, topic) for topic in dict.fromkeys(named)]
    if not chosen:
        topics = ', '.join(sorted({each.topic for each in bag.connections})) or 'no topics'
        raise ConfigError(f'the bag has no topic to label; it has {topics}')
    seen: dict[str, CameraTopic] = {}
    for each in chosen:
        other = seen.setdefault(each.labels, each)
        if other is not each:
            raise ConfigError(f'{other.topic} and {each.topic}: the labels of both would be '
                              f'{each.labels}; choose one with --topic')
    return chosen


def _cameras(bag: InputBag) -> dict[str, CameraTopic]:
    cameras: dict[str, CameraTopic] = {}
    for each in bag.connections:
        if each.msgtype in (IMAGE, COMPRESSED_IMAGE):
            before = cameras.get(each.topic)
            if before is None:
                cameras[each.topic] = CameraTopic(each.topic, each.msgtype, each.msgcount)
            elif before.message_type == each.msgtype:
                cameras[each.topic] = CameraTopic(each.topic, each.msgtype,
                                                  before.frames + each.msgcount)
    return cameras


def _named(bag: InputBag, cameras: dict[str, CameraTopic], topic: str) -> CameraTopic:
    camera = cameras.get(topic)
    if camera is None:
        raise ConfigError(f'--topic {topic}: the bag has no such topic of images; it has '
                          f'{", ".join(sorted(cameras)) or "none"}')
    if reason := _why_not(bag, camera, depth=True):
        raise ConfigError(f'--topic {topic}: {reason}')
    return camera


def _warned(bag: InputBag, camera: CameraTopic, warn: Callable[[str], None]) -> bool:
    reason = _why_not(bag, camera, depth=False)
    if reason:
        warn(f'{camera.topic} is not labelled: {reason}')
    return bool(reason)


def _why_not(bag: InputBag, camera: CameraTopic, depth: bool) -> str:
    taken = {each.topic for each in bag.connections} & {camera.labels, camera.overlay}
    if taken:
        return (f'the bag has {" and ".join(sorted(taken))} already; take them out of it first '
                'to have them made anew')
    messages = bag.first_messages(camera.topic, camera.message_type, _MESSAGES_TRIED)
    return why_not_labelled(messages, camera.message_type, depth)


def _without_compressed_twins(cameras: Sequence[CameraTopic], warn: Callable[[str], None]) -> \
        list[CameraTopic]:
    raw = {each.topic for each in cameras if each.message_type == IMAGE}
    twins = [each for each in cameras if each.message_type == COMPRESSED_IMAGE
             and each.raw_topic in raw]
    for each in twins:
        warn(f'{each.topic} is not labelled: {each.raw_topic} is, which has the same pictures')
    return [each for each in cameras if each not in twins]
