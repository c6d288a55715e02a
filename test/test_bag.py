"""seg_bag, run as from the command line, on bags that the rosbags library writes."""

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml
from bags import (
    IMAGE,
    STRING,
    TYPES,
    compressed,
    encoded,
    header,
    image,
    images_on,
    pixels,
    read_bag,
    string,
    write_bag,
)
from random_models import random_model
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import CompressionMode, Reader

from seg_ros.bag import command
from seg_ros.drawn_scene import DrawnScene
from seg_ros.inference.engines import create_engine
from seg_ros.inference.segmenter import Segmenter

ROOT = Path(__file__).parents[1]
STORAGES = ('sqlite3', 'mcap')
LATCHED = Qos(QosHistory.KEEP_ALL, 7, QosReliability.BEST_EFFORT, QosDurability.TRANSIENT_LOCAL,
              QosTime(1, 2), QosTime(3, 4), QosLiveliness.MANUAL_BY_TOPIC, QosTime(5, 6), True)
SCENE = DrawnScene(6, 120, 90)
FRAMES = [SCENE.frame(0.5 * index)[0] for index in range(3)]
MODEL = random_model()


def options(model_file) -> list[str]:
    return ['--model', str(model_file), '--engine', 'torch', '--device', 'cpu']


@pytest.fixture
def run(model_file, monkeypatch, tmp_path):
    """Run the command; return its exit code."""
    def run(source, *arguments, out=tmp_path / 'out') -> int:
        monkeypatch.setattr(sys, 'argv', ['seg_bag', str(source), str(out), *options(model_file),
                                          *map(str, arguments)])
        return command.main()
    return run


def labels_of(rgb: np.ndarray, **how) -> np.ndarray:
    segmenter = Segmenter(MODEL, create_engine(MODEL, 'torch', 'cpu'))
    return segmenter.segment([rgb], **how)[0].labels


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob('*'))


def lines(capsys) -> list[str]:
    """What was said on the error output, but for the progress bar."""
    return [line for line in capsys.readouterr().err.replace('\r', '\n').splitlines()
            if 'seg_bag: ' in line]


def drive(path: Path, storage: str) -> Path:
    """A bag of a camera and two other topics; some messages have the same time."""
    messages = [('/chatter', string('before all'), 50)]
    for number, rgb in enumerate(FRAMES):
        at = 100 * (number + 1)
        messages += [('/front/image', image(rgb, number, padding=5), at),
                     ('/chatter', string(f'at {number}'), at),
                     ('/raw_bytes', (STRING, bytes([0, 1, 0, 0, 9, number])), at + 10)]
    return write_bag(path, messages, storage, [LATCHED], empty=['/silent'])


@pytest.fixture(scope='module', params=STORAGES)
def labelled(request, tmp_path_factory, model_file):
    """A bag, and what seg_bag made of it."""
    folder = tmp_path_factory.mktemp(request.param)
    source, out = drive(folder / 'in', request.param), folder / 'out'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, 'argv', ['seg_bag', str(source), str(out), *options(model_file),
                                    '--json', str(folder / 'summary.json')])
        assert command.main() == 0
    assert sorted(path.name for path in folder.iterdir()) == ['in', 'out', 'summary.json']
    return source, out


LABELS, OVERLAY = '/front/segmentation/labels', '/front/segmentation/overlay'


def test_every_other_message_is_kept_byte_for_byte_and_in_order(labelled):
    source, out = labelled
    before, after = read_bag(source)[1], read_bag(out)[1]
    assert [each for each in after if each[0] not in (LABELS, OVERLAY)] == before
    assert len(before) == 10 and len(after) == 16


def test_topics_keep_type_definition_hash_and_qos(labelled):
    before, after = (read_bag(path)[0] for path in labelled)
    assert sorted(after) == ['/chatter', '/front/image', LABELS, OVERLAY, '/raw_bytes', '/silent']
    for topic, connection in before.items():
        for name in ('msgtype', 'msgdef', 'digest', 'msgcount', 'ext'):
            assert getattr(after[topic], name) == getattr(connection, name), (topic, name)
    assert before['/chatter'].ext.offered_qos_profiles == [LATCHED]


def test_outputs_are_images_offered_reliably(labelled):
    _, out = labelled
    connections = read_bag(out)[0]
    for topic in (LABELS, OVERLAY):
        assert connections[topic].msgtype == IMAGE
        assert connections[topic].digest == TYPES.hash_rihs01(IMAGE)
        qos, = connections[topic].ext.offered_qos_profiles
        assert (qos.reliability, qos.durability, qos.depth) == (
            QosReliability.RELIABLE, QosDurability.VOLATILE, 1)


def test_outputs_follow_their_image_at_its_time(labelled):
    _, out = labelled
    messages = [(topic, time_ns) for topic, time_ns, _ in read_bag(out)[1]]
    for number in range(3):
        at = 100 * (number + 1)
        first = messages.index(('/front/image', at))
        assert messages[first:first + 3] == [('/front/image', at), (LABELS, at), (OVERLAY, at)]


def test_labels_and_headers_are_those_of_the_frames(labelled):
    _, out = labelled
    messages = images_on(out, LABELS)
    assert [message.header for message in messages] == [header(number) for number in range(3)]
    for rgb, message in zip(FRAMES, messages, strict=True):
        assert (message.encoding, message.step, message.is_bigendian) == ('mono8', 120, 0)
        assert np.array_equal(pixels(message), labels_of(rgb))
    assert len(np.unique(messages[0].data)) > 1


def test_overlays_lay_half_of_the_colour_over_the_picture(labelled):
    _, out = labelled
    for number, (rgb, message) in enumerate(zip(FRAMES, images_on(out, OVERLAY), strict=True)):
        assert (message.encoding, message.header) == ('rgb8', header(number))
        colors = MODEL.spec.labels.palette[labels_of(rgb)]
        assert np.abs(pixels(message) - (0.5 * rgb + 0.5 * colors)).max() <= 0.5


def test_the_summary_counts_frames(labelled):
    source, out = labelled
    summary = json.loads((out.parent / 'summary.json').read_text())
    assert summary['topics'] == {'/front/image': {
        'labels': LABELS, 'overlay': OVERLAY, 'labelled': 3, 'refused': 0}}
    assert (summary['labelled'], summary['refused']) == (3, 0) and summary['seconds'] > 0
    assert (summary['input'], summary['output']) == (str(source), str(out))
    assert summary['storage'] == read_storage(out)
    assert (summary['engine'], summary['device']) == ('torch', 'cpu')


def read_storage(path: Path) -> str:
    suffix, = {each.suffix for each in path.iterdir()} - {'.yaml'}
    return {'.db3': 'sqlite3', '.mcap': 'mcap'}[suffix]


@pytest.mark.parametrize(('before', 'after'), [('mcap', 'sqlite3'), ('sqlite3', 'mcap')])
def test_the_storage_can_be_another(run, tmp_path, before, after):
    source = drive(tmp_path / 'in', before)
    assert run(source, '--storage', after) == 0
    assert read_storage(tmp_path / 'out') == after
    kept = [each for each in read_bag(tmp_path / 'out')[1] if 'segmentation' not in each[0]]
    assert kept == read_bag(source)[1]


@pytest.mark.parametrize('storage', STORAGES)
def test_a_file_without_its_metadata_is_read(run, tmp_path, storage):
    source, = drive(tmp_path / 'in', storage).glob('in.*')
    assert run(source) == 0
    connections, _ = read_bag(tmp_path / 'out')
    assert connections['/chatter'].digest == TYPES.hash_rihs01(STRING)
    assert len(images_on(tmp_path / 'out', LABELS)) == 3


@pytest.mark.parametrize(('storage', 'mode'), [
    ('sqlite3', 'FILE'), ('sqlite3', 'MESSAGE'), ('mcap', 'MESSAGE'), ('mcap', 'STORAGE')])
def test_a_compressed_bag_stays_compressed(run, tmp_path, storage, mode):
    messages = [('/image', image(np.full((90, 120, 3), 30, np.uint8)), 5),
                ('/chatter', string('kept'), 6)]
    source = write_bag(tmp_path / 'in', messages, storage, compression=CompressionMode[mode])
    assert run(source) == 0
    topics, after = read_bag(tmp_path / 'out')
    assert sorted(topics) == ['/chatter', '/image', '/segmentation/labels',
                              '/segmentation/overlay']
    assert [after[0], after[3]] == read_bag(source)[1]
    assert sum(len(data) for _, _, data in after) > 70_000
    if (storage, mode) != ('sqlite3', 'MESSAGE'):  # whose empty pages count as well
        assert sum(path.stat().st_size for path in (tmp_path / 'out').iterdir()) < 40_000
    with Reader(tmp_path / 'out') as reader:
        assert (reader.compression_mode or 'storage') == mode.lower()


@pytest.mark.parametrize('suffix', ['.jpg', '.png'])
def test_compressed_pictures_are_told_by_their_bytes(run, tmp_path, suffix):
    data = encoded(FRAMES[0], suffix)
    source = write_bag(tmp_path / 'in', [
        ('/cam/image_raw/compressed', compressed(data, 4, 'whatever'), 5)])
    assert run(source) == 0
    message, = images_on(tmp_path / 'out', '/cam/segmentation/labels')
    seen = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    assert np.array_equal(pixels(message), labels_of(np.ascontiguousarray(seen)))
    assert message.header == header(4)


def test_options_reach_labels_and_overlay(run, tmp_path):
    source = write_bag(tmp_path / 'in', [('/image', image(FRAMES[0]), 5)])
    assert run(source, '--output-size', '60x45', '--overlay-alpha', 0, '--min-confidence', 1,
               '--network-size', '96x64', '--threads', 1) == 0
    labels, = images_on(tmp_path / 'out', '/segmentation/labels')
    overlay, = images_on(tmp_path / 'out', '/segmentation/overlay')
    assert pixels(labels).shape == (45, 60) and pixels(overlay).shape == (45, 60, 3)
    assert (labels.data == 255).mean() > 0.9  # hardly any pixel is certain
    assert np.abs(pixels(overlay).astype(int) - cv2.resize(FRAMES[0], (60, 45))).max() == 0


HUMBLE_SCHEMA = """
    CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT NOT NULL);
    CREATE TABLE metadata(id INTEGER PRIMARY KEY, metadata_version INTEGER NOT NULL,
                          metadata TEXT NOT NULL);
    CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL,
                        serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL);
    CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL,
                          timestamp INTEGER NOT NULL, data BLOB NOT NULL);
    CREATE INDEX timestamp_idx ON messages (timestamp ASC);
    INSERT INTO schema(schema_version, ros_distro) VALUES (3, 'humble');
"""


def write_humble_bag(folder: Path, topics) -> Path:
    """As ``ros2 bag record`` of Humble: two files, and no definitions of types.

    :param topics: name, type and messages, each time and bytes, of each topic.
    """
    folder.mkdir()
    qos = """- history: 3
  depth: 0
  reliability: 2
  durability: 2
  deadline: {sec: 9223372036, nsec: 854775807}
  lifespan: {sec: 9223372036, nsec: 854775807}
  liveliness: 1
  liveliness_lease_duration: {sec: 9223372036, nsec: 854775807}
  avoid_ros_namespace_conventions: false"""
    files = [f'{folder.name}_{number}.db3' for number in range(2)]
    for number, name in enumerate(files):
        database = sqlite3.connect(folder / name)
        database.executescript(HUMBLE_SCHEMA)
        for identity, (topic, kind, messages) in enumerate(topics, 1):
            database.execute('INSERT INTO topics VALUES(?, ?, ?, ?, ?)',
                             (identity, topic, kind, 'cdr', qos))
            database.executemany(
                'INSERT INTO messages(topic_id, timestamp, data) VALUES(?, ?, ?)',
                [(identity, *message) for message in messages[number::2]])
        database.commit()
        database.close()
    (folder / 'metadata.yaml').write_text(yaml.safe_dump({'rosbag2_bagfile_information': {
        'version': 5, 'storage_identifier': 'sqlite3', 'relative_file_paths': files,
        'duration': {'nanoseconds': 100}, 'starting_time': {'nanoseconds_since_epoch': 1},
        'message_count': sum(len(messages) for *_, messages in topics),
        'topics_with_message_count': [
            {'topic_metadata': {'name': topic, 'type': kind, 'serialization_format': 'cdr',
                                'offered_qos_profiles': qos}, 'message_count': len(messages)}
            for topic, kind, messages in topics],
        'compression_format': '', 'compression_mode': ''}}))
    return folder


@pytest.mark.parametrize('storage', STORAGES)
def test_a_bag_of_humble_keeps_topics_of_types_that_nobody_knows(run, tmp_path, storage):
    source = write_humble_bag(tmp_path / 'in', [
        ('/image', IMAGE, [(at, image(FRAMES[0], at)[1]) for at in (1, 2)]),
        ('/things', 'our_msgs/msg/Thing', [(1, b'\x00\x01\x00\x00one'), (2, bytes(9))])])
    assert run(source, '--storage', storage) == 0
    before, kept = read_bag(source)
    after, messages = read_bag(tmp_path / 'out')
    assert [each for each in messages if 'segmentation' not in each[0]] == kept
    assert len(kept) == 4 and len(messages) == 8
    for topic in before:
        assert after[topic].msgtype == before[topic].msgtype
        assert after[topic].ext == before[topic].ext
    assert after['/image'].digest == TYPES.hash_rihs01(IMAGE)
    assert after['/things'].msgdef.data == ''
    assert after['/things'].digest == 'RIHS01_' + 64 * '0'


def test_channels_that_are_alike_become_one_topic(run, tmp_path):
    path, = write_bag(tmp_path / 'in', [
        ('/image', image(FRAMES[0]), 1), ('/chat_a', string('first'), 2),
        ('/chat_b', string('second'), 3)]).glob('*.mcap')
    path.write_bytes(path.read_bytes().replace(b'/chat_b', b'/chat_a'))
    assert run(path) == 0
    _, messages = read_bag(tmp_path / 'out')
    assert [(topic, data) for topic, _, data in messages if topic == '/chat_a'] == [
        ('/chat_a', string('first')[1]), ('/chat_a', string('second')[1])]


@pytest.mark.parametrize('package', ['rosbags', 'sensor_msgs'])
def test_a_missing_package_is_named(run, tmp_path, capsys, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    assert run(tmp_path / 'in') == 2
    assert lines(capsys)[0].startswith(f'seg_bag: error: {package} is not installed: ')


def test_what_is_there_already_is_not_overwritten(run, tmp_path, capsys):
    source = drive(tmp_path / 'in', 'mcap')
    for out in (tmp_path / 'folder', tmp_path / 'file', tmp_path / 'link', source):
        if out.name == 'folder':
            out.mkdir()
        elif out.name == 'file':
            out.write_text('mine')
        elif out.name == 'link':
            out.symlink_to(tmp_path / 'nowhere')
        before = names(tmp_path)
        assert run(source, out=out) == 2
        assert lines(capsys) == [f'seg_bag: error: {out}: is there already and is not '
                                 'overwritten; give another name']
        assert names(tmp_path) == before
    assert (tmp_path / 'file').read_text() == 'mine'


@pytest.mark.parametrize(('storage', 'number'), [
    ('sqlite3', signal.SIGINT), ('mcap', signal.SIGINT), ('mcap', signal.SIGTERM)])
def test_interrupted_it_leaves_nothing(tmp_path, model_file, storage, number):
    picture = image(FRAMES[0][:45, :60])
    write_bag(tmp_path / 'in', [('/image', picture, number) for number in range(2000)], storage)
    process = subprocess.Popen(
        [sys.executable, '-c', 'import sys; from seg_ros.commands import seg_bag; '
         'sys.exit(seg_bag())', tmp_path / 'in', tmp_path / 'out', *options(model_file)],
        cwd=ROOT, stderr=subprocess.PIPE, text=True)
    end_s = time.monotonic() + 60
    while not list(tmp_path.glob('.out.*.part/out/*')):
        assert process.poll() is None and time.monotonic() < end_s
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert 'Traceback' not in said and said.splitlines()[-1].endswith('seg_bag: interrupted')
    assert sorted(os.listdir(tmp_path)) == ['in']


@pytest.mark.parametrize('storage', STORAGES)
def test_a_full_disk_leaves_nothing(run, tmp_path, capsys, storage):
    source = write_bag(tmp_path / 'in', [
        ('/image', image(np.zeros((600, 900, 3), np.uint8)), number) for number in range(3)])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, before[1]))
    try:
        assert run(source, '--storage', storage) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    said, = lines(capsys)
    assert f'seg_bag: error: {tmp_path / "out"}: ' in said
    assert sorted(os.listdir(tmp_path)) == ['in']


def test_malformed_frames_are_counted_and_the_rest_is_labelled(run, tmp_path, capsys):
    cut = encoded(FRAMES[0], '.jpg')[:400]
    messages = [('/a/image', image(FRAMES[0], 0), 10),
                ('/a/image', image(FRAMES[0], 1, step=7), 20),
                ('/a/image', (IMAGE, image(FRAMES[0], 2)[1][:-900]), 30),
                ('/a/image', image(FRAMES[0], 3, encoding='32FC1'), 40),
                ('/a/image', image(FRAMES[1], 4), 50),
                ('/b/image/compressed', compressed(encoded(FRAMES[2], '.png'), 5), 60),
                ('/b/image/compressed', compressed(cut, 6), 70)]
    source = write_bag(tmp_path / 'in', messages)
    assert run(source, '--json', tmp_path / 'summary.json') == 0
    warnings = lines(capsys)
    assert len(warnings) == 2
    assert 'seg_bag: warning: frame on /a/image refused: rgb8 image message of 120x90' in \
        warnings[0] and 'with step 7' in warnings[0]
    assert '/b/image/compressed refused: compressed image message of 400 bytes' in warnings[1]
    topics = json.loads((tmp_path / 'summary.json').read_text())['topics']
    assert [(each['labelled'], each['refused']) for each in topics.values()] == [(2, 3), (1, 1)]
    assert [message.header for message in images_on(tmp_path / 'out', '/a/segmentation/labels')
            ] == [header(0), header(4)]
    kept = [each for each in read_bag(tmp_path / 'out')[1] if 'segmentation' not in each[0]]
    assert kept == read_bag(source)[1]


def test_a_picture_that_claims_gigabytes_is_refused(run, tmp_path, capsys):
    png = encoded(FRAMES[0], '.png')
    header_chunk = b'IHDR' + (60_000).to_bytes(4, 'big') * 2 + png[24:29]
    bomb = png[:12] + header_chunk + zlib.crc32(header_chunk).to_bytes(4, 'big') + png[33:]
    source = write_bag(tmp_path / 'in', [('/image/compressed', compressed(png), 1),
                                         ('/image/compressed', compressed(bomb), 2)])
    assert run(source) == 0
    warning, = lines(capsys)
    assert '/image/compressed refused: ' in warning and '60000x60000 pixels' in warning
    assert len(images_on(tmp_path / 'out', '/segmentation/labels')) == 1


def test_a_bag_without_a_frame_that_is_fine_gives_none(run, tmp_path, capsys):
    source = write_bag(tmp_path / 'in', [('/image', image(FRAMES[0], step=7), 10)])
    assert run(source) == 2
    assert 'error: no frame could be labelled; /image: rgb8 image message' in lines(capsys)[-1]
    assert sorted(os.listdir(tmp_path)) == ['in']


def test_two_topics_with_the_same_outputs_are_refused(run, tmp_path, capsys):
    source = write_bag(tmp_path / 'in', [('/cam/image_raw', image(FRAMES[0]), 1),
                                         ('/cam/image_rect', image(FRAMES[1], 1), 2)])
    assert run(source) == 2
    assert lines(capsys) == [
        'seg_bag: error: /cam/image_raw and /cam/image_rect: the labels of both would be '
        '/cam/segmentation/labels; choose one with --topic']
    assert run(source, '--topic', '/cam/image_rect') == 0
    message, = images_on(tmp_path / 'out', '/cam/segmentation/labels')
    assert message.header == header(1)


def test_of_raw_and_compressed_the_raw_topic_is_labelled(run, tmp_path, capsys):
    source = write_bag(tmp_path / 'in', [
        ('/cam/image/compressed', compressed(encoded(FRAMES[0], '.jpg'), 1), 1),
        ('/cam/image', image(FRAMES[0], 2), 2)])
    assert run(source) == 0
    message, = images_on(tmp_path / 'out', '/cam/segmentation/labels')
    assert message.header == header(2)
    assert '/cam/image/compressed is not labelled: /cam/image is' in lines(capsys)[0]
    assert run(source, '--topic', '/cam/image/compressed', out=tmp_path / 'other') == 0
    message, = images_on(tmp_path / 'other', '/cam/segmentation/labels')
    assert message.header == header(1)


def test_a_labelled_bag_is_not_labelled_again(run, tmp_path, capsys):
    source = write_bag(tmp_path / 'in', [('/front/image', image(FRAMES[0]), 1)])
    assert run(source) == 0
    capsys.readouterr()
    assert run(tmp_path / 'out', out=tmp_path / 'again') == 2
    warning, error = lines(capsys)
    assert f'/front/image is not labelled: the bag has {LABELS} and {OVERLAY} already' in warning
    assert 'the bag has no topic to label; it has /front/image, ' in error
    assert run(tmp_path / 'out', '--topic', '/front/image', out=tmp_path / 'again') == 2
    assert 'error: --topic /front/image: the bag has' in lines(capsys)[0]
    assert sorted(os.listdir(tmp_path)) == ['in', 'out']


def test_depth_is_labelled_only_when_named(run, tmp_path, capsys):
    deep = np.full((90, 120), 1200, np.uint16)
    source = write_bag(tmp_path / 'in', [
        ('/depth/image', image(deep, encoding='16UC1'), 1),
        ('/metres/image', image(deep.astype(np.float32), encoding='32FC1'), 2),
        ('/png/image/compressed', compressed(cv2.imencode('.png', deep)[1].tobytes()), 3),
        ('/grey/image/compressed', compressed(encoded(FRAMES[0][..., 0], '.png')), 3),
        ('/zip/image/compressedDepth', compressed(b'12 bytes....' + encoded(FRAMES[0], '.png')),
         4),
        ('/front/image', image(FRAMES[0]), 5)])
    assert run(source) == 0
    warnings = lines(capsys)
    assert [line.split()[2] for line in warnings] == [
        '/depth/image', '/metres/image', '/png/image/compressed', '/zip/image/compressedDepth']
    assert 'grey with 16 bits, as depth is; name it with --topic' in warnings[0]
    assert "image message of encoding '32FC1': expected one of rgb8, " in warnings[1]
    assert [topic for topic in read_bag(tmp_path / 'out')[0] if topic.endswith('/labels')] == [
        '/grey/segmentation/labels', '/front/segmentation/labels']
    assert run(source, '--topic', '/metres/image', out=tmp_path / 'other') == 2
    assert "error: --topic /metres/image: image message of encoding '32FC1'" in lines(capsys)[0]
    assert run(source, '--topic', '/depth/image', '/png/image/compressed',
               out=tmp_path / 'other') == 0
    assert len(images_on(tmp_path / 'other', '/depth/segmentation/labels')) == 1
    assert len(images_on(tmp_path / 'other', '/png/segmentation/labels')) == 1


def cut(path: Path, share: float) -> Path:
    data = path.read_bytes()
    path.write_bytes(data[:int(share * len(data))])
    return path


def bad_inputs(folder: Path) -> dict:
    for storage in STORAGES:
        for name in ('cut', 'lost', 'unlisted'):
            drive(folder / storage / name, storage)
    cut(folder / 'mcap' / 'cut' / 'cut.mcap', 0.6)
    cut(folder / 'sqlite3' / 'cut' / 'cut.db3', 0.6)
    for storage, suffix in (('mcap', 'mcap'), ('sqlite3', 'db3')):
        (folder / storage / 'lost' / f'lost.{suffix}').unlink()
        (folder / storage / 'unlisted' / 'metadata.yaml').unlink()
    (folder / 'ros1.bag').write_bytes(b'#ROSBAG V2.0\n' + bytes(5000))
    (folder / 'text.mcap').write_text('no bag')
    (folder / 'text.db3').write_text('no bag')
    drive(folder / 'yaml', 'mcap')
    (folder / 'yaml' / 'metadata.yaml').write_text('rosbag2_bagfile_information: [1, 2')
    drive(folder / 'fewer', 'mcap')
    metadata = folder / 'fewer' / 'metadata.yaml'
    metadata.write_text(metadata.read_text().replace('name: /chatter', 'name: /other'))
    write_bag(folder / 'no_images', [('/chatter', string('hello'), 1)])
    return {'missing': (folder / 'none', 'no such bag'),
            'cut mcap': (folder / 'mcap' / 'cut', 'File end magic is invalid'),
            'cut sqlite3': (folder / 'sqlite3' / 'cut', 'malformed'),
            'without its mcap': (folder / 'mcap' / 'lost', 'files are missing'),
            'without its db3': (folder / 'sqlite3' / 'lost', 'files are missing'),
            'without metadata': (folder / 'mcap' / 'unlisted', '"ros2 bag reindex"'),
            'of ROS 1': (folder / 'ros1.bag', "Unrecognized storage format '.bag'"),
            'no mcap': (folder / 'text.mcap', 'cannot be read as a bag'),
            'no sqlite3': (folder / 'text.db3', 'not a database'),
            'no YAML': (folder / 'yaml', 'Could not load YAML'),
            'other topics': (folder / 'fewer', 'only 6 of its 10 messages could be read'),
            'no images': (folder / 'no_images', 'has no topic to label; it has /chatter')}


BAD_INPUTS = ['missing', 'cut mcap', 'cut sqlite3', 'without its mcap', 'without its db3',
              'without metadata', 'of ROS 1', 'no mcap', 'no sqlite3', 'no YAML', 'other topics',
              'no images']


@pytest.mark.parametrize('case', BAD_INPUTS)
def test_a_wrong_input_gives_one_line_and_no_bag(run, tmp_path, capsys, case):
    source, message = bad_inputs(tmp_path)[case]
    before = names(tmp_path)
    assert run(source) == 2
    said, = lines(capsys)
    assert said.startswith('seg_bag: error: ') and message in said
    assert names(tmp_path) == before


@pytest.mark.parametrize(('arguments', 'message'), [
    (['--topic', '/none'], 'error: --topic /none: the bag has no such topic of images; it has '
     '/front/image'),
    (['--topic', '/chatter'], '--topic /chatter: the bag has no such topic of images'),
    (['--overlay-alpha', 'nan'], '--overlay-alpha nan: expected 0 to 1'),
    (['--min-confidence', '2'], '--min-confidence 2.0: expected 0 to 1'),
    (['--network-size', '480'], '--network-size 480: expected a size such as 480x360'),
    (['--output-size', '31x64'], '--output-size 31x64: expected a size such as'),
    (['--json', 'no/such/folder.json'], 'no/such: no such folder; make it first'),
    (['--json', '.'], 'is a folder; give the name of a file in it'),
    (['--model', 'none.safetensors'], 'none.safetensors: no such model file')])
def test_wrong_options_give_one_line_and_no_bag(run, tmp_path, capsys, arguments, message):
    assert run(drive(tmp_path / 'in', 'mcap'), *arguments) == 2
    said, = lines(capsys)
    assert message in said
    assert sorted(os.listdir(tmp_path)) == ['in']


def test_a_folder_that_is_not_there_is_not_made(run, tmp_path, capsys):
    assert run(drive(tmp_path / 'in', 'mcap'), out=tmp_path / 'no' / 'out') == 2
    assert lines(capsys) == [f'seg_bag: error: {tmp_path / "no"}: no such folder; make it first']


def test_names_that_sqlite_takes_for_something_else_are_refused(run, tmp_path, capsys):
    source = drive(tmp_path / 'in', 'sqlite3')
    assert run(source, out=tmp_path / 'a#b') == 2
    assert 'a#b: sqlite3 cannot write to a name with ?, # or %' in lines(capsys)[0]
    assert run(source, '--storage', 'mcap', out=tmp_path / 'a#b') == 0
    assert sorted(os.listdir(tmp_path)) == ['a#b', 'in']
