/*
 * Our ABI against NVIDIA's: compiled where a toolkit of CUDA 13.0 or newer is present.
 *
 * Every check is made by the compiler: each value of cuda_result.def and cuda_abi.def against the
 * enumerator of that name, each signature of driver.def against the prototype of that name, and
 * each type's size. cuda.h is included first, so cuda_abi.h steps back and the names below are
 * NVIDIA's; __CUDA_API_VERSION_INTERNAL makes it declare every exported name, and rename none.
 */
#include <criterion/criterion.h>

#if defined(TOL_HAS_CUDA_H)

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "tollens/cuda_abi.h"

#define SAME(name, value) _Static_assert((long long)(name) == (value), #name " differs");
#define CUDA_RESULT(name, value) SAME(name, value)
#include "tollens/cuda_result.def"
#undef CUDA_RESULT

#define CUDA_DEVICE_ATTRIBUTE(name, value) SAME(name, value)
#define CUDA_FUNCTION_ATTRIBUTE(name, value) SAME(name, value)
#define CUDA_JIT_OPTION(name, value) SAME(name, value)
#define CUDA_FLAG(name, value) SAME(name, value)
#include "tollens/cuda_abi.def"

SAME(CU_MEMHOSTALLOC_PORTABLE, 0x01)
SAME(CU_MEMHOSTALLOC_DEVICEMAP, 0x02)
SAME(CU_MEMHOSTALLOC_WRITECOMBINED, 0x04)

/* What cuda_abi.h says of the same types, where cuda.h is not there. */
_Static_assert(sizeof(CUresult) == sizeof(int), "CUresult");
_Static_assert(sizeof(CUdevice_attribute) == sizeof(int), "CUdevice_attribute");
_Static_assert(sizeof(CUfunction_attribute) == sizeof(int), "CUfunction_attribute");
_Static_assert(sizeof(CUjit_option) == sizeof(int), "CUjit_option");
_Static_assert(__builtin_types_compatible_p(CUdeviceptr, unsigned long long), "CUdeviceptr");
_Static_assert(__builtin_types_compatible_p(CUdevice, int), "CUdevice");
_Static_assert(__builtin_types_compatible_p(CUlogIterator, unsigned int), "CUlogIterator");
_Static_assert(sizeof(CUcontext) == sizeof(void *), "CUcontext");
_Static_assert(sizeof(CUmodule) == sizeof(void *), "CUmodule");
_Static_assert(sizeof(CUfunction) == sizeof(void *), "CUfunction");
_Static_assert(sizeof(CUstream) == sizeof(void *), "CUstream");
_Static_assert(sizeof(CUevent) == sizeof(void *), "CUevent");

#define TOL_DRIVER_FN(feature, name, parameters, names)                                            \
    _Static_assert(                                                                                \
        __builtin_types_compatible_p(__typeof__(&name), CUresult(CUDAAPI *) parameters),           \
        #name " has another signature");
#include "tollens/driver.def"

Test(cuda_abi, agrees_with_cuda_h) {
    cr_assert(CUDA_VERSION >= 13000);
}

#else

Test(cuda_abi, agrees_with_cuda_h) {
    cr_skip_test("no CUDA toolkit of version 13.0 or newer where this was compiled");
}

#endif
