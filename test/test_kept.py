"""What engines keep ready."""

import pytest

from seg_ros.inference.kept import MOST, Kept


def test_what_was_not_used_for_longest_goes_first():
    made = []
    kept = Kept()

    def get(key: int) -> str:
        return kept.get(key, lambda: made.append(key) or f'item {key}')

    for key in range(MOST):
        assert get(key) == f'item {key}'
    assert get(0) == kept.newest == 'item 0'     # used again: 1 is the oldest now
    assert get(MOST) == kept.newest == f'item {MOST}'
    assert made == list(range(MOST + 1))
    get(0)
    assert made == list(range(MOST + 1))
    get(1)
    assert made == [*range(MOST + 1), 1]


def test_item_that_cannot_be_made_is_not_kept():
    kept = Kept()
    with pytest.raises(ZeroDivisionError):
        kept.get('shape', lambda: 1 // 0)
    assert kept.get('shape', lambda: 5) == 5
    kept.clear()
    assert kept.get('shape', lambda: 6) == 6
