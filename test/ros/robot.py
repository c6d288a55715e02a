"""The real node in a process of its own, and a robot around it that publishes and listens."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import rclpy
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParameters
from rclpy.client import Client
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image
from std_msgs.msg import Header

from seg_ros.demo.fast_dds import use_profile
from seg_ros.drawn_scene import DrawnScene
from seg_ros.ros.messages import to_image

os.environ.setdefault('RMW_IMPLEMENTATION', 'rmw_fastrtps_cpp')
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
os.environ['ROS_DOMAIN_ID'] = str(2 + os.getpid() % 98)  # nothing of a test leaves the machine
PROFILE = tempfile.TemporaryDirectory()  # kept to the end of the tests
use_profile(Path(PROFILE.name))

WAIT_S = 60.0  # on a busy machine a process start takes many seconds
RELIABLE = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=10,
                      reliability=ReliabilityPolicy.RELIABLE)


def wait_until(condition: Callable[[], object], what: str, timeout_s: float = WAIT_S):
    """Wait for a condition; return its value, or fail the test."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    pytest.fail(f'waited {timeout_s:.0f} s in vain for {what}')


class RunningProcess:
    """A process whose output is kept."""

    def __init__(self, module: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, '-m', module, *arguments], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self.log = ''
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.log += line

    def wait_for_log(self, pattern: str, timeout_s: float = WAIT_S) -> re.Match:
        def find() -> re.Match | None:
            found = re.search(pattern, self.log)
            if found is None and self.process.poll() is not None:
                pytest.fail(f'ended with {self.process.returncode}:\n{self.log}')
            return found
        try:
            return wait_until(find, f'{pattern!r} in the log', timeout_s)
        except pytest.fail.Exception:
            print(self.log)
            raise

    def stop(self, signal_number: int = signal.SIGINT) -> int:
        """Send a signal and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        try:
            code = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            pytest.fail(f'did not end within 20 s of signal {signal_number}:\n{self.log}')
        self._reader.join(5)
        return code


class Robot:
    """A ROS node in this process, spinning in a thread: publishes images, keeps what it hears."""

    def __init__(self) -> None:
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = Node('robot', context=self.context)
        self.heard: dict[str, list] = {}
        self.heard_at: dict[str, list[float]] = {}
        self._processes: list[RunningProcess] = []
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def _spin(self) -> None:
        try:
            self._executor.spin()
        except ExternalShutdownException:
            pass

    def start(self, module: str, *arguments: str) -> RunningProcess:
        process = RunningProcess(module, *arguments)
        self._processes.append(process)
        return process

    def start_node(self, namespace: str = '', wait: str = 'labelling', **parameters) -> \
            RunningProcess:
        """Start seg_node; wait until its log has the pattern.

        With the engine that starts fastest, unless told otherwise.
        """
        arguments = ['--ros-args']
        if namespace:
            arguments += ['-r', f'__ns:=/{namespace}']
        given = {'engine': 'torch', 'device': 'cpu', 'threads': 1, **parameters}
        for name, value in given.items():
            arguments += ['-p', f'{name}:={value}']
        process = self.start('seg_ros.ros.node', *arguments)
        if wait:
            process.wait_for_log(wait)
        return process

    def listen(self, topic: str, message_type: type = Image, qos: QoSProfile = RELIABLE) -> list:
        """Subscribe; the list that is returned grows with each message."""
        messages = self.heard.setdefault(topic, [])
        times = self.heard_at.setdefault(topic, [])

        def keep(message) -> None:
            times.append(time.time())
            messages.append(message)

        self.node.create_subscription(message_type, topic, keep, qos)
        return messages

    @contextlib.contextmanager
    def listening(self, topic: str, message_type: type = Image) -> Iterator[list]:
        """Subscribe for a while; the list grows with each message."""
        messages: list = []
        subscription = self.node.create_subscription(message_type, topic, messages.append,
                                                     RELIABLE)
        try:
            yield messages
        finally:
            self.node.destroy_subscription(subscription)

    def publisher(self, topic: str = '/image', qos: QoSProfile = RELIABLE, message_type=Image):
        return self.node.create_publisher(message_type, topic, qos)

    @contextlib.contextmanager
    def filming(self, rates_hz: dict, image: Image) -> Iterator[None]:
        """Publish an image with the stamp of the moment, again and again, in a thread.

        :param rates_hz: times a second that each publisher publishes it.
        """
        ended = threading.Event()

        def film() -> None:
            due_s = dict.fromkeys(rates_hz, time.monotonic())
            while not ended.wait(0.002):
                for publisher, at_s in due_s.items():
                    if at_s <= time.monotonic():
                        image.header.stamp = stamp(time.time())
                        publisher.publish(image)
                        due_s[publisher] = at_s + 1 / rates_hz[publisher]

        thread = threading.Thread(target=film, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def wait_for_subscriber(self, publisher) -> None:
        wait_until(lambda: publisher.get_subscription_count() > 0, 'a subscriber')

    def label(self, publisher, message: Image, outputs: list, timeout_s: float = WAIT_S) -> Image:
        """Publish until a label image with this stamp comes back."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            publisher.publish(message)
            until = time.monotonic() + 1
            while time.monotonic() < until:
                for output in reversed(list(outputs)):
                    if output.header.stamp == message.header.stamp:
                        return output
                time.sleep(0.01)
        pytest.fail('no label image with the stamp of the frame')

    @contextlib.contextmanager
    def client(self, service_type, name: str) -> Iterator[Client]:
        """A client that the server can answer."""
        client: Client = self.node.create_client(service_type, name)
        try:
            assert client.wait_for_service(WAIT_S), f'no service {name}'
            time.sleep(0.1)  # the server has to discover this client, too, or its answer is lost
            yield client
        finally:
            self.node.destroy_client(client)

    def call(self, service_type, name: str, request):
        with self.client(service_type, name) as client:
            return answer(client, request)

    def state(self, node: str = '/segmentation') -> str:
        return self.call(GetState, f'{node}/get_state', GetState.Request()).current_state.label

    def change_state(self, transition: str, node: str = '/segmentation') -> bool:
        request = ChangeState.Request()
        request.transition.label = transition
        return self.call(ChangeState, f'{node}/change_state', request).success

    def set_parameter(self, name: str, value, node: str = '/segmentation'):
        """Return (successful, reason)."""
        request = SetParameters.Request(
            parameters=[Parameter(name, value=value).to_parameter_msg()])
        result = self.call(SetParameters, f'{node}/set_parameters', request).results[0]
        return result.successful, result.reason

    def get_parameter(self, name: str, node: str = '/segmentation'):
        response = self.call(GetParameters, f'{node}/get_parameters',
                             GetParameters.Request(names=[name]))
        return parameter_value_to_python(response.values[0])

    def describe_parameter(self, name: str, node: str = '/segmentation'):
        return self.call(DescribeParameters, f'{node}/describe_parameters',
                         DescribeParameters.Request(names=[name])).descriptors[0]

    def diagnostics(self, condition=lambda values: True, timeout_s: float = WAIT_S,
                    name: str = 'segmentation') -> tuple[DiagnosticStatus, dict[str, str]]:
        """Wait for a status that meets a condition on its values."""
        topic = '/diagnostics'
        messages = self.heard.get(topic) if topic in self.heard else self.listen(
            topic, DiagnosticArray)
        seen = len(messages)

        def find():
            for array in messages[seen:]:
                for status in array.status:
                    values = {pair.key: pair.value for pair in status.values}
                    if status.name.startswith(name) and condition(values):
                        return status, values
            return None

        return wait_until(find, 'such diagnostics', timeout_s)

    def close(self) -> None:
        for process in self._processes:
            if process.process.poll() is None:
                process.process.send_signal(signal.SIGINT)
        for process in self._processes:
            try:  # killed, it would leave some 20 MB of shared memory behind
                process.process.wait(10)
            except subprocess.TimeoutExpired:
                process.process.kill()
                process.process.wait()
        self._executor.shutdown()
        self._thread.join(5)
        self.node.destroy_node()
        self.context.try_shutdown()


@pytest.fixture
def robot() -> Iterator[Robot]:
    robot = Robot()
    yield robot
    robot.close()


def answer(client: Client, request):
    """Call a service and wait for what it answers."""
    future = client.call_async(request)
    wait_until(future.done, f'an answer of {client.srv_name}')
    return future.result()


def drawn(width: int = 96, height: int = 64) -> np.ndarray:
    """A road scene: (height, width, 3) uint8 RGB."""
    return DrawnScene(1, width, height).frame(0.0)[0]


def make_image(rgb: np.ndarray, stamp_s: float | None = None, frame_id: str = 'front') -> Image:
    """An rgb8 message; stamped now unless told otherwise."""
    header = Header(frame_id=frame_id, stamp=stamp(time.time() if stamp_s is None else stamp_s))
    return to_image(rgb, 'rgb8', header)


def stamp(seconds: float) -> Time:
    return Time(sec=int(seconds), nanosec=int((seconds - int(seconds)) * 1e9))


def resident_mb(pid: int) -> float:
    """Resident memory of a process in MB."""
    text = Path(f'/proc/{pid}/status').read_text()
    return int(re.search(r'VmRSS:\s+(\d+)', text)[1]) / 1024
