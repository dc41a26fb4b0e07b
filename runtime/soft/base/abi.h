/*
 * The types of libcuda's ABI that only the soft device uses; tollens/cuda_abi.h has the others.
 *
 * Enumerations are plain int here: a caller may pass any value, and a switch must handle unknown
 * ones. The enumerators are in abi.def. abi_test.c compares every layout and value with cuda.h; for
 * that it renames the declarations with SOFT_ABI.
 *
 * Source: CUDA Driver API 13.0, "Data types used by CUDA driver".
 */
#ifndef SOFT_ABI_H
#define SOFT_ABI_H

#include "tollens/cuda_abi.h"

#include <stddef.h>
#include <stdint.h>

#ifndef SOFT_ABI
#define SOFT_ABI(name) name

enum {
#define SOFT_VALUE(name, value) name = value,
#include "abi.def"
};

typedef int CUaddress_mode, CUarray_format, CUfilter_mode, CUresourcetype, CUresourceViewFormat;

typedef int CUdevice_P2PAttribute, CUdriverProcAddressQueryResult, CUexecAffinityType,
    CUflushGPUDirectRDMAWritesScope, CUflushGPUDirectRDMAWritesTarget, CUfunc_cache,
    CUfunctionLoadingState, CUgraphChildGraphNodeOwnership, CUgraphInstantiateResult,
    CUgraphMem_attribute, CUjitInputType, CUkernelNodeAttrID, CUlibraryOption, CUlimit,
    CUmem_advise, CUmem_range_attribute, CUmoduleLoadingMode, CUsharedconfig, CUstreamAttrID,
    CUstreamBatchMemOpType;

typedef struct CUasyncNotification_st *CUasyncCallbackHandle;
typedef struct CUextMemory_st *CUexternalMemory;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUlib_st *CUlibrary;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUsurfref_st *CUsurfref;
typedef struct CUtexref_st *CUtexref;
typedef struct CUuserObject_st *CUuserObject;

typedef unsigned long long CUsurfObject, CUtexObject;

typedef void(CUDAAPI *CUstreamCallback)(CUstream hStream, CUresult status, void *userData);
typedef size_t(CUDAAPI *CUoccupancyB2DSize)(int blockSize);

#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)
#define CU_LAUNCH_PARAM_END ((void *)0x0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)0x1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)0x2)
#endif

typedef struct {
    char reserved[64];
} SOFT_ABI(CUipcEventHandle);

typedef struct {
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    int sharedMemPerBlock;
    int totalConstantMemory;
    int SIMDWidth;
    int memPitch;
    int regsPerBlock;
    int clockRate;
    int textureAlign;
} SOFT_ABI(CUdevprop);

typedef struct {
    CUexecAffinityType type;
    union {
        struct {
            unsigned int val;
        } smCount;
    } param;
} SOFT_ABI(CUexecAffinityParam);

typedef struct {
    SOFT_ABI(CUexecAffinityParam) * execAffinityParams;
    int numExecAffinityParams;
    void *cigParams;
} SOFT_ABI(CUctxCreateParams);

/* ---- arrays, textures, surfaces ---- */

#include "abi_array.h"

/* ---- memory that is mapped, and pools ---- */

#ifdef __cuda_cuda_h__
#define CUDA_TYPE(name) SOFT_ABI(name)
#define CUDA_TYPES_RENAMED
#include "tollens/cuda_abi_types.def"
#endif

typedef struct {
    unsigned char reserved[64];
} SOFT_ABI(CUmemPoolPtrExportData);

/* ---- streams ---- */

typedef union {
    CUstreamBatchMemOpType operation;
    struct {
        CUstreamBatchMemOpType operation;
        CUdeviceptr address;
        union {
            cuuint32_t value;
            cuuint64_t value64;
        };
        unsigned int flags;
        CUdeviceptr alias;
    } waitValue, writeValue;
    struct {
        CUstreamBatchMemOpType operation;
        unsigned int flags;
    } flushRemoteWrites, memoryBarrier;
    cuuint64_t pad[6];
} SOFT_ABI(CUstreamBatchMemOpParams);

typedef SOFT_ABI(CUlaunchAttributeValue) SOFT_ABI(CUkernelNodeAttrValue);
typedef SOFT_ABI(CUlaunchAttributeValue) SOFT_ABI(CUstreamAttrValue);

/* ---- graphs ---- */

/* Before CUDA 12: without a kernel and a context. */
typedef struct {
    CUfunction func;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
} SOFT_ABI(CUDA_KERNEL_NODE_PARAMS_v1);

typedef struct {
    CUdeviceptr dst;
    size_t pitch;
    unsigned int value;
    unsigned int elementSize;
    size_t width, height;
    CUcontext ctx;
} SOFT_ABI(CUDA_MEMSET_NODE_PARAMS_v2);

typedef struct {
    int flags;
    int reserved;
    CUcontext copyCtx;
    SOFT_ABI(CUDA_MEMCPY3D) copyParams;
} SOFT_ABI(CUDA_MEMCPY_NODE_PARAMS);

typedef struct {
    CUcontext ctx;
    unsigned int count;
    SOFT_ABI(CUstreamBatchMemOpParams) * paramArray;
    unsigned int flags;
} SOFT_ABI(CUDA_BATCH_MEM_OP_NODE_PARAMS);

typedef struct {
    SOFT_ABI(CUmemPoolProps) poolProps;
    const SOFT_ABI(CUmemAccessDesc) * accessDescs;
    size_t accessDescCount;
    size_t bytesize;
    CUdeviceptr dptr;
} SOFT_ABI(CUDA_MEM_ALLOC_NODE_PARAMS);

typedef struct {
    CUgraph graph;
    CUgraphChildGraphNodeOwnership ownership;
} SOFT_ABI(CUDA_CHILD_GRAPH_NODE_PARAMS);

typedef struct {
    CUgraphNodeType type;
    int reserved0[3];
    union {
        long long reserved1[29];
        SOFT_ABI(CUDA_KERNEL_NODE_PARAMS) kernel;
        SOFT_ABI(CUDA_MEMCPY_NODE_PARAMS) memcpy;
        SOFT_ABI(CUDA_MEMSET_NODE_PARAMS_v2) memset;
        SOFT_ABI(CUDA_HOST_NODE_PARAMS) host;
        SOFT_ABI(CUDA_CHILD_GRAPH_NODE_PARAMS) graph;
        struct {
            CUevent event;
        } eventWait, eventRecord;
        SOFT_ABI(CUDA_MEM_ALLOC_NODE_PARAMS) alloc;
        struct {
            CUdeviceptr dptr;
        } free;
        SOFT_ABI(CUDA_BATCH_MEM_OP_NODE_PARAMS) memOp;
    };
    long long reserved2;
} SOFT_ABI(CUgraphNodeParams);

typedef struct {
    unsigned char from_port;
    unsigned char to_port;
    unsigned char type;
    unsigned char reserved[5];
} SOFT_ABI(CUgraphEdgeData);

typedef struct {
    cuuint64_t flags;
    CUstream hUploadStream;
    CUgraphNode hErrNode_out;
    CUgraphInstantiateResult result_out;
} SOFT_ABI(CUDA_GRAPH_INSTANTIATE_PARAMS);

#endif
