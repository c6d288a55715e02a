"""What an engine keeps ready for the shapes of pictures that came last."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

MOST = 8  # of a network at 360x480 each takes some 50 MB

Item = TypeVar('Item')


class Kept(Generic[Item]):
    """Items by key; of more than ``MOST``, the one that was not used for longest goes."""

    def __init__(self) -> None:
        self._items: OrderedDict[Hashable, Item] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Item]) -> Item:
        """The item of a key; made if it is not kept, and not kept if that fails."""
        if key not in self._items:
            self._items[key] = make()
            if len(self._items) > MOST:
                self._items.popitem(last=False)
        self._items.move_to_end(key)
        return self._items[key]

    @property
    def newest(self) -> Item:
        """The item that was used last; there must be one."""
        return next(reversed(self._items.values()))

    def clear(self) -> None:
        self._items.clear()
