/*
 * The part of libcuda's ABI that this project uses, declared without CUDA's headers.
 *
 * No CUDA toolkit is needed: handles are opaque, codes come from cuda_result.def and cuda_abi.def,
 * functions from driver.def. The names are CUDA's, so code reads like any other driver API code. If
 * a program has included cuda.h before, its declarations are used and this file declares nothing.
 * If a toolkit is installed, cuda_abi_test.c compares every size, value and signature with cuda.h
 * at compile time.
 *
 * Source: CUDA Driver API 13.0. Every entry that is used exists since driver 525.60 (CUDA 12.0), or
 * is marked with its feature in driver.def.
 */
#ifndef TOLLENS_CUDA_ABI_H
#define TOLLENS_CUDA_ABI_H

#ifndef __cuda_cuda_h__

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define CUDAAPI __stdcall
#else
#define CUDAAPI
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cudaError_enum {
#define CUDA_RESULT(name, value) name = value,
#include "cuda_result.def"
#undef CUDA_RESULT
} CUresult;

typedef enum CUdevice_attribute_enum {
#define CUDA_DEVICE_ATTRIBUTE(name, value) name = value,
#include "cuda_abi.def"
} CUdevice_attribute;

typedef enum CUfunction_attribute_enum {
#define CUDA_FUNCTION_ATTRIBUTE(name, value) name = value,
#include "cuda_abi.def"
} CUfunction_attribute;

typedef enum CUjit_option_enum {
#define CUDA_JIT_OPTION(name, value) name = value,
#include "cuda_abi.def"
} CUjit_option;

enum cuda_flag {
#define CUDA_FLAG(name, value) name = value,
#include "cuda_abi.def"
};

/* Flags that are macros in cuda.h; cuda_abi_test.c checks these as well. */
#define CU_MEMHOSTALLOC_PORTABLE 0x01
#define CU_MEMHOSTALLOC_DEVICEMAP 0x02
#define CU_MEMHOSTALLOC_WRITECOMBINED 0x04

typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef unsigned int CUlogIterator;
typedef struct CUarray_st *CUarray;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphDeviceUpdatableNode_st *CUgraphDeviceNode;
typedef struct CUkern_st *CUkernel;
typedef void(CUDAAPI *CUhostFn)(void *userData);
typedef unsigned long long CUmemGenericAllocationHandle;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;

/* Enumerations in structures and as targets of pointers; their values are the flags above. */
typedef int CUaccessProperty, CUgraphExecUpdateResult, CUgraphNodeType, CUlaunchAttributeID,
    CUmemAccess_flags, CUmemAllocationGranularity_flags, CUmemAllocationHandleType,
    CUmemAllocationType, CUmemLocationType, CUmemPool_attribute, CUmemorytype, CUpointer_attribute,
    CUstreamCaptureMode, CUstreamCaptureStatus, CUsynchronizationPolicy, CUtensorMapDataType,
    CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion, CUtensorMapSwizzle;

#define CUDA_TYPE(name) name
#include "cuda_abi_types.def"

#ifdef __cplusplus
}
#endif

#endif
#endif
