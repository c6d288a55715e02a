"""What the NVIDIA driver and TensorRT say of this machine, whichever build of torch is there."""

import ctypes

TENSORRT_MAJORS = (11, 10, 9, 8)


def gpu_names() -> list[str]:
    """Names of the GPUs that the driver finds; none where there is no driver."""
    try:
        driver = ctypes.CDLL('libcuda.so.1')
    except OSError:
        return []
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    names = []
    for index in range(count.value):
        device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
        if driver.cuDeviceGet(ctypes.byref(device), index) or (
                driver.cuDeviceGetName(name, len(name), device)):
            break
        names.append(name.value.decode(errors='replace'))
    return names


def tensorrt_version() -> int | None:
    """Version of the TensorRT that the loader finds, e.g. 100900; None where it finds none.

    ONNX Runtime's builds for GPUs name TensorRT among their providers whether or not it is there.
    """
    for major in TENSORRT_MAJORS:
        try:
            return int(ctypes.CDLL(f'libnvinfer.so.{major}').getInferLibVersion())
        except OSError:
            continue
    return None
