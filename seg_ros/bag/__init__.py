"""Labels for the images of a recorded bag, without a ROS graph: ``seg_bag``."""
