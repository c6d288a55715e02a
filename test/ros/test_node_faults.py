"""What cameras, publishers and slow engines do to the node."""

import re
import signal
import time
from array import array

import numpy as np
import pytest
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from robot import RELIABLE, WAIT_S, make_image, resident_mb, wait_until
from sensor_msgs.msg import Image

from seg_ros.drawn_scene import DrawnScene

BEST_EFFORT = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=1,
                         reliability=ReliabilityPolicy.BEST_EFFORT)


def malformed(kind: str) -> Image:
    image = make_image(np.zeros((48, 64, 3), np.uint8))
    if kind == 'zero size':
        image.width = 0
    elif kind == 'step too small':
        image.step = 64
    elif kind == 'data too short':
        image.data = image.data[:-1]
    elif kind == 'data too long':
        image.data = image.data + array('B', [0])
    elif kind == 'unknown encoding':
        image.encoding = 'jpeg2000'
    elif kind == 'too many pixels':
        image.width = image.height = 100_000
    elif kind == 'no data':
        image.data = array('B')
    return image


def test_malformed_frames_are_refused_and_the_next_good_one_is_labelled(robot):
    # Of one kind from the start: a node that subscribes anew, because it has found its camera
    # to be reliable, misses what is published meanwhile.
    node = robot.start_node(reliability='reliable')
    labels = robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    good = DrawnScene(1, 640, 480).frame(0.0)[0]
    robot.label(publisher, make_image(good, 10.0), labels)
    kinds = {'zero size': '0x48', 'step too small': 'step 64', 'data too short': '9215',
             'data too long': '9217', 'unknown encoding': 'jpeg2000',
             'too many pixels': '100000x100000', 'no data': '0 bytes'}
    for count, (kind, told) in enumerate(kinds.items(), start=1):
        publisher.publish(malformed(kind))
        status, values = robot.diagnostics(lambda values, n=count: values['refused'] == str(n))
        assert told in values['last_error'], kind
        node.wait_for_log(f'refused: .*{told}')
        time.sleep(1.1)  # the log is throttled to one a second
    assert len(re.findall('refused: ', node.log)) == len(kinds)
    robot.label(publisher, make_image(good, 20.0), labels)
    assert 'Traceback' not in node.log


def test_flood_of_malformed_frames_does_not_flood_the_log(robot):
    node = robot.start_node()
    robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    robot.wait_for_subscriber(publisher)
    started = time.monotonic()
    for _ in range(100):
        publisher.publish(malformed('data too short'))
        time.sleep(0.02)
    wait_until(lambda: 'refused' in node.log, 'an error')
    assert node.log.count('refused: ') <= time.monotonic() - started + 2


@pytest.mark.alone
def test_slow_engine_never_lags_behind(robot):
    """A 30 Hz stream into a network at a size that takes several frame times.

    By the diagnostics of one run, so that a busy machine makes both sides of a comparison longer.
    """
    node = robot.start_node(network_size='640x480')
    labels = robot.listen('/segmentation/labels')
    robot.start('seg_ros.ros.image_source', '--ros-args', '-p', 'rate_hz:=30.0', '-p',
                'width:=320', '-p', 'height:=240')
    wait_until(lambda: len(labels) >= 5, 'labels')
    memory_mb = resident_mb(node.process.pid)
    wait_until(lambda: len(labels) >= 20, 'more labels', 3 * WAIT_S)
    _, values = robot.diagnostics()
    arrived = robot.heard_at['/segmentation/labels']
    ages_s = [at - message.header.stamp.sec - message.header.stamp.nanosec / 1e9
              for message, at in zip(labels[5:20], arrived[5:20], strict=True)]
    inference_s = float(values['segment_p95_ms']) / 1e3
    assert inference_s > 2 / 30, 'the engine was to be slow here'
    # Newest frame: it waits for at most one inference, then takes one itself.
    assert np.median(ages_s) <= 2 * inference_s
    assert np.median(ages_s[-5:]) <= 2 * inference_s, 'falls behind'
    # A tenth for what is beside the inference: the image's way here, its conversion, the labels.
    assert float(values['image_age_p95_ms']) / 1e3 <= 2.1 * inference_s
    assert int(values['dropped']) > 0
    total = sum(int(values[name]) for name in ('processed', 'dropped', 'refused', 'failed'))
    assert 0 <= int(values['received']) - total <= 2  # one in hand, one in the slot
    assert resident_mb(node.process.pid) < memory_mb + 30
    stamps = [(m.header.stamp.sec, m.header.stamp.nanosec) for m in list(labels)]
    assert stamps == sorted(stamps)


@pytest.mark.alone
def test_frames_are_converted_only_once_they_are_chosen(robot):
    """Two of three frames are malformed, which is found when they are converted: those that are
    dropped unseen for a newer one are not refused.
    """
    node = robot.start_node(network_size='1280x960', diagnostics_period_s=0.2)
    labels = robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    robot.wait_for_subscriber(publisher)
    good, bad = make_image(DrawnScene(1, 320, 240).frame(0.0)[0]), malformed('data too short')
    published = 0
    while len(labels) < 10:
        for image in (bad, bad, good):
            publisher.publish(image)
            published += 1
            time.sleep(1 / 30)
        assert published < 30 * 3 * WAIT_S and node.process.poll() is None
    _, values = robot.diagnostics(lambda values: int(values['processed']) >= 10)
    count = {name: int(values[name]) for name in
             ('received', 'processed', 'dropped', 'refused', 'failed')}
    assert count['failed'] == 0
    # Every conversion ends as processed or refused. Between two inferences come at most the bad
    # frame that waits and the bad one after it.
    assert count['refused'] <= 2 * (count['processed'] + 1)
    assert count['dropped'] > 2 * (count['refused'] + count['processed']), 'was to be overloaded'
    converted = count['processed'] + count['refused']
    assert 0 <= count['received'] - count['dropped'] - converted <= 2  # in hand, in the slot


def test_publisher_may_die_and_come_back(robot):
    node = robot.start_node(no_frames_after_s=2.0)
    labels = robot.listen('/segmentation/labels')
    for _ in range(2):
        source = robot.start('seg_ros.ros.image_source')
        count = len(labels)
        wait_until(lambda n=count: len(labels) > n + 3, 'labels')
        source.stop(signal.SIGKILL)
        node.wait_for_log('no image on /image')
    assert node.process.poll() is None


def test_two_nodes_in_two_namespaces_do_not_mix(robot):
    heard = {}
    for name in ('front', 'rear'):
        robot.start_node(namespace=name)
        heard[name] = robot.listen(f'/{name}/segmentation/labels')
    scenes = {'front': DrawnScene(1, 640, 480), 'rear': DrawnScene(2, 320, 240)}
    for name, scene in scenes.items():
        publisher = robot.publisher(f'/{name}/image')
        image = make_image(scene.frame(0.0)[0], frame_id=name)
        output = robot.label(publisher, image, heard[name])
        assert (output.width, output.header.frame_id) == (image.width, name)
    for name, messages in heard.items():
        assert {message.header.frame_id for message in messages} == {name}


def test_silence_is_explained_once_with_both_sides_qos(robot):
    node = robot.start_node(reliability='reliable', no_frames_after_s=1.0)
    robot.listen('/segmentation/labels')
    node.wait_for_log('no image on /image .*reliable.*nobody publishes')
    status, _ = robot.diagnostics(lambda values: True)
    publisher = robot.publisher(qos=BEST_EFFORT)
    fresh = robot.publisher(qos=RELIABLE)
    image = make_image(DrawnScene(1, 64, 48).frame(0.0)[0])
    for _ in range(10):
        fresh.publish(image)
        time.sleep(0.1)
    robot.node.destroy_publisher(fresh)
    node.wait_for_log(r'(?s)no image on .*best_effort.*set the parameter reliability')
    assert node.log.count('no image on') == 2
    publisher.publish(image)


@pytest.mark.parametrize('qos', [BEST_EFFORT, RELIABLE], ids=['best_effort', 'reliable'])
def test_default_subscription_hears_every_camera(robot, qos):
    robot.start_node()
    labels = robot.listen('/segmentation/labels')
    robot.label(robot.publisher(qos=qos), make_image(DrawnScene(1, 640, 480).frame(0.)[0]), labels)


def test_frames_flow_where_simulated_time_has_no_clock(robot):
    robot.start_node(use_sim_time='true')
    labels = robot.listen('/segmentation/labels')
    image = make_image(DrawnScene(1, 640, 480).frame(0.)[0], 3.0)
    robot.label(robot.publisher(), image, labels)
    robot.diagnostics(lambda values: int(values['processed']) >= 1)


def test_reliability_follows_the_publishers(robot):
    """Reliable where that loses nobody, as large images are lost best-effort."""
    robot.start_node()
    labels = robot.listen('/segmentation/labels')
    publisher = robot.publisher(qos=RELIABLE)

    def wait_for(reliability: ReliabilityPolicy) -> None:
        wait_until(lambda: [info.qos_profile.reliability for info in
                            robot.node.get_subscriptions_info_by_topic('/image')] == [reliability],
                   f'a subscription that is {reliability.name}')

    wait_for(ReliabilityPolicy.RELIABLE)
    second = robot.publisher(qos=BEST_EFFORT)
    wait_for(ReliabilityPolicy.BEST_EFFORT)
    for each, stamp_s in ((publisher, 1.0), (second, 2.0)):
        robot.label(each, make_image(DrawnScene(1, 64, 48).frame(0.)[0], stamp_s), labels)
    robot.node.destroy_publisher(second)
    wait_for(ReliabilityPolicy.RELIABLE)


def test_time_before_the_epoch_is_no_failure(robot):
    robot.start_node()
    labels = robot.listen('/segmentation/labels')
    image = make_image(DrawnScene(1, 64, 48).frame(0.)[0], 0.0)
    image.header.stamp.sec = -5
    robot.label(robot.publisher(), image, labels)
    _, values = robot.diagnostics(lambda values: int(values['processed']) >= 1)
    assert values['failed'] == '0'


def test_diagnostics_tell_counts_times_and_engine(robot):
    robot.start_node(diagnostics_period_s=0.2)
    labels = robot.listen('/segmentation/labels')
    publisher = robot.publisher()
    for stamp_s in (5.0, 6.0, 7.0):
        robot.label(publisher, make_image(DrawnScene(1, 640, 480).frame(0.)[0], stamp_s), labels)
    _, values = robot.diagnostics(lambda values: int(values.get('processed', 0)) >= 3)
    assert values['state'] == 'active'
    assert values['topic'] == '/image'
    assert values['engine'] in ('openvino', 'torch')
    assert {'device', 'precision', 'received', 'dropped', 'refused', 'failed'} <= values.keys()
    for stage in ('convert', 'segment', 'publish', 'latency', 'image_age'):
        assert 0 <= float(values[f'{stage}_p50_ms']) <= float(values[f'{stage}_p95_ms'])
