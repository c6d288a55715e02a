"""QoS of topics by parameter."""

import pytest
import rclpy
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from robot import make_image, wait_until

from seg_ros.drawn_scene import DrawnScene
from seg_ros.errors import ConfigError
from seg_ros.ros.camera_qos import CameraQos
from seg_ros.ros.qos_overrides import override_qos

GIVEN = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=3,
                   reliability=ReliabilityPolicy.RELIABLE)


@pytest.fixture
def node_with():
    """Make a node to which these QoS parameters of /a's subscription are given."""
    context = rclpy.Context()
    rclpy.init(context=context)
    nodes = []

    def make(**values) -> Node:
        nodes.append(Node('qos', context=context, parameter_overrides=[
            Parameter(f'qos_overrides./a.subscription.{name}', value=value)
            for name, value in values.items()]))
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()
    context.try_shutdown()


def test_policies_that_nobody_overrides_stay_as_given(node_with):
    node = node_with(depth=7, durability='transient_local')
    for _ in range(2):  # a topic may be made again
        qos = override_qos(node, '/a', 'subscription', GIVEN)
        assert (qos.depth, qos.durability) == (7, DurabilityPolicy.TRANSIENT_LOCAL)
        assert (qos.history, qos.reliability) == (GIVEN.history, GIVEN.reliability)
    assert GIVEN.depth == 3
    assert override_qos(node, '/a', 'publisher', GIVEN) == GIVEN
    assert override_qos(node, '/b', 'subscription', GIVEN) == GIVEN
    assert node.get_parameter('qos_overrides./b.subscription.reliability').value == 'reliable'
    assert node.get_parameter('qos_overrides./b.subscription.depth').value == 3


@pytest.mark.parametrize(('name', 'value', 'expected'), [
    ('reliability', 'sometimes', 'reliable, best_effort'), ('reliability', 1, 'best_effort'),
    ('reliability', 'unknown', 'best_effort'), ('history', 'all', 'keep_last, keep_all'),
    ('durability', True, 'transient_local'), ('depth', 0, '1 to 1000'),
    ('depth', 'deep', '1 to 1000'), ('depth', 2.0, '1 to 1000'), ('depth', True, '1 to 1000')])
def test_value_that_a_policy_does_not_have_is_refused(node_with, name, value, expected):
    with pytest.raises(ConfigError) as raised:
        override_qos(node_with(**{name: value}), '/a', 'subscription', GIVEN)
    assert f'qos_overrides./a.subscription.{name}: got {value!r}' in str(raised.value)
    assert expected in str(raised.value)


@pytest.mark.parametrize('value', [True, 1.0])
def test_what_only_equals_the_depth_that_is_given_is_refused(node_with, value):
    with pytest.raises(ConfigError, match='expected a whole number from 1 to 1000'):
        override_qos(node_with(depth=value), '/a', 'subscription', QoSProfile(depth=1))


@pytest.mark.parametrize('parameter', ['auto', 'best_effort', 'reliable'])
@pytest.mark.parametrize('override', ['best_effort', 'reliable'])
def test_override_stands_above_the_parameter_reliability(node_with, parameter, override):
    camera_qos = CameraQos(node_with(reliability=override), '/a', parameter)
    assert camera_qos.choose().reliability.name.lower() == override


def test_parameter_reliability_holds_anew_at_each_configure(node_with):
    node = node_with()
    chosen = [CameraQos(node, '/a', each).choose().reliability.name
              for each in ('best_effort', 'reliable', 'auto')]
    assert chosen == ['BEST_EFFORT', 'RELIABLE', 'BEST_EFFORT']


def test_topics_of_the_node_have_the_qos_that_parameters_give(robot):
    robot.start_node(**{
        'qos_overrides./image.subscription.reliability': 'reliable',
        'qos_overrides./segmentation/labels.publisher.durability': 'transient_local',
        'qos_overrides./segmentation/overlay.publisher.reliability': 'best_effort',
        'qos_overrides./diagnostics.publisher.depth': 5})
    publisher = robot.publisher()
    first = robot.listen('/segmentation/color')
    robot.label(publisher, make_image(DrawnScene(1, 96, 64).frame(0.0)[0]), first)
    ends = robot.node.get_subscriptions_info_by_topic('/image')
    assert [end.qos_profile.reliability.name for end in ends] == ['RELIABLE']
    ends = robot.node.get_publishers_info_by_topic('/segmentation/overlay')
    assert [end.qos_profile.reliability.name for end in ends] == ['BEST_EFFORT']
    ends = robot.node.get_publishers_info_by_topic('/segmentation/labels')
    assert [end.qos_profile.durability.name for end in ends] == ['TRANSIENT_LOCAL']
    assert robot.get_parameter('qos_overrides./diagnostics.publisher.depth') == 5
    assert robot.set_parameter('qos_overrides./diagnostics.publisher.depth', 6)[0] is False


def test_wrong_override_is_told_when_the_node_is_configured(robot):
    node = robot.start_node(wait='cannot configure', **{
        'qos_overrides./segmentation/labels.publisher.reliability': 'yes_please'})
    node.wait_for_log(r"cannot configure: parameter qos_overrides\./segmentation/labels\.publisher"
                      r"\.reliability: got 'yes_please', expected one of ")
    assert 'Traceback' not in node.log
    wait_until(lambda: robot.state() == 'unconfigured', 'the node to be unconfigured')
    assert not robot.node.get_publishers_info_by_topic('/segmentation/overlay')
