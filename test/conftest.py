"""What all tests share."""

import signal

import pytest

from seg_ros.model_file import save_model


@pytest.fixture(autouse=True)
def heard_ctrl_c():
    """Start each test with Ctrl-C as it is in a terminal.

    A run in the background may have been told to ignore it, and a node's process edge that a test
    calls ignores it from then on; processes that tests start would inherit that.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope='module')
def model_file(request, tmp_path_factory):
    """File of the model that a module of tests calls MODEL."""
    path = tmp_path_factory.mktemp('model') / 'tiny.safetensors'
    save_model(path, request.module.MODEL.network, request.module.MODEL.spec)
    return path
