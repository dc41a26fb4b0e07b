"""Kernels for the tests, launched through the driver's interface as any Python package does it.

    python device.py NAME INDEX     launches the kernel and waits for it
"""

import ctypes
import sys

PTX = b"""
.version 6.4
.target sm_70
.address_size 64
.visible .entry store(.param .u64 to) {
  .reg .b64 %rd<2>;
  ld.param.u64 %rd0, [to];
  st.global.u32 [%rd0], 7;
  ret;
}
.visible .entry race(.param .u64 to) {
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  .shared .u32 s;
  ld.param.u64 %rd0, [to];
  mov.u32 %r0, %tid.x;
  st.shared.u32 [s], %r0;
  st.global.u32 [%rd0], 7;
  ret;
}
"""
INSIDE, OUTSIDE = 15, 16  # indices of words of the memory that a kernel stores to


class Device:
    """The primary context of device 0 with 16 words of memory, which nobody frees."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.module, self.memory = ctypes.c_void_p(), ctypes.c_uint64()
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        self.call("cuModuleLoadData", ctypes.byref(self.module), PTX)
        self.call("cuMemAlloc_v2", ctypes.byref(self.memory), ctypes.c_size_t(64))

    def call(self, name: str, *arguments: object) -> None:
        result = getattr(self.cuda, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: {result}")

    def launch(self, name: str, index: int = INSIDE, threads: int = 1) -> None:
        kernel, to = ctypes.c_void_p(), ctypes.c_uint64(self.memory.value + 4 * index)
        self.call("cuModuleGetFunction", ctypes.byref(kernel), self.module, name.encode())
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(to))
        self.call("cuLaunchKernel", kernel, 1, 1, 1, threads, 1, 1, 0, None, parameters, None)

    def wait(self) -> None:
        self.call("cuCtxSynchronize")


if __name__ == "__main__":
    device = Device()
    device.launch(sys.argv[1], int(sys.argv[2]))
    try:
        device.wait()
    except RuntimeError as error:
        print(error)
