"""What can be asked for, and how it is told that something cannot."""

import pytest

from seg_ros.benchmark.command import _parser, read_options
from seg_ros.benchmark.variants import Variant, cross, parse_variant
from seg_ros.errors import ConfigError

DEFAULTS = Variant()


def options(*arguments: str):
    return read_options(_parser().parse_args(arguments))


def test_everything_can_be_said_of_a_variant():
    text = ('model=dabnet,engine=torch,device=cpu,precision=bfloat16,threads=2,batch=3,'
            'size=1920x1080,network_size=480x360,outputs=overlay+labels,folds=pairs')
    assert parse_variant(text, DEFAULTS) == Variant(
        'dabnet', 'torch', 'cpu', 'bfloat16', 2, 3, (1080, 1920), (360, 480),
        ('labels', 'overlay'), 'pairs')


def test_what_is_left_out_is_as_in_the_first_variant():
    first = Variant(engine='torch', threads=1)
    assert parse_variant('model=strip_camvid', first) == Variant('strip_camvid', 'torch',
                                                                 threads=1)
    assert parse_variant('plain,threads=2', first) == Variant('', 'torch', threads=2, plain=10)
    assert parse_variant('plain=1', first) == Variant('', 'torch', threads=1, plain=1)


@pytest.mark.parametrize(('text', 'reason'), [
    ('model', "'model' is neither plain nor KEY=VALUE with a KEY of model, engine,"),
    ('', "'' is neither plain nor KEY=VALUE"),
    ('modle=dabnet', "'modle=dabnet' is neither plain nor KEY=VALUE"),
    ('plain=0', "plain '0': expected a whole number from 1 to 1000"),
    ('threads=1,threads=2', 'threads is given twice'),
    ('plain,plain', 'plain is given twice'),
    ('threads=-1', "threads '-1': expected a whole number from 0 to 1024"),
    ('threads=²', "threads '²': expected a whole number from 0 to 1024"),
    ('batch=0', "batch '0': expected a whole number from 1 to 1024"),
    ('engine=tensorflow', "engine 'tensorflow': expected one of auto, torch"),
    ('precision=f32', "precision 'f32': expected one of auto, float32"),
    ('size=640', "size '640': expected a size such as 480x360 (width x height, each 32 to 8192)"),
    ('size=31x480', "size '31x480': expected a size such as"),
    ('network_size=9000x480', "network_size '9000x480': expected a size such as"),
    ('outputs=labels+colour', "outputs 'labels+colour': expected some of labels, overlay"),
    ('outputs=labels+labels', "outputs 'labels+labels': expected some of"),
    ('folds=some', "folds 'some': expected one of none, pairs, norms, shuffles"),
    ('model=nowhere', "model 'nowhere': no such model file"),
])
def test_variant_that_cannot_be_is_refused_with_the_reason(text, reason):
    with pytest.raises(ConfigError) as refusal:
        parse_variant(text, DEFAULTS)
    assert f'--compare {text}: {reason}' in str(refusal.value)


def test_every_combination_is_measured_then_what_is_compared():
    found = options('--engine', 'torch', 'auto', '--size', '640x480', '320x240', '--compare',
                    'model=dabnet', 'threads=1')
    assert found.variants == [
        Variant(engine='torch', size=(480, 640)), Variant(engine='torch', size=(240, 320)),
        Variant(engine='auto', size=(480, 640)), Variant(engine='auto', size=(240, 320)),
        Variant('dabnet', 'torch'), Variant(engine='torch', threads=1)]
    assert cross({}) == [Variant()]


def test_one_thing_can_be_compared_to_itself():
    assert options('--compare', 'batch=1').variants == [Variant(), Variant()]


@pytest.mark.parametrize(('arguments', 'reason'), [
    (['--size', '640'], "--size '640': expected a size such as"),
    (['--network-size', '8x8'], "--network-size '8x8': expected a size such as"),
    (['--model', 'nowhere.safetensors'], "--model 'nowhere.safetensors': no such model file"),
    (['--threads', 'two'], "--threads 'two': expected a whole number"),
    (['--rounds', '0'], '--rounds 0: expected a whole number from 1'),
    (['--rate', 'nan'], '--rate nan: expected 0.1 to 1000'),
    (['--compare', 'plain'], '--compare plain: is a node; add --ros'),
    (['--ros', '--model', 'dabnet'], 'model dabnet: has no file that a node could load'),
    (['--ros', '--batch', '2'], 'batch 2: the node labels one picture at a time'),
    (['--ros', '--outputs', 'overlay'], 'outputs overlay: with --ros, labels must be among them'),
    (['--ros', '--compare', 'plain,outputs=labels+confidence'], 'publishes no confidence'),
    (['--ros', '--layers'], '--layers and --ros exclude each other'),
    (['--json', 'no/such/folder.json'], 'no such folder; make it first'),
    (['--json', '/'], '/: is a folder; give the name of a file in it'),
])
def test_options_that_cannot_be_are_refused_with_the_reason(arguments, reason):
    with pytest.raises(ConfigError) as refusal:
        options(*arguments)
    assert reason in str(refusal.value)


@pytest.mark.parametrize('name', ['exported.onnx', 'EXPORTED.ONNX'])
def test_exported_graph_has_all_folds_and_no_plain_node(tmp_path, name):
    file = tmp_path / name
    file.touch()
    assert options('--model', str(file)).variants == [Variant(str(file))]
    with pytest.raises(ConfigError, match='folds none: an exported or int8 graph has them all'):
        options('--model', str(file), '--folds', 'none')
    with pytest.raises(ConfigError, match='plain: runs no exported graph'):
        options('--ros', '--compare', f'plain,model={file}')


def test_int8_graph_has_all_folds():
    with pytest.raises(ConfigError, match='folds pairs: an exported or int8 graph has them all'):
        options('--compare', 'precision=int8,folds=pairs')
