"""How an engine tells the user, in a line, what it does."""

import sys
from typing import Protocol


class Announce(Protocol):
    """Is told, in a line, what the user should know."""

    def __call__(self, message: str, *, warning: bool = True) -> None: ...


def print_line(message: str, *, warning: bool = True) -> None:
    """Print it to standard error, whether it is a warning or not."""
    print(message, file=sys.stderr)
