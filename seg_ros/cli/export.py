"""seg_export: write the deployed graph of a model, to be run without PyTorch."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seg_ros.cli.edge import check_result_file, run
from seg_ros.errors import ConfigError
from seg_ros.files import written_whole
from seg_ros.model_file import load_model, model_help
from seg_ros.onnx_file import sign_onnx


def main() -> int:
    return run(_export, _parser())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='seg_export', description=__doc__)
    parser.add_argument('out', type=Path, metavar='OUT.onnx',
                        help='file to write; one that is there is replaced')
    parser.add_argument('--model', default='', help=model_help())
    return parser


def _export(arguments: argparse.Namespace) -> int:
    expect_onnx_name(arguments.out)
    model = load_model(arguments.model)
    with missing_package_told():
        from seg_ros.inference.onnx_graph import export_graph
    content = sign_onnx(export_graph(model), model.spec, 'float32')
    with written_whole(arguments.out) as beside:
        beside.write_bytes(content)
    print(f'{arguments.out.resolve()}: {model.spec.architecture}, {len(model.spec.labels)} '
          f'classes, {len(content) / 1e6:.1f} MB\n'
          'takes rgb (batch, height, width, 3) uint8; gives labels and confidence (batch, height, '
          'width) uint8, of any batch and size from 32x32 on\n'
          f'use: ros2 run seg_ros seg_node --ros-args -p model:={arguments.out.resolve()}, or '
          '--model of seg_predict and seg_evaluate')
    return 0


@contextmanager
def missing_package_told() -> Iterator[None]:
    """Import inside what needs a package that not everybody has.

    :raises ConfigError: it is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise ConfigError(f'{error.name} is not installed; install it with pip install '
                          f'{error.name}') from error


def expect_onnx_name(out: Path) -> None:
    """Refuse the name of a result that could not be written, or not be read as what it is.

    :raises ConfigError: another suffix than .onnx, no such folder, or the name of a folder.
    """
    if out.suffix.lower() != '.onnx':
        raise ConfigError(f'{out}: expected a name that ends in .onnx')
    check_result_file(out)


if __name__ == '__main__':
    raise SystemExit(main())
