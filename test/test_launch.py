"""The launch files, read by the real launch, which only a distro has."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

launch = pytest.importorskip('launch')
pytest.importorskip('launch_ros')

ROOT = Path(__file__).parents[1]
ARGUMENTS = {'image', 'cameras', 'model', 'engine', 'device', 'params_file', 'namespace',
             'log_level', 'rviz'}


def description(name: str):
    path = ROOT / 'launch' / name
    spec = importlib.util.spec_from_file_location(path.stem.replace('.', '_'), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, module.generate_launch_description()


@pytest.mark.parametrize('name', ['seg.launch.py', 'demo.launch.py'])
def test_every_argument_is_described(name):
    _, made = description(name)
    arguments = {action.name: action for action in made.get_launch_arguments()}
    assert ARGUMENTS <= arguments.keys()
    for argument in arguments.values():
        assert len(argument.description) > 20, argument.name


@pytest.mark.parametrize(('image', 'expected'), [
    ('image', 'camera_info'), ('/camera/image_raw', '/camera/camera_info'),
    ('front/image', 'front/camera_info')])
def test_camera_info_is_taken_beside_the_image(image, expected):
    module, _ = description('seg.launch.py')
    assert module.beside(image, 'camera_info') == expected


def test_ros2_launch_shows_the_arguments():
    shown = subprocess.run(['ros2', 'launch', str(ROOT / 'launch' / 'seg.launch.py'), '-s'],
                           capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    for name in ARGUMENTS:
        assert f"'{name}':" in shown.stdout
