"""Fast DDS made wide enough for pictures."""

import os
from pathlib import Path

# By default a process hands out messages through 512 KiB of shared memory. A 640x480 picture has
# 900 KiB: most of those that a best-effort subscription is to get are lost. Three processes with
# 16 MiB each still fit into the 64 MiB that containers have.
PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<profiles xmlns="http://www.eprosima.com">
  <transport_descriptors>
    <transport_descriptor>
      <transport_id>wide_shared_memory</transport_id>
      <type>SHM</type>
      <segment_size>16777216</segment_size>
    </transport_descriptor>
    <transport_descriptor>
      <transport_id>this_machine</transport_id>
      <type>UDPv4</type>
      <interfaceWhiteList><address>127.0.0.1</address></interfaceWhiteList>
    </transport_descriptor>
  </transport_descriptors>
  <participant profile_name="demo" is_default_profile="true">
    <rtps>
      <userTransports>
        <transport_id>wide_shared_memory</transport_id>
        <transport_id>this_machine</transport_id>
      </userTransports>
      <useBuiltinTransports>false</useBuiltinTransports>
    </rtps>
  </participant>
</profiles>
"""


def use_profile(folder: Path) -> None:
    """Have this process and its children use the profile, unless they are told another.

    :param folder: takes the file; is to stay while ROS runs.
    """
    # Humble knows the older name only.
    variable = ('FASTRTPS' if os.environ.get('ROS_DISTRO') == 'humble' else 'FASTDDS'
                ) + '_DEFAULT_PROFILES_FILE'
    if variable not in os.environ:
        path = folder / 'fast_dds.xml'
        path.write_text(PROFILE)
        os.environ[variable] = str(path)
