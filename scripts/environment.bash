# Sourced by scripts/demo and scripts/test, after `root` is set: a private ROS graph on this machine.

export AMENT_PREFIX_PATH="$root/.venv${AMENT_PREFIX_PATH:+:$AMENT_PREFIX_PATH}"
# Before the current folder, where a checkout may lie as a folder of the package's name.
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
export ROS_DOMAIN_ID="${ROS_DOMAIN_ID:-$((RANDOM % 100 + 1))}"
export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST
if [ "${ROS_DISTRO:-}" = humble ]; then
    export ROS_LOCALHOST_ONLY=1  # Humble's word for the same
elif [ -z "${ROS_DISTRO:-}" ]; then
    export RMW_IMPLEMENTATION=rmw_fastrtps_cpp  # the one that the wheels bring
fi
