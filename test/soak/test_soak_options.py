"""What the soak can be told, and how wrong use is refused."""

import pytest

from seg_ros.cli.edge import run
from seg_ros.soak.__main__ import soak
from seg_ros.soak.options import Options, make_parser, read_options


def read(*arguments: str) -> Options:
    return read_options(make_parser().parse_args(arguments))


def test_without_options_it_takes_ten_minutes_at_thirty_hertz():
    options = read()
    assert (options.minutes, options.seconds, options.rate_hz, options.json) == (10, 600, 30, None)


def test_options_are_taken(tmp_path):
    options = read('0.5', '--rate', '4', '--json', str(tmp_path / 'a.json'))
    assert (options.seconds, options.rate_hz, options.json) == (30, 4, tmp_path / 'a.json')


@pytest.mark.parametrize(('arguments', 'message'), [
    (['0'], 'MINUTES 0: expected 0.1 to 1440'),
    (['nan'], 'MINUTES nan: expected 0.1 to 1440'),
    (['-3'], 'MINUTES -3'),
    (['1441'], 'MINUTES 1441'),
    (['1', '--rate', '0'], '--rate 0: expected 0.1 to 240'),
    (['1', '--rate', 'inf'], '--rate inf: expected 0.1 to 240'),
    (['1', '--json', '/no/such/a.json'], '/no/such: no such folder; make it first'),
    (['1', '--json', '/'], '/: is a folder; give the name of a file in it')])
def test_wrong_use_is_one_line_and_exit_code_2(capsys, arguments, message):
    assert run(soak, make_parser(), arguments) == 2
    said, = capsys.readouterr().err.splitlines()
    assert said.startswith('soak: error: ') and message in said


def test_what_is_no_number_is_refused(capsys):
    with pytest.raises(SystemExit) as ending:
        run(soak, make_parser(), ['long'])
    assert ending.value.code == 2
    assert "invalid float value: 'long'" in capsys.readouterr().err
