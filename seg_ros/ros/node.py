"""seg_node: the managed node that labels the frames of one or several cameras."""

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import HistoryPolicy, QoSProfile
from rclpy.timer import Timer

from seg_ros.errors import ConfigError, SegRosError
from seg_ros.labels import LabelSet
from seg_ros.ros.camera_stream import CameraStream
from seg_ros.ros.config import TABLE, declare_parameters, read_cameras, read_parameter
from seg_ros.ros.diagnostics import make_diagnostics
from seg_ros.ros.labelling import Labelling
from seg_ros.ros.parameter import warn_of_unknown_parameters
from seg_ros.ros.process import make_node, run_process
from seg_ros.ros.qos_overrides import override_qos
from seg_ros.ros.spinning import single_threaded_executor

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
CLASS_PARAMETERS: dict[str, tuple[list, str]] = {
    'class_names': ([''], 'Names of the published classes, in the order of class_colors.'),
    'class_colors': ([0], 'Red, green, blue of each class in turn, 0..255.')}
DIAGNOSTICS_QOS = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=1)


class SegmentationNode(LifecycleNode):
    """Subscribes to ``image`` and publishes ``segmentation/...``, of each camera.

    :raises ConfigError: a parameter given at start-up cannot be used.
    """

    def __init__(self) -> None:
        self._labelling: Labelling | None = None  # as long as the node is configured
        self._announced = ''  # of the engine
        self._refusal = ''  # why the last transition failed
        super().__init__('segmentation')
        declare_parameters(self)
        self._changing_classes = False
        for name, (empty, description) in CLASS_PARAMETERS.items():
            self.declare_parameter(name, empty, ParameterDescriptor(
                description=f'{description} Read-only.'), ignore_override=True)
        self.add_on_set_parameters_callback(self._check_parameters)
        self._diagnostics = self.create_publisher(
            DiagnosticArray, '/diagnostics',
            override_qos(self, '/diagnostics', 'publisher', DIAGNOSTICS_QOS))
        self._diagnostics_timer = self._every(read_parameter(self, 'diagnostics_period_s'),
                                              self._publish_diagnostics)
        self._every(0.5, self._watch_cameras)
        self._autostart_timer: Timer | None = None
        if read_parameter(self, 'autostart'):
            self._autostart_timer = self._every(0.0, self._autostart)

    def _every(self, period_s: float, callback: Callable[[], None]) -> Timer:
        """Make a timer that runs on, also where use_sim_time waits for a clock."""
        return self.create_timer(period_s, callback,
                                 clock=Clock(clock_type=ClockType.STEADY_TIME))

    # Lifecycle: rclpy turns an exception in a transition into ERROR without logging it.

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        return self._guard('configure', self._configure, undo=self._release)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        return self._guard('activate', self._activate, undo=self._deactivate)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        return self._guard('deactivate', self._deactivate)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        return self._guard('clean up', self._release)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        return self._guard('shut down', self._release)

    def _guard(self, what: str, work: Callable[[], None],
               undo: Callable[[], None] | None = None) -> TransitionCallbackReturn:
        self._refusal = ''
        try:
            work()
        except SegRosError as error:
            self._refusal = f'cannot {what}: {error}'
            self.get_logger().error(self._refusal)
        except Exception as error:  # a fault of ours: shown whole, and the node stays in its state
            if not self.context.ok():
                return FAILURE  # a signal ended ROS underneath: no fault, and nobody to tell
            self._refusal = f'cannot {what}: {type(error).__name__}: {error}'
            self.get_logger().error(f'cannot {what}:\n{traceback.format_exc()}')
        else:
            return SUCCESS
        if undo is not None:
            undo()
        return FAILURE

    def _configure(self) -> None:
        self._use(self._values())
        warn_of_unknown_parameters(self)  # by now those of the cameras' topics are declared

    def _values(self) -> dict[str, Any]:
        return {name: read_parameter(self, name) for name in TABLE}

    def _use(self, values: Mapping[str, Any]) -> None:
        """Get ready what these parameters ask for; then, and not before, let go what was."""
        labelling = Labelling(self, values, self._announce)
        if self._labelling is not None:
            self._labelling.close()
        self._labelling = labelling
        self._show_classes(labelling.labels)

    def _announce(self, message: str, *, warning: bool = True) -> None:
        """Say what the engine does, at once: it may take minutes."""
        if warning:
            self.get_logger().warning(message)
        else:
            self.get_logger().info(message)
        self._announced = message
        self._publish_diagnostics()

    def _activate(self) -> None:
        if self._labelling is None:
            raise ConfigError('the node is not configured; configure it first')
        self._labelling.start()
        topics = ', '.join(camera.topic for camera in self._labelling.cameras.values())
        self.get_logger().info(f'labelling {topics}')

    def _deactivate(self) -> None:
        if self._labelling is not None:
            self._labelling.stop()

    def _release(self) -> None:
        """Give back everything that configure took."""
        if self._labelling is not None:
            self._labelling.close()
        self._labelling = None
        self._announced = ''

    def _autostart(self) -> None:
        if self._autostart_timer is not None:
            self.destroy_timer(self._autostart_timer)
            self._autostart_timer = None
        if self.trigger_configure() == SUCCESS:
            self.trigger_activate()

    # Parameters

    def _check_parameters(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        try:
            for parameter in parameters:
                self._check_parameter(parameter)
            # The model first: it alone may be refused yet.
            for parameter in sorted(parameters, key=lambda each: each.name != 'model'):
                self._take_up(parameter)
        except SegRosError as error:
            return SetParametersResult(successful=False, reason=str(error))
        except Exception as error:  # a fault of ours: shown whole, and all stays as it was
            if not self.context.ok():
                raise  # a signal ended ROS underneath
            self.get_logger().error(f'cannot change parameters:\n{traceback.format_exc()}')
            return SetParametersResult(successful=False, reason=f'{type(error).__name__}: {error}')
        return SetParametersResult(successful=True)

    def _check_parameter(self, parameter: Parameter) -> None:
        """:raises ConfigError: it cannot change so now."""
        name = parameter.name
        if name in CLASS_PARAMETERS and not self._changing_classes:
            raise ConfigError(f'parameter {name}: read-only; it follows from the model file')
        if name not in TABLE:
            return
        if self._labelling is not None and not TABLE[name].live:
            if name != 'model':
                raise ConfigError(f'parameter {name}: cannot change while the node is configured; '
                                  'deactivate and clean it up first')
            if self._state() != 'inactive':
                raise ConfigError('parameter model: cannot change while the node is configured '
                                  f'and {self._state()}; deactivate it first')
        TABLE[name].check(parameter.value)

    def _take_up(self, parameter: Parameter) -> None:
        """Do at once what a changed parameter asks for.

        :raises SegRosError: a new model cannot be used; the old one stays.
        """
        if parameter.name == 'diagnostics_period_s':
            self._diagnostics_timer.timer_period_ns = int(1e9 * parameter.value)
            self._diagnostics_timer.reset()
        if parameter.name == 'model' and self._labelling is not None:
            self._use({**self._values(), 'model': parameter.value})

    def _state(self) -> str:
        """Label of the lifecycle state."""
        return self._state_machine.current_state[1]

    def _show_classes(self, labels: LabelSet) -> None:
        self._changing_classes = True
        try:
            self.set_parameters([
                Parameter('class_names', value=list(labels.names)),
                Parameter('class_colors', value=[c for color in labels.colors for c in color])])
        finally:
            self._changing_classes = False

    # Watching

    def _publish_diagnostics(self) -> None:
        values: dict[str, str] = {}
        cameras: Mapping[str, CameraStream | None] = dict.fromkeys(
            read_cameras(read_parameter(self, 'cameras')))
        if self._labelling is not None:
            engine, cameras = self._labelling.engine, self._labelling.cameras
            values = {'engine': engine.name, 'device': engine.device,
                      'precision': engine.precision}
        values['announced'] = self._announced
        self._diagnostics.publish(make_diagnostics(
            self, self._state(), cameras, values, self._refusal))

    def _watch_cameras(self) -> None:
        for camera in self._labelling.cameras.values() if self._labelling else ():
            camera.watch(read_parameter(self, 'no_frames_after_s'))

    def destroy_node(self) -> None:
        self._release()
        super().destroy_node()


def _run() -> None:
    node = make_node(SegmentationNode)
    with single_threaded_executor() as executor:
        try:
            executor.add_node(node)
            executor.spin()
        finally:
            node.destroy_node()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until it is told to stop; return the exit code."""
    return run_process('seg_node', _run, args)


if __name__ == '__main__':
    sys.exit(main())
