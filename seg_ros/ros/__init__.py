"""The ROS 2 node and what it says and hears on topics."""
