"""A drawn road scene, moving, with the exact class of each pixel."""

from seg_ros.drawn_scene.scene import DrawnScene

__all__ = ['DrawnScene']
