"""Semantic segmentation of camera streams for ROS 2."""

__version__ = '0.1.0'
