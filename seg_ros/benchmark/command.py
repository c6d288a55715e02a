"""seg_bench: how fast it labels, side by side with whatever it is compared to, in one run."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from seg_ros.benchmark.variants import (
    ALL_FOLDS,
    DABNET,
    PLAIN,
    SETTINGS,
    TUTORIALS_QUEUE,
    Variant,
    cross,
    parse_variant,
    read_setting,
)
from seg_ros.cli.edge import check_result_file, run
from seg_ros.errors import ConfigError
from seg_ros.files import write_json
from seg_ros.model_file import find_model

ROUNDS, ROS_ROUNDS = 100, 4


@dataclass(frozen=True)
class Options:
    """Checked options.

    :param rounds: in each of which every variant has its turn.
    :param rate_hz: of the camera, for the round trip.
    :param layers: profile the layers, too.
    """

    variants: list[Variant]
    ros: bool
    rounds: int
    rate_hz: float
    layers: bool
    json: Path | None


def main() -> int:
    return run(_bench, _parser())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='seg_bench', description=__doc__,
        epilog='Where an option has several values, every combination is measured. Ratios are to '
        'the first variant.')
    for setting in SETTINGS.values():
        default = '' if setting.default in (None, '') else (
            f' (default: {setting.show(setting.default)})')
        parser.add_argument(setting.option, nargs='+', metavar=setting.metavar,
                            help=setting.description + default)
    parser.add_argument('--compare', nargs='+', metavar='VARIANT', default=[],
                        help='more variants, each KEY=VALUE,KEY=VALUE,... with the names of the '
                        'options above as keys; what is left out is as in the first variant; '
                        f'with --ros, {PLAIN} is a straightforward node instead of ours, with a '
                        f'queue of {TUTORIALS_QUEUE} pictures, or of N: {PLAIN}=N')
    parser.add_argument('--ros', action='store_true',
                        help='time the round trip through DDS with the real node instead')
    parser.add_argument('--rate', type=float, default=30.0, metavar='HZ',
                        help='pictures a second with --ros (default: %(default)g)')
    parser.add_argument('--rounds', type=int, metavar='N',
                        help='turns of each variant that count '
                        f'(default: {ROUNDS}; with --ros {ROS_ROUNDS}, of some seconds each)')
    parser.add_argument('--layers', action='store_true',
                        help='show by types of layers where the time goes in openvino')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write all that was measured')
    return parser


def read_options(arguments: argparse.Namespace) -> Options:
    """Check the arguments.

    :raises ConfigError: one of them cannot be used, or two do not go together.
    """
    values = {name: [read_setting(setting, text) for text in getattr(arguments, name)]
              for name, setting in SETTINGS.items() if getattr(arguments, name) is not None}
    variants = cross(values)
    variants += [parse_variant(text, variants[0]) for text in arguments.compare]
    for variant in variants:
        _check_variant(variant, arguments.ros)
    rounds = arguments.rounds
    if rounds is None:
        rounds = ROS_ROUNDS if arguments.ros else ROUNDS
    if not 1 <= rounds <= 100_000:
        raise ConfigError(f'--rounds {rounds}: expected a whole number from 1 to 100000')
    if not 0.1 <= arguments.rate <= 1000:  # false for nan
        raise ConfigError(f'--rate {arguments.rate:g}: expected 0.1 to 1000')
    if arguments.layers and arguments.ros:
        raise ConfigError('--layers and --ros exclude each other; give one of them')
    if arguments.json is not None:
        check_result_file(arguments.json)
    return Options(variants, arguments.ros, rounds, arguments.rate, arguments.layers,
                   arguments.json)


def _check_variant(variant: Variant, ros: bool) -> None:
    if variant.plain and not ros:
        raise ConfigError(f'--compare {PLAIN}: is a node; add --ros')
    if ros and variant.model == DABNET:
        raise ConfigError(f'model {DABNET}: has no file that a node could load; leave --ros out')
    if variant.plain and _is_exported(variant):
        raise ConfigError(f'--compare {PLAIN}: runs no exported graph; give the .safetensors file '
                          'that it was exported from')
    if variant.plain and 'confidence' in variant.outputs:
        raise ConfigError(f'--compare {PLAIN}: publishes no confidence; leave it out of the '
                          'outputs')
    if ros and 'labels' not in variant.outputs:
        raise ConfigError(f'outputs {"+".join(variant.outputs)}: with --ros, labels must be '
                          'among them, as it is their time that is taken')
    if variant.folds != ALL_FOLDS and (_is_exported(variant) or variant.precision == 'int8'):
        raise ConfigError(f'folds {variant.folds}: an exported or int8 graph has them all; leave '
                          'the folds out, or give a .safetensors file and another precision')
    if ros and variant.folds != ALL_FOLDS:
        raise ConfigError(f'folds {variant.folds}: the node has them all; leave --ros or the '
                          'folds out')
    if ros and variant.batch != 1:
        raise ConfigError(f'batch {variant.batch}: the node labels one picture at a time here; '
                          'leave --ros or the batch out')


def _is_exported(variant: Variant) -> bool:
    return find_model(variant.model).suffix.lower() == '.onnx'


def _bench(arguments: argparse.Namespace) -> int:
    options = read_options(arguments)
    try:
        if options.ros:
            from seg_ros.benchmark.round_trip import measure_round_trip
            rows = measure_round_trip(options.variants, options.rounds, options.rate_hz)
        else:
            from seg_ros.benchmark.in_process import measure_in_process
            rows = measure_in_process(options.variants, options.rounds, options.layers)
    except ModuleNotFoundError as error:
        package = (error.name or '').partition('.')[0]
        if package not in ('rclpy', 'sensor_msgs', 'std_msgs'):
            raise
        raise ConfigError(f'{package}: is not installed; source a ROS distro, or run '
                          'scripts/setup, which brings the wheels of ROS') from error
    from seg_ros.benchmark.report import tables, to_json
    print(tables(rows))
    if options.json is not None:
        write_json(options.json, to_json(rows))
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
