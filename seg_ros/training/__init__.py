"""Training and evaluation of the networks: needs no ROS."""
