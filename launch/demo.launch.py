"""Starts the segmentation node on a drawn road scene, shown in RViz."""

from pathlib import Path

from ament_index_python.packages import (
    PackageNotFoundError,
    get_package_prefix,
    get_package_share_directory,
)
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node


def is_installed(package: str) -> bool:
    """Whether the sourced workspaces hold that package."""
    try:
        get_package_prefix(package)
    except PackageNotFoundError:
        return False
    return True


def generate_launch_description() -> LaunchDescription:
    """The image source, and all that seg.launch.py starts; its arguments work here too."""
    seg_launch = Path(get_package_share_directory('seg_ros')) / 'launch' / 'seg.launch.py'
    return LaunchDescription([
        DeclareLaunchArgument(
            'rviz', default_value='true' if is_installed('rviz2') else 'false',
            choices=['true', 'false'],
            description='Whether to show image, overlay and labels in RViz '
                        '(default: where rviz2 is installed).'),
        Node(
            package='seg_ros',
            executable='image_source',
            name='image_source',
            namespace=LaunchConfiguration('namespace', default=''),
            remappings=[('image', LaunchConfiguration('image', default='image'))],
            output='screen',
        ),
        IncludeLaunchDescription(PythonLaunchDescriptionSource(str(seg_launch))),
    ])
