"""seg_node: the managed node that labels the frames of one or several cameras."""

import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.timer import Timer

from seg_ros.errors import ConfigError, SegRosError
from seg_ros.inference.device_segmenter import create_segmenter
from seg_ros.inference.engines import create_engine
from seg_ros.inference.segmenter import Segmenter
from seg_ros.label_map import load_label_map
from seg_ros.labels import LabelSet
from seg_ros.model_file import load_model
from seg_ros.ros.batching import measure_batching
from seg_ros.ros.camera_stream import CameraStream
from seg_ros.ros.config import (
    TABLE,
    declare_parameters,
    read_cameras,
    read_parameter,
)
from seg_ros.ros.diagnostics import make_diagnostics
from seg_ros.ros.frame_slots import FrameSlots
from seg_ros.ros.process import run_process
from seg_ros.ros.worker import Worker
from seg_ros.sizes import read_size

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
CLASS_PARAMETERS: dict[str, tuple[list, str]] = {
    'class_names': ([''], 'Names of the published classes, in the order of class_colors.'),
    'class_colors': ([0], 'Red, green, blue of each class in turn, 0..255.')}
WARM_UP_SIZE = (480, 640)  # the commonest camera; another size costs its first frame some time


class SegmentationNode(LifecycleNode):
    """Subscribes to ``image`` and publishes ``segmentation/...``, of each camera.

    :raises ConfigError: a parameter given at start-up cannot be used.
    """

    def __init__(self) -> None:
        self._segmenter: Segmenter | None = None
        self._worker: Worker | None = None  # as long as the node is configured
        self._cameras: dict[str, CameraStream] = {}
        self._announced = ''  # of the engine
        super().__init__('segmentation')
        declare_parameters(self)
        self._changing_classes = False
        for name, (empty, description) in CLASS_PARAMETERS.items():
            self.declare_parameter(name, empty, ParameterDescriptor(
                description=f'{description} Read-only.'), ignore_override=True)
        self.add_on_set_parameters_callback(self._check_parameters)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', 1)
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
        try:
            work()
        except SegRosError as error:
            self.get_logger().error(f'cannot {what}: {error}')
        except Exception:  # a fault of ours: shown whole, and the node stays in its state
            if not self.context.ok():
                return FAILURE  # a signal ended ROS underneath: no fault, and nobody to tell
            self.get_logger().error(f'cannot {what}:\n{traceback.format_exc()}')
        else:
            return SUCCESS
        if undo is not None:
            undo()
        return FAILURE

    def _configure(self) -> None:
        values = {name: read_parameter(self, name) for name in TABLE}
        model = load_model(values['model'])
        label_map = None
        if values['label_map']:
            label_map = load_label_map(Path(values['label_map']), model.spec.labels)
            if label_map.unmapped:
                self.get_logger().info(f'{values["label_map"]}: of the classes of the model, '
                                       f'{", ".join(label_map.unmapped)} become unknown')
        engine = create_engine(model, values['engine'], values['device'], values['precision'],
                               values['threads'], announce=self._announce)
        segmenter = create_segmenter(model, engine, read_size(values['network_size']),
                                     read_size(values['output_size']), label_map)
        self._segmenter = segmenter
        segmenter.warm_up(*WARM_UP_SIZE)
        names = read_cameras(values['cameras'])
        batching = measure_batching(segmenter, len(names), *WARM_UP_SIZE)
        self._worker = Worker(self, segmenter, batching.sizes)
        for name in names:
            self._cameras[name] = CameraStream(
                self, name, segmenter.labels, values['image_transport'] == 'compressed',
                values['reliability'], values['encoding_override'])
        self._show_classes(segmenter.labels)
        self.get_logger().info(
            f'{model.path} ({model.spec.architecture}, {len(model.spec.labels)} classes) on '
            f'{engine.name}, {engine.device}, {engine.precision}')
        if batching.times:
            self.get_logger().info(f'measured: {batching}')

    def _announce(self, message: str, *, warning: bool = True) -> None:
        """Say what the engine does, at once: it may take minutes."""
        if warning:
            self.get_logger().warning(message)
        else:
            self.get_logger().info(message)
        self._announced = message
        self._publish_diagnostics()

    def _activate(self) -> None:
        if self._worker is None:
            raise ConfigError('the node is not configured; configure it first')
        slots = FrameSlots()
        self._worker.start(slots)
        for camera in self._cameras.values():
            camera.start(slots)
        topics = ', '.join(camera.topic for camera in self._cameras.values())
        self.get_logger().info(f'labelling {topics}')

    def _deactivate(self) -> None:
        for camera in self._cameras.values():
            camera.stop()
        if self._worker is not None:
            self._worker.stop()

    def _release(self) -> None:
        """Give back everything that configure took."""
        self._deactivate()
        for camera in self._cameras.values():
            camera.destroy()
        if self._segmenter is not None:
            self._segmenter.close()
        self._cameras.clear()
        self._worker = self._segmenter = None
        self._announced = ''

    def _autostart(self) -> None:
        if self._autostart_timer is not None:
            self.destroy_timer(self._autostart_timer)
            self._autostart_timer = None
        if self.trigger_configure() == SUCCESS:
            self.trigger_activate()

    # Parameters

    def _check_parameters(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        for parameter in parameters:
            if parameter.name in CLASS_PARAMETERS and not self._changing_classes:
                return SetParametersResult(successful=False, reason=(
                    f'parameter {parameter.name}: read-only; it follows from the model file'))
            if parameter.name in TABLE:
                row = TABLE[parameter.name]
                if self._worker is not None and not row.live:
                    return SetParametersResult(successful=False, reason=(
                        f'parameter {parameter.name}: cannot change while the node is '
                        'configured; deactivate and clean it up first'))
                try:
                    row.check(parameter.value)
                except ConfigError as error:
                    return SetParametersResult(successful=False, reason=str(error))
        for parameter in parameters:
            if parameter.name == 'diagnostics_period_s':
                self._diagnostics_timer.timer_period_ns = int(1e9 * parameter.value)
                self._diagnostics_timer.reset()
        return SetParametersResult(successful=True)

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
        engine = {} if self._segmenter is None else {
            'engine': self._segmenter.engine.name, 'device': self._segmenter.engine.device,
            'precision': self._segmenter.engine.precision}
        engine['announced'] = self._announced
        cameras = {name: self._cameras.get(name)
                   for name in read_cameras(read_parameter(self, 'cameras'))}
        state = self._state_machine.current_state[1]
        self._diagnostics.publish(make_diagnostics(self, state, cameras, engine,
                                                   read_parameter(self, 'no_frames_after_s')))

    def _watch_cameras(self) -> None:
        for camera in self._cameras.values():
            camera.watch(read_parameter(self, 'no_frames_after_s'))

    def destroy_node(self) -> None:
        self._release()
        super().destroy_node()


def _run() -> None:
    node = SegmentationNode()
    try:
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        executor.spin()
    finally:
        node.destroy_node()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until it is told to stop; return the exit code."""
    return run_process('seg_node', _run, args)


if __name__ == '__main__':
    sys.exit(main())
