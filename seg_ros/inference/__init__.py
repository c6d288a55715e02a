"""From a camera's frame to the class of each pixel: needs no ROS."""

import sys

# Else openvino tells its makers on the internet of each import and each use.
sys.modules.setdefault('openvino_telemetry', None)  # type: ignore[arg-type] # an import then fails
