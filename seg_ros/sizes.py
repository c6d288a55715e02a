"""Sizes of pictures as text."""

import re

SMALLEST, LARGEST = 32, 8192
EXPECTED = f'a size such as 480x360 (width x height, each {SMALLEST} to {LARGEST})'


def read_size(text: str) -> tuple[int, int] | None:
    """Read ``WIDTHxHEIGHT`` as (height, width); None where it is not one, or out of range."""
    match = re.fullmatch(r'(\d{2,4})x(\d{2,4})', text, re.ASCII)
    if match is None:
        return None
    width, height = int(match[1]), int(match[2])
    fits = SMALLEST <= min(width, height) and max(width, height) <= LARGEST
    return (height, width) if fits else None
