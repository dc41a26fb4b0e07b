"""Waits for the kernels of this process, through the driver that it has loaded."""

import ctypes
import os


def wait_for_kernels() -> None:
    """Waits for what this process launched, in its current context and in the primary ones."""
    try:
        driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return  # it launched nothing
    count, context = ctypes.c_int(), ctypes.c_void_p()
    flags, active = ctypes.c_uint(), ctypes.c_int()
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return
    if driver.cuCtxGetCurrent(ctypes.byref(context)) == 0 and context:
        driver.cuCtxSynchronize()
    for device in range(count.value):
        state = driver.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags),
                                                  ctypes.byref(active))
        if state != 0 or not active.value:
            continue
        if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0:
            driver.cuCtxPushCurrent_v2(context)
            driver.cuCtxSynchronize()
            driver.cuCtxPopCurrent_v2(ctypes.byref(context))
            driver.cuDevicePrimaryCtxRelease_v2(device)
