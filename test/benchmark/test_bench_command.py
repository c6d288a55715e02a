"""seg_bench from its command line to its file."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_model
import torch

from seg_ros.benchmark import command
from seg_ros.model_file import save_model

pytest.importorskip('sensor_msgs')
ROOT = Path(__file__).parents[2]
TIMES = ('p50_ms', 'p95_ms', 'p99_ms')
SOME = {'variant': int, 'name': str, 'stage': str, 'size': str, 'engine': str, 'device': str,
        'precision': str, 'threads': int, 'batch': int, 'p50_ms': float, 'p95_ms': float}


@pytest.fixture(scope='module')
def model_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp('model') / 'tiny.safetensors'
    save_model(path, tiny_model.tiny_network(), tiny_model.SPEC)
    return path


@pytest.fixture
def bench(monkeypatch, capsys):
    """Run the command here; return its exit code and what it printed."""
    threads = torch.get_num_threads()

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, 'argv', ['seg_bench', *map(str, arguments)])
        return (command.main(), *capsys.readouterr())

    yield run
    torch.set_num_threads(threads)


def run_python(*arguments: object) -> subprocess.CompletedProcess:
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(
        [str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])])}
    return subprocess.run([sys.executable, *map(str, arguments)], env=environment, text=True,
                          capture_output=True, timeout=240)


def read(path: Path) -> list[dict]:
    """Rows of a result, whose types are those that are promised."""
    rows = json.loads(path.read_text())
    assert rows
    for row in rows:
        assert {key: type(row[key]) for key in SOME} == SOME
        assert row['p50_ms'] <= row['p95_ms']
        assert row['measured_on']['processor'] and row['measured_on']['torch']
    return rows


def test_variants_are_measured_side_by_side(bench, model_file, tmp_path):
    result = tmp_path / 'result.json'
    code, out, err = bench(
        '--model', model_file, '--engine', 'torch', '--device', 'cpu', '--threads', 1, '--size',
        '96x64', '--rounds', 3, '--json', result, '--compare',
        'model=dabnet,threads=2,batch=2,outputs=labels+overlay+confidence')
    assert code == 0, err
    rows = read(result)
    stages = ['network', 'frame', *(f'frame.{stage}' for stage in (
        'convert', 'resize', 'network', 'resize_back', 'overlay', 'message', 'serialise'))]
    assert [(row['variant'], row['stage']) for row in rows] == [
        (0, 'peak'), (0, 'peak'), *((number, stage) for number in (1, 2) for stage in stages)]
    assert [row['threads'] for row in rows[:2]] == [1, 2]

    networks = [row for row in rows if row['stage'] == 'network']
    assert [row['name'] for row in networks] == ['tiny', 'dabnet']
    assert networks[0]['ratio'] == 1 and networks[1]['ratio'] > 1  # a hundred times the work
    for row, peak in zip(networks, rows[:2], strict=True):
        per_ms = row['batch'] * row['multiply_adds'] / row['p50_ms']
        share = per_ms / (peak['multiply_adds'] / peak['p50_ms'])
        assert row['share_of_peak'] == pytest.approx(share, rel=1e-3)
        assert row['engine'] == 'torch' and row['precision'] == 'float32'
    frames = [row for row in rows if row['stage'] == 'frame']
    assert all(0 < row['outside_network'] < 1 and row['peak_rss_mb'] > 50 for row in frames)
    assert [row['outputs'] for row in frames] == ['labels', 'labels+overlay+confidence']

    assert 'Network alone' in out and 'Way of a frame' in out
    assert rows[0]['measured_on']['processor'] in out
    assert 'dabnet threads 2 batch 2 labels+overlay+confidence' in out


def test_layers_are_told_by_their_types(bench, model_file, tmp_path):
    pytest.importorskip('openvino')
    result = tmp_path / 'result.json'
    code, out, err = bench('--model', model_file, '--engine', 'openvino', '--threads', 1,
                           '--size', '96x64', '--rounds', 2, '--layers', '--json', result)
    assert code == 0, err
    layers = {row['stage']: row['layers'] for row in read(result)
              if row['stage'].startswith('layers.')}
    assert layers['layers.Convolution'] >= 10
    assert 'Layers of tiny' in out


@pytest.mark.parametrize(('arguments', 'reason'), [
    (['--size', 'large'], "--size 'large': expected a size such as 480x360"),
    (['--model', 'nowhere'], "--model 'nowhere': no such model file"),
    (['--engine', 'torch', '--device', 'abacus'], "device 'abacus': the torch engine finds cpu"),
    (['--engine', 'torch', '--layers'], '--layers: no variant runs in openvino'),
])
def test_wrong_use_is_one_line_and_exit_code_2(bench, arguments, reason):
    code, out, err = bench(*arguments)
    assert (code, out) == (2, '')
    last, = err.strip().splitlines()
    assert last.startswith('seg_bench: error: ') and reason in last


def test_without_the_messages_of_ros_it_says_what_to_install():
    code = ('import sys; sys.modules["sensor_msgs"] = None; sys.argv = ["seg_bench"]\n'
            'from seg_ros.benchmark.command import main; sys.exit(main())')
    done = run_python('-c', code)
    assert (done.returncode, done.stdout) == (2, '')
    assert done.stderr.startswith('seg_bench: error: sensor_msgs: is not installed; source a ROS')


def test_round_trip_goes_through_the_real_node_and_the_plain_one(model_file, tmp_path):
    pytest.importorskip('rclpy')
    result = tmp_path / 'result.json'
    done = run_python(
        '-m', 'seg_ros.benchmark.command', '--ros', '--model', model_file, '--threads', 1,
        '--size', '96x64', '--rounds', 1, '--rate', 20, '--outputs', 'labels+overlay', '--json',
        result, '--compare', 'plain=1')
    assert done.returncode == 0, done.stdout + done.stderr
    rows = read(result)
    ours, plain = (row for row in rows if row['stage'] == 'round_trip')
    assert (ours['name'], plain['name']) == (
        'tiny', 'plain node, queue of 1, tiny')
    assert ours['engine'] in ('torch', 'openvino') and plain['engine'] == 'torch'
    assert ours['ratio'] == ours['fps_ratio'] == 1 and plain['ratio'] > 0
    for row in (ours, plain):
        assert row['frames'] > row['dropped'] >= 0 and row['fps'] > 0
        assert row['p50_ms'] <= row['p99_ms'] and row['peak_rss_mb'] > 50
    told = {row['stage'] for row in rows if row['variant'] == 1}
    assert {'node.convert', 'node.publish', 'node.latency'} <= told
    assert 'Round trip through DDS' in done.stdout
