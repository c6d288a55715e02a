import threading

import pytest

from seg_ros.ros.frame_slots import FrameSlots


def taken(slots: FrameSlots, *counts: int) -> list[str]:
    """Messages that are taken; their size is their length."""
    return [frame.message for frame in slots.take(counts or (1,), len)]


def test_newer_frame_takes_the_place_of_an_older_one_of_its_camera():
    slots = FrameSlots()
    assert slots.put('front', 'old') is False
    assert slots.put('left', 'other') is False
    assert slots.put('front', 'new') is True
    assert taken(slots) == ['new']
    assert taken(slots) == ['other']
    assert slots.put('front', 'next') is False


def test_camera_whose_last_frame_was_taken_longest_ago_comes_first():
    slots = FrameSlots()
    for camera in 'abc':
        slots.put(camera, f'{camera}1')
    assert [taken(slots) for _ in 'abc'] == [['a1'], ['b1'], ['c1']]
    for message in ('c2', 'b2', 'a2', 'b3'):
        slots.put(message[0], message)
    assert [taken(slots) for _ in 'abc'] == [['a2'], ['b3'], ['c2']]


@pytest.mark.parametrize(('periods_ms', 'turn_ms'), [
    ((10, 20, 50, 90), 100),        # each sends more than its share, at rates of its own
    ((133, 133, 133, 133), 78),     # all send at the same moments
    ((59, 59, 59, 59, 59, 59), 17),
    ((30, 180), 100)])
def test_cameras_have_the_same_share_whatever_their_rates(periods_ms, turn_ms):
    slots = FrameSlots()
    turns = []
    for now_ms in range(1, 400 * turn_ms):
        for camera, period_ms in enumerate(periods_ms):
            if now_ms % period_ms == 1:
                slots.put(camera, camera)
        if now_ms % turn_ms == 0:
            turns += [frame.message for frame in slots.take((1,), id)]
    counts = [turns.count(camera) for camera in range(len(periods_ms))]
    assert max(counts) - min(counts) <= 0.01 * len(turns), counts


def test_slow_camera_loses_no_frame_to_fast_ones():
    """One that sends less than its share has all it sends labelled; the others share the rest."""
    slots = FrameSlots()
    turns = []
    for now_ms in range(1, 100_000):
        for camera, period_ms in (('slow', 1000), ('fast', 10), ('faster', 5)):
            if now_ms % period_ms == 1:
                assert not slots.put(camera, camera) or camera != 'slow'
        if now_ms % 100 == 0:
            turns += [frame.message for frame in slots.take((1,), id)]
    assert turns.count('slow') == 100
    assert abs(turns.count('fast') - turns.count('faster')) <= 1


def test_as_many_frames_of_one_size_as_are_allowed_are_taken_at_once():
    slots = FrameSlots()
    for camera, message in enumerate(['aa', 'b', 'cc', 'dd', 'e', 'ff']):
        slots.put(camera, message)
    assert taken(slots, 1, 2, 3) == ['aa', 'cc', 'dd']
    assert taken(slots, 1, 2, 3) == ['b', 'e']
    assert taken(slots, 1, 2, 3) == ['ff']


@pytest.mark.parametrize('sizes', ['AAAB', 'AAABB', 'AAAAAB', 'ABCABC', 'AAAA'])
def test_cameras_have_the_same_share_whatever_their_sizes(sizes):
    """All of them wait whenever the network is free, and it takes up to four of one size."""
    slots = FrameSlots()
    turns = dict.fromkeys(range(len(sizes)), 0)
    most = 0
    for _ in range(100 * len(sizes)):
        for camera, size in enumerate(sizes):
            slots.put(camera, size)
        frames = slots.take((1, 2, 4), str)
        assert len({frame.message for frame in frames}) == 1
        most = max(most, len(frames))
        for frame in frames:
            turns[frame.camera] += 1
    assert max(turns.values()) - min(turns.values()) <= 1, turns
    assert most > 1


def test_no_more_frames_are_taken_than_an_allowed_number():
    slots = FrameSlots()
    for camera in 'abc':
        slots.put(camera, camera)
    assert taken(slots, 1, 2, 4) == ['a', 'b']
    assert taken(slots, 1, 2, 4) == ['c']


@pytest.mark.parametrize('counts', [(1,), (1, 2)])
def test_take_waits_for_a_frame_and_for_no_more(counts):
    slots = FrameSlots()
    got = []
    thread = threading.Thread(target=lambda: got.extend(taken(slots, *counts)))
    thread.start()
    slots.put('front', 'frame')
    thread.join(10)
    assert got == ['frame']


def test_close_ends_the_wait_and_forgets_the_frames():
    slots = FrameSlots()
    got = []
    thread = threading.Thread(target=lambda: got.append(taken(slots)))
    thread.start()
    slots.close()
    thread.join(10)
    assert got == [[]]
    slots.put('front', 'late')
    assert taken(slots) == []
