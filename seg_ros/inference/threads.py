"""How many threads torch computes in: one number for the whole process."""

from functools import cache

import torch


@cache
def default_threads() -> int:
    """As many as there were when this was asked first: before anything here changes it."""
    return torch.get_num_threads()


def use_threads(threads: int) -> None:
    """Have torch compute in as many threads; 0 is the default."""
    default = default_threads()  # to be asked before the first change, whatever that is to
    torch.set_num_threads(threads or default)
