"""Levels on /diagnostics, of the real node."""

import time

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from robot import make_image, stamp
from test_node_faults import malformed

from seg_ros.drawn_scene import DrawnScene

OK, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN


def test_level_and_summary_tell_what_a_person_should_look_at(robot):
    robot.start_node(diagnostics_period_s=0.1, no_frames_after_s=2.0, reliability='reliable',
                     network_size='64x48', **{'qos_overrides./image.subscription.depth': 200})
    image = make_image(DrawnScene(1, 64, 48).frame(0.0)[0])

    def summary(received: int) -> tuple[bytes, str]:
        status, _ = robot.diagnostics(lambda values: int(values['received']) >= received and int(
            values['received']) == sum(int(values[fate]) for fate in
                                       ('processed', 'dropped', 'refused', 'failed')))
        return status.level, status.message

    assert summary(0) == (OK, 'nobody listens to an output')
    robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    robot.wait_for_subscriber(publisher)
    sent = 0
    for age_s, level, text in ((0.0, OK, 'labelling'), (30.0, WARN, 'images are 30.'),
                               (-30.0, WARN, 's in the future'), (0.0, OK, 'labelling')):
        for _ in range(12):
            image.header.stamp = stamp(time.time() - age_s)
            publisher.publish(image)
            sent += 1
            time.sleep(0.05)
        got = summary(sent - 1)
        assert got[0] == level and text in got[1], got
    assert robot.set_parameter('age_limit_s', 0.001) == (True, '')
    got = robot.diagnostics()[0]
    assert got.level == WARN and 'old' in got.message
    assert robot.set_parameter('age_limit_s', 1.0) == (True, '')
    for _ in range(2 * sent):
        publisher.publish(malformed('data too short'))
        sent += 1
        time.sleep(0.01)
    status, _ = robot.diagnostics(lambda values: int(values['refused']) > 0.55 * sent)
    assert status.level == WARN
    assert 'of the images refused: see last_error' in status.message
    time.sleep(2.2)
    got = summary(sent - 1)
    assert got[0] == WARN and got[1].startswith('no image for ')


def test_camera_faster_than_the_engine_is_told(robot):
    robot.start_node(network_size='640x480', diagnostics_period_s=0.2, age_limit_s=3600)
    robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    with robot.filming({publisher: 30.0}, make_image(np.zeros((48, 64, 3), np.uint8))):
        status, values = robot.diagnostics(lambda values: int(values['received']) > 60)
    assert status.level == WARN
    assert 'of the images dropped: the camera is faster than the engine' in status.message
    assert int(values['dropped']) > 0.5 * int(values['received'])
