"""Messages of several topics that belong to the same frame."""

from typing import Any

KEPT = 30  # frames that wait for their other messages


class StampJoin:
    """Collects one message of each topic per stamp.

    :param topics: that a frame needs to be complete.
    """

    def __init__(self, *topics: str) -> None:
        self._topics = frozenset(topics)
        self._parts: dict[int, dict[str, Any]] = {}

    def add(self, topic: str, stamp_ns: int, message: Any) -> dict[str, Any] | None:
        """Take a message; return all of its frame's by topic once they are complete."""
        parts = self._parts.setdefault(stamp_ns, {})
        parts[topic] = message
        if parts.keys() == self._topics:
            return self._parts.pop(stamp_ns)
        while len(self._parts) > KEPT:  # the others were lost, or nobody labelled the frame
            del self._parts[next(iter(self._parts))]
        return None
