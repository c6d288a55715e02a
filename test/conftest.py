"""What all tests share."""

import signal

import pytest


@pytest.fixture(autouse=True)
def heard_ctrl_c():
    """Start each test with Ctrl-C as it is in a terminal.

    A run in the background may have been told to ignore it, and a node's process edge that a test
    calls ignores it from then on; processes that tests start would inherit that.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
