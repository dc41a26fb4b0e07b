/*
 * Device runtime: a PTX replacement of the cooperative groups functions in CUDA's libcudadevrt,
 * because NVIDIA's library has only machine code and PTX for newer devices. Linking that library
 * links this text instead.
 *
 * cudaCGGetIntrinsicHandle(scope) returns the workspace of a cooperative launch for the grid scope
 * (1), else 0. cudaCGSynchronize(handle, flags) waits for all blocks of the grid; 1 if the handle
 * is 0. Both are weak. Launches by kernels are not here.
 */
#ifndef SOFT_DEVICE_RUNTIME_H
#define SOFT_DEVICE_RUNTIME_H

/* The member of the library with its functions. */
#define SOFT_DEVICE_RUNTIME_MEMBER "cuda_device_runtime.o"

extern const char soft_device_runtime[];

#endif
