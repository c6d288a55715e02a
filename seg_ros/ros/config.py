"""The node's parameters: one table, from which declarations, checks and config/seg.yaml follow."""

import re
import textwrap
from typing import Any

from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from seg_ros.errors import ConfigError
from seg_ros.inference.engines import ENGINES, PRECISIONS
from seg_ros.ros.camera_qos import RELIABILITIES
from seg_ros.ros.encodings import SUPPORTED_ENCODINGS
from seg_ros.ros.parameter import Parameter
from seg_ros.sizes import EXPECTED, read_size

CAMERA = re.compile(r'[A-Za-z_]\w*(/[A-Za-z_]\w*)*', re.ASCII)
IMAGE_TRANSPORTS = ('raw', 'compressed')
LONGEST_CAMERA = 100  # a whole topic has at most 255


class SizeParameter(Parameter):
    """A size as text, width x height, or nothing."""

    def _allows(self, value: Any) -> bool:
        return not value or read_size(value) is not None

    def expected(self) -> str:
        return f'{EXPECTED} or nothing'


class CamerasParameter(Parameter):
    """Names that the topics of cameras begin with. ROS has no type for an empty list: a list with
    an empty text stands for it.
    """

    def _allows(self, value: Any) -> bool:
        return value == [''] or len(set(value)) == len(value) and all(
            type(name) is str and len(name) <= LONGEST_CAMERA and CAMERA.fullmatch(name)
            for name in value)

    def expected(self) -> str:
        return ("names such as [front, left], each once, of letters, digits and _, not beginning "
                f"with a digit, / in between, at most {LONGEST_CAMERA} long; or ['']")


PARAMETERS = (
    Parameter('model', '', 'Path of a model file, or the name of one that ships: '
              'asymmetric_camvid_train, strip_camvid; empty: asymmetric_camvid.'),
    Parameter('engine', 'auto', 'What runs the network; auto: torch on a CUDA GPU, else openvino '
              'where installed, else torch.', choices=ENGINES),
    Parameter('device', 'auto', 'Where the engine runs: auto, cpu, cuda, cuda:1, ...'),
    Parameter('precision', 'auto', 'Arithmetic of the network; auto: float16 on a GPU, float32 '
              'on a CPU, bfloat16 with openvino on a CPU that has instructions for it.',
              choices=PRECISIONS),
    Parameter('threads', 0, 'CPU threads of the engine; 0: one per core.', 0, 1024),
    CamerasParameter('cameras', [''], 'Names of several cameras: [front, left] has the topics '
                     'front/image, front/camera_info, front/segmentation/..., and so for left; '
                     "['']: one camera, with image, camera_info, segmentation/...."),
    Parameter('reliability', 'auto', 'How images are subscribed to; auto: reliable while all '
              'publishers are, else best_effort, which hears any but loses large images on a busy '
              'machine. A reliable subscription hears reliable publishers only.',
              choices=RELIABILITIES),
    Parameter('image_transport', 'raw', 'How images come; compressed: JPEG or PNG on '
              'image/compressed, which follows a remap of image.', choices=IMAGE_TRANSPORTS),
    Parameter('encoding_override', '', 'Encoding to assume whatever the images claim, e.g. '
              'bgr8; empty: believe them.', choices=('', *SUPPORTED_ENCODINGS)),
    SizeParameter('network_size', '', 'Size at which the network sees the pictures, as 480x360 '
              "(width x height); empty: the camera's shape at the training area."),
    SizeParameter('output_size', '', "Size of all outputs, as 640x480; empty: the camera's."),
    Parameter('label_map', '', 'File that gives the classes other ids, names and colours, or '
              "makes one of several, such as config/autoware.yaml; empty: the model's."),
    Parameter('min_confidence', 0.0, 'Pixels whose class is less probable than this become '
              'unknown (255).', 0.0, 1.0, live=True),
    Parameter('overlay_alpha', 0.5, 'Weight of the colours over the picture in the overlay.',
              0.0, 1.0, live=True),
    Parameter('overlay_legend', False, 'Draw names and colours of the classes into the overlay.',
              live=True),
    Parameter('jpeg_quality', 90, 'Quality of the overlay as JPEG.', 1, 100, live=True),
    Parameter('autostart', True, 'Configure and activate by itself; false: wait for lifecycle '
              'commands.'),
    Parameter('no_frames_after_s', 5.0, 'Warn after this many seconds without an image.',
              0.1, 3600.0, live=True),
    Parameter('age_limit_s', 1.0, 'Diagnostics warn of images that are older than this many '
              'seconds once they are labelled, by their stamps.', 0.001, 3600.0, live=True),
    Parameter('diagnostics_period_s', 1.0, 'Seconds between messages on /diagnostics.',
              0.1, 3600.0, live=True),
)
TABLE = {parameter.name: parameter for parameter in PARAMETERS}


def declare_parameters(node: Node) -> None:
    """Declare the whole table.

    :raises ConfigError: a value given at start-up cannot be used.
    """
    for row in PARAMETERS:
        try:
            node.declare_parameter(row.name, row.default, row.descriptor())
            if isinstance(row.default, list) and node.get_parameter(row.name).value is None:  # []
                node.set_parameters([RosParameter(row.name, value=row.default)])
            read_parameter(node, row.name)
        except ParameterException as error:  # says the parameter and the value
            raise ConfigError(f'{error}; expected {row.expected()}') from error


def read_parameter(node: Node, name: str) -> Any:
    """Current value of a parameter, as its type in the table."""
    return TABLE[name].check(node.get_parameter(name).value)


def read_cameras(names: list[str]) -> list[str]:
    """Names of the cameras, at least one; '' is that of one camera alone."""
    return names or ['']


def default_yaml() -> str:
    """Text of config/seg.yaml: every parameter with its default and what it does."""
    lines = ['# Parameters of the seg_ros node with their defaults.',
             '# Written by: python -m seg_ros.ros.config > config/seg.yaml', '/**:',
             '  ros__parameters:']
    for row in PARAMETERS:
        note = f'{row.description} Expected: {row.expected()}.'
        note += ' Can change while running.' if row.live else ''
        lines += [f'    # {line}' for line in textwrap.wrap(note, 93)]
        value = row.default
        text = f"'{value}'" if isinstance(value, str) else str(value).lower()
        lines.append(f'    {row.name}: {text}')
    return '\n'.join(lines) + '\n'


if __name__ == '__main__':
    print(default_yaml(), end='')
