"""Dependencies point inward: ros -> inference -> networks, model_file, labels <- training."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / 'seg_ros').rglob('*.py'))


def imports(path: Path) -> Iterator[str]:
    """Full name of every module, and of every name taken from a module, that a file imports."""
    package = path.relative_to(ROOT).with_suffix('').parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[:len(package) - node.level + 1] if node.level else ()
            module = '.'.join([*above, *([node.module] if node.module else [])])
            yield from (f'{module}.{alias.name}' for alias in node.names)


def within(name: str, *modules: str) -> bool:
    return any(name == module or name.startswith(f'{module}.') for module in modules)


def files(*parts: str) -> list[Path]:
    """Python files of parts of the package: folders or single files."""
    found = [path for path in FILES
             if within('.'.join(path.relative_to(ROOT / 'seg_ros').with_suffix('').parts), *parts)]
    assert found, f'nothing in {parts}: has it been renamed?'
    return found


def faults(paths: list[Path], wrong) -> list[str]:
    """``file: import`` for each import that a rule calls wrong."""
    return [f'{path.relative_to(ROOT)}: {name}' for path in paths for name in imports(path)
            if wrong(name)]


def is_ros(name: str) -> bool:
    top = name.partition('.')[0]
    return top.endswith('_msgs') or top in (
        'rclpy', 'cv_bridge', 'builtin_interfaces', 'rcl_interfaces', 'rosidl_runtime_py',
        'rpyutils', 'ament_index_python', 'launch', 'launch_ros', 'diagnostic_updater',
        'message_filters', 'rosbag2_py')


def test_rules_see_what_a_file_imports():
    path = ROOT / 'seg_ros' / 'ros' / 'messages.py'
    assert 'seg_ros.errors.ImageError' in set(imports(path))
    assert within('seg_ros.training.metrics.Scores', 'seg_ros.training')
    assert not within('seg_ros.training_data', 'seg_ros.training')
    assert is_ros('sensor_msgs.msg.Image') and not is_ros('torch.nn')


@pytest.mark.parametrize(('parts', 'allowed'), [
    (['errors'], ()),
    (['labels'], ('seg_ros.errors',)),
    (['files'], ()),
    (['sizes'], ()),
    (['jpeg_png'], ('seg_ros.errors',)),
    (['yaml_files'], ('seg_ros.errors', 'seg_ros.files')),
    (['label_map'], ('seg_ros.labels', 'seg_ros.yaml_files', 'seg_ros.errors')),
    (['networks'], ('seg_ros.networks', 'seg_ros.errors')),
    (['model_spec'], ('seg_ros.networks', 'seg_ros.labels', 'seg_ros.errors')),
    (['onnx_file'], ('seg_ros.model_spec', 'seg_ros.errors')),
    (['model_file'], ('seg_ros.model_spec', 'seg_ros.onnx_file', 'seg_ros.networks',
                      'seg_ros.labels', 'seg_ros.files', 'seg_ros.errors')),
    (['drawn_scene'], ('seg_ros.drawn_scene', 'seg_ros.labels', 'seg_ros.errors')),
])
def test_inner_parts_use_only_what_lies_further_in(parts, allowed):
    assert not faults(files(*parts), lambda name: (
        within(name, 'seg_ros') and not within(name, *allowed)))


def test_only_the_node_the_demo_the_benchmark_and_bags_know_ros():
    outside = [path for path in FILES if path not in files('ros', 'benchmark', 'bag')
               and not path.is_relative_to(ROOT / 'seg_ros' / 'demo')]
    assert not faults(outside, lambda name: is_ros(name) or within(name, 'seg_ros.ros'))


@pytest.mark.parametrize('part', ['benchmark', 'soak'])
def test_nothing_uses_what_only_measures(part):
    rest = [path for path in FILES if path not in files(part)]
    assert not faults(rest, lambda name: within(name, f'seg_ros.{part}'))


def test_soak_knows_the_node_by_the_demo_alone():
    assert not faults(files('soak'), lambda name: is_ros(name) or (
        within(name, 'seg_ros') and not within(
            name, 'seg_ros.soak', 'seg_ros.demo', 'seg_ros.cli.edge', 'seg_ros.files',
            'seg_ros.errors')))


def test_node_does_not_use_training():
    assert not faults(files('ros'), lambda name: within(
        name, 'seg_ros.training', 'seg_ros.demo', 'seg_ros.cli', 'seg_ros.bag'))


def test_inference_uses_neither_training_nor_ros_nor_commands():
    assert not faults(files('inference'), lambda name: within(
        name, 'seg_ros.training', 'seg_ros.ros', 'seg_ros.cli', 'seg_ros.demo'))


def test_training_does_not_use_the_demo():
    assert not faults(files('training'), lambda name: within(name, 'seg_ros.demo'))


def test_demo_takes_nothing_but_scores_from_training():
    demo = [path for path in FILES if path.is_relative_to(ROOT / 'seg_ros' / 'demo')]
    assert not faults(demo, lambda name: within(name, 'seg_ros.training')
                      and not within(name, 'seg_ros.training.metrics'))


def test_parts_of_the_package_do_not_import_each_other_in_circles():
    edges: dict[str, set[str]] = {}
    for path in FILES:
        here = path.relative_to(ROOT / 'seg_ros').with_suffix('').parts[0]
        used = {name.split('.')[1] for name in imports(path) if name.startswith('seg_ros.')}
        edges.setdefault(here, set()).update(used - {here})

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        ahead = list(edges[start])
        while ahead:
            if (part := ahead.pop()) not in seen:
                seen.add(part)
                ahead += edges.get(part, ())
        return seen

    assert not [part for part in edges if part in reached(part)]


def loaded_after(*modules: str) -> set[str]:
    """All modules that a fresh interpreter has loaded after importing some."""
    code = f'import sys, {", ".join(modules)}; print("loaded:", *sys.modules)'
    environment = {**os.environ, 'RMW_IMPLEMENTATION': 'rmw_fastrtps_cpp',
                   'PYTHONPATH': os.pathsep.join(
                       [str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])])}
    done = subprocess.run([sys.executable, '-c', code], env=environment, text=True,
                          capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split('loaded:')[1].split())


def test_training_and_its_edge_run_without_ros():
    loaded = loaded_after('seg_ros.training.train', 'seg_ros.cli.edge')
    assert not [name for name in loaded if is_ros(name) or within(name, 'seg_ros.ros')]


def test_bags_are_labelled_without_a_graph():
    shared = [f'seg_ros.ros.{name}'
              for name in ('messages', 'compressed', 'encodings')]
    assert not faults(files('bag'), lambda name: is_ros(name) or (
        within(name, 'seg_ros.ros') and not within(name, *shared)))
    pytest.importorskip('rosbags')
    loaded = loaded_after('seg_ros.bag.command', 'seg_ros.bag.labelling')
    assert 'rosbags' in loaded
    assert not [name for name in loaded if within(name, 'rclpy', 'cv_bridge', 'seg_ros.training')]


def test_node_starts_without_training_and_cv_bridge():
    loaded = loaded_after('seg_ros.ros.node')
    assert 'rclpy' in loaded
    assert not [name for name in loaded
                if within(name, 'seg_ros.training', 'seg_ros.benchmark', 'cv_bridge')]
