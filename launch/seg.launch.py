"""Starts the segmentation node, which configures and activates itself, and RViz if asked."""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'fatal']
# Given on the command line, these win over params_file; left empty, they leave it alone.
OVERRIDES = ['model', 'engine', 'device']


def start_node(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Start the node, with the arguments that were given.

    :raises FileNotFoundError: there is no `params_file`; the node would run on without it.
    """
    def value_of(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    params_file = Path(value_of('params_file'))
    if not params_file.is_file():
        raise FileNotFoundError(f'params_file:={params_file}: no such file; give the path of a '
                                'YAML file, or leave it out for the defaults')
    overrides: dict[str, str | list[str]] = {
        name: value_of(name) for name in OVERRIDES if value_of(name)}
    if value_of('cameras'):
        overrides['cameras'] = [name.strip() for name in value_of('cameras').split(',')]
    image = value_of('image')
    return [Node(
        package='seg_ros',
        executable='seg_node',
        name='segmentation',
        namespace=value_of('namespace'),
        parameters=[str(params_file), overrides],
        remappings=[('image', image), ('camera_info', beside(image, 'camera_info'))],
        ros_arguments=['--log-level', value_of('log_level')],
        output='screen',
    )]


def beside(topic: str, name: str) -> str:
    """Topic of that name in the same namespace: drivers publish camera_info beside the image."""
    namespace, slash, _ = topic.rpartition('/')
    return namespace + slash + name


def generate_launch_description() -> LaunchDescription:
    """Arguments, the node, RViz."""
    config = Path(get_package_share_directory('seg_ros')) / 'config'
    rviz = Node(
        package='rviz2',
        executable='rviz2',
        name='rviz_segmentation',
        namespace=LaunchConfiguration('namespace'),
        arguments=['-d', str(config / 'seg.rviz')],
        remappings=[('image', LaunchConfiguration('image'))],
        condition=IfCondition(LaunchConfiguration('rviz')),
    )
    return LaunchDescription([
        DeclareLaunchArgument(
            'image', default_value='image',
            description='Image topic of one camera; camera_info is taken from beside it.'),
        DeclareLaunchArgument(
            'cameras', default_value='',
            description='Names of several cameras, with commas in between: front,left has the '
            'image topics front/image and left/image; empty: what params_file says.'),
        DeclareLaunchArgument(
            'model', default_value='',
            description='Path of a model file, or the name of one that ships, such as '
            'strip_camvid; empty: what params_file says.'),
        DeclareLaunchArgument(
            'engine', default_value='',
            description='auto, torch, openvino or onnxruntime; empty: what params_file says.'),
        DeclareLaunchArgument(
            'device', default_value='',
            description='auto, cpu, cuda or cuda:N; empty: what params_file says.'),
        DeclareLaunchArgument(
            'params_file', default_value=str(config / 'seg.yaml'),
            description='YAML file with the parameters of the node.'),
        DeclareLaunchArgument(
            'namespace', default_value='',
            description='Namespace of the node and of every topic given without a leading slash.'),
        DeclareLaunchArgument(
            'log_level', default_value='info', choices=LOG_LEVELS,
            description='Least severe messages that are logged.'),
        DeclareLaunchArgument(
            'rviz', default_value='false', choices=['true', 'false'],
            description='Whether to show image, overlay and labels in RViz.'),
        OpaqueFunction(function=start_node),
        rviz,
    ])
