"""Commands that need no ROS."""
