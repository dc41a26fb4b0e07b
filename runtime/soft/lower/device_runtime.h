/*
 * Device runtime: PTX of what CUDA's libcudadevrt has for cooperative groups, of which NVIDIA's
 * library holds machine code and PTX for newer devices alone. Linking that library brings this text
 * instead.
 *
 * cudaCGGetIntrinsicHandle(scope) gives the workspace of a cooperative launch for the scope of the
 * grid (1), else 0. cudaCGSynchronize(handle, flags) waits for all blocks of the grid; 1 if the
 * handle is 0. Both are weak. Launches by kernels are not here.
 */
#ifndef SOFT_DEVICE_RUNTIME_H
#define SOFT_DEVICE_RUNTIME_H

/* The member of the library that has its functions. */
#define SOFT_DEVICE_RUNTIME_MEMBER "cuda_device_runtime.o"

extern const char soft_device_runtime[];

#endif
