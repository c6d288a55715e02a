"""From a camera's frame to the class of each pixel: needs no ROS."""
