import threading

from seg_ros.ros.frame_slot import FrameSlot


def test_newer_frame_takes_the_place_of_an_older_one():
    slot = FrameSlot()
    assert slot.put('old') is False
    assert slot.put('new') is True
    assert slot.take().message == 'new'
    assert slot.put('next') is False


def test_take_waits_for_a_frame():
    slot = FrameSlot()
    taken = []
    thread = threading.Thread(target=lambda: taken.append(slot.take()))
    thread.start()
    slot.put('frame')
    thread.join(10)
    assert taken[0].message == 'frame'


def test_close_ends_the_wait_and_forgets_the_frame():
    slot = FrameSlot()
    taken = []
    thread = threading.Thread(target=lambda: taken.append(slot.take()))
    thread.start()
    slot.close()
    thread.join(10)
    assert taken == [None]
    slot.put('late')
    assert slot.take() is None
