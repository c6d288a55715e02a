"""What is wrong with something, collected instead of ending at the first."""

from collections.abc import Iterator
from contextlib import contextmanager

from seg_ros.errors import DataError

SHOWN = 20  # of one kind


class Problems:
    """What is wrong, by kind, in the order in which the kinds came up."""

    def __init__(self) -> None:
        self.by_kind: dict[str, list[str]] = {}

    def __len__(self) -> int:
        return sum(map(len, self.by_kind.values()))

    def add(self, kind: str, text: str) -> None:
        lines = self.by_kind.setdefault(kind, [])
        if text not in lines:  # a list of classes is wrong once, whichever split is asked for
            lines.append(text)

    @contextmanager
    def noted(self, kind: str) -> Iterator[None]:
        """Take note of a DataError that is raised inside, and go on."""
        try:
            yield
        except DataError as error:
            self.add(kind, str(error))

    def lines(self) -> Iterator[str]:
        """Tell the first few of each kind."""
        for kind, texts in self.by_kind.items():
            yield f'{kind}: {len(texts)}'
            yield from (f'  {text}' for text in texts[:SHOWN])
            if len(texts) > SHOWN:
                yield f'  ... and {len(texts) - SHOWN} more'
