/*
 * The types of the CUDA runtime's ABI, declared without CUDA's headers.
 *
 * Handles are those of the driver, and so are the structures that are the same in both APIs.
 * Enumerations are plain int: a caller may pass any value. cudart_types_test.c compares layouts and
 * values with driver_types.h where a toolkit is.
 *
 * Source: CUDA Runtime API 13.0, "Data types used by CUDA Runtime".
 */
#ifndef CUDART_TYPES_H
#define CUDART_TYPES_H

#include "base/abi.h"

#ifndef CUDART_TYPE
#define CUDART_TYPE(name) name

enum {
#define CUDART_ERROR(name, value) name = value,
#include "cudart_errors.def"
#undef CUDART_ERROR
};

enum {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};

enum {
    cudaMemoryTypeUnregistered,
    cudaMemoryTypeHost,
    cudaMemoryTypeDevice,
    cudaMemoryTypeManaged
};

enum { cudaInvalidDeviceId = -2, cudaCpuDeviceId = -1 };

enum {
    cudaChannelFormatKindSigned,
    cudaChannelFormatKindUnsigned,
    cudaChannelFormatKindFloat,
    cudaChannelFormatKindNone,
    cudaChannelFormatKindNV12,
    cudaChannelFormatKindUnsignedNormalized8X1,
    cudaChannelFormatKindSignedNormalized16X4 = 16,
    cudaChannelFormatKindUnsignedBlockCompressed1,
    cudaChannelFormatKindUnsignedBlockCompressed7SRGB = 30,
    cudaChannelFormatKindUnsignedNormalized1010102
};

enum { cudaReadModeElementType, cudaReadModeNormalizedFloat };

typedef int cudaError_t, cudaChannelFormatKind, cudaDeviceAttr, cudaDeviceP2PAttr,
    cudaDriverEntryPointQueryResult, cudaFuncAttribute, cudaFuncCache, cudaGraphMemAttributeType,
    cudaGraphNodeType, cudaJitOption, cudaKernelNodeAttrID, cudaLibraryOption, cudaLimit,
    cudaMemAccessFlags, cudaMemAllocationHandleType, cudaMemAllocationType, cudaMemPoolAttr,
    cudaMemRangeAttribute, cudaMemcpy3DOperandType, cudaMemcpyKind, cudaMemcpySrcAccessOrder,
    cudaMemoryAdvise, cudaMemoryType, cudaResourceType, cudaResourceViewFormat, cudaSharedMemConfig,
    cudaStreamAttrID, cudaStreamCaptureMode, cudaStreamCaptureStatus, cudaTextureAddressMode,
    cudaTextureFilterMode, cudaTextureReadMode;

typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUuserObject cudaUserObject_t;
typedef CUmemoryPool cudaMemPool_t;
typedef CUlibrary cudaLibrary_t;
typedef CUkernel cudaKernel_t;
typedef CUfunction cudaFunction_t;
typedef CUlogIterator cudaLogIterator;
typedef CUhostFn cudaHostFn_t;
typedef CUuuid cudaUUID_t;
typedef CUipcEventHandle cudaIpcEventHandle_t;
typedef CUipcMemHandle cudaIpcMemHandle_t;
typedef CUmemLocation cudaMemLocation;
typedef CUmemAccessDesc cudaMemAccessDesc;
typedef CUmemPoolProps cudaMemPoolProps;
typedef CUmemPoolPtrExportData cudaMemPoolPtrExportData;
typedef CUlaunchAttribute cudaLaunchAttribute;
typedef CUlaunchAttributeValue cudaLaunchAttributeValue, cudaKernelNodeAttrValue,
    cudaStreamAttrValue;
typedef CUgraphEdgeData cudaGraphEdgeData;
typedef CUDA_GRAPH_INSTANTIATE_PARAMS cudaGraphInstantiateParams;
typedef CUgraphExecUpdateResultInfo cudaGraphExecUpdateResultInfo;
typedef CUDA_HOST_NODE_PARAMS cudaHostNodeParams;
typedef CUDA_MEM_ALLOC_NODE_PARAMS cudaMemAllocNodeParams;
typedef CUDA_MEMSET_NODE_PARAMS cudaMemsetParams;

typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *userData);

/* Arrays and what is read through them are the driver's. */
typedef CUarray cudaArray_t;
typedef const struct CUarray_st *cudaArray_const_t;
typedef CUmipmappedArray cudaMipmappedArray_t;
typedef const struct CUmipmappedArray_st *cudaMipmappedArray_const_t;
typedef CUtexObject cudaTextureObject_t;
typedef CUsurfObject cudaSurfaceObject_t;
typedef CUDA_RESOURCE_VIEW_DESC cudaResourceViewDesc;
typedef CUDA_ARRAY_MEMORY_REQUIREMENTS cudaArrayMemoryRequirements;
typedef CUDA_ARRAY_SPARSE_PROPERTIES cudaArraySparseProperties;
#endif

typedef struct {
    unsigned int x, y, z;
} CUDART_TYPE(dim3);

typedef struct {
    int x, y, z, w;
    int f;
} CUDART_TYPE(cudaChannelFormatDesc);

typedef struct {
    void *ptr;
    size_t pitch, xsize, ysize;
} CUDART_TYPE(cudaPitchedPtr);

typedef struct {
    size_t width, height, depth;
} CUDART_TYPE(cudaExtent);

typedef struct {
    size_t x, y, z;
} CUDART_TYPE(cudaPos);

/* ---- textures ---- */

/* CUDA 12's ends after pitch2D; what CUDA 13 added is reserved. */
typedef struct {
    int resType;
    union {
        struct {
            CUarray array;
        } array;
        struct {
            CUmipmappedArray mipmap;
        } mipmap;
        struct {
            void *devPtr;
            CUDART_TYPE(cudaChannelFormatDesc) desc;
            size_t sizeInBytes;
        } linear;
        struct {
            void *devPtr;
            CUDART_TYPE(cudaChannelFormatDesc) desc;
            size_t width, height, pitchInBytes;
        } pitch2D;
        struct {
            int reserved[32];
        } reserved;
    } res;
    unsigned int flags;
} CUDART_TYPE(cudaResourceDesc);

typedef struct {
    int addressMode[3];
    int filterMode;
    int readMode;
    int sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned int maxAnisotropy;
    int mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int disableTrilinearOptimization;
    int seamlessCubemap;
} CUDART_TYPE(cudaTextureDesc);

/* ---- copies ---- */

typedef struct {
    CUarray srcArray;
    CUDART_TYPE(cudaPos) srcPos;
    CUDART_TYPE(cudaPitchedPtr) srcPtr;
    CUarray dstArray;
    CUDART_TYPE(cudaPos) dstPos;
    CUDART_TYPE(cudaPitchedPtr) dstPtr;
    CUDART_TYPE(cudaExtent) extent;
    int kind;
} CUDART_TYPE(cudaMemcpy3DParms);

typedef struct {
    CUarray srcArray;
    CUDART_TYPE(cudaPos) srcPos;
    CUDART_TYPE(cudaPitchedPtr) srcPtr;
    int srcDevice;
    CUarray dstArray;
    CUDART_TYPE(cudaPos) dstPos;
    CUDART_TYPE(cudaPitchedPtr) dstPtr;
    int dstDevice;
    CUDART_TYPE(cudaExtent) extent;
} CUDART_TYPE(cudaMemcpy3DPeerParms);

typedef struct {
    int srcAccessOrder;
    CUmemLocation srcLocHint, dstLocHint;
    unsigned int flags;
} CUDART_TYPE(cudaMemcpyAttributes);

typedef struct {
    int type;
    union {
        struct {
            void *ptr;
            size_t rowLength, layerHeight;
            CUmemLocation locHint;
        } ptr;
        struct {
            CUarray array;
            struct {
                size_t x, y, z;
            } offset;
        } array;
    } op;
} CUDART_TYPE(cudaMemcpy3DOperand);

typedef struct {
    CUDART_TYPE(cudaMemcpy3DOperand) src, dst;
    CUDART_TYPE(cudaExtent) extent;
    int srcAccessOrder;
    unsigned int flags;
} CUDART_TYPE(cudaMemcpy3DBatchOp);

/* ---- queries ---- */

/* CUDA 12's ends after hostPtr; what CUDA 13 added is reserved. */
typedef struct {
    int type;
    int device;
    void *devicePointer;
    void *hostPointer;
    long reserved[8];
} CUDART_TYPE(cudaPointerAttributes);

typedef struct {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock;
    int numRegs;
    int ptxVersion, binaryVersion;
    int cacheModeCA;
    int maxDynamicSharedSizeBytes;
    int preferredShmemCarveout;
    int clusterDimMustBeSet;
    int requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
    int clusterSchedulingPolicyPreference;
    int nonPortableClusterSizeAllowed;
    int reserved[16];
} CUDART_TYPE(cudaFuncAttributes);

/* ---- launches and graphs ---- */

typedef struct {
    CUDART_TYPE(dim3) gridDim, blockDim;
    size_t dynamicSmemBytes;
    CUstream stream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUDART_TYPE(cudaLaunchConfig_t);

typedef struct {
    void *func;
    CUDART_TYPE(dim3) gridDim, blockDim;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
} CUDART_TYPE(cudaKernelNodeParams);

typedef struct {
    int flags;
    int reserved[3];
    CUDART_TYPE(cudaMemcpy3DParms) copyParams;
} CUDART_TYPE(cudaMemcpyNodeParams);

typedef struct {
    int type;
    int reserved0[3];
    union {
        long long reserved1[29];
        CUDART_TYPE(cudaKernelNodeParams) kernel;
        CUDART_TYPE(cudaMemcpyNodeParams) memcpy;
        CUDA_MEMSET_NODE_PARAMS memset;
        CUDA_HOST_NODE_PARAMS host;
        CUDA_CHILD_GRAPH_NODE_PARAMS graph;
        struct {
            CUevent event;
        } eventWait, eventRecord;
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        struct {
            void *dptr;
        } free;
    };
    long long reserved2;
} CUDART_TYPE(cudaGraphNodeParams);

#endif
