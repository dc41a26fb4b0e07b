/*
 * The runtime's ABI types against NVIDIA's: compiled where a toolkit of CUDA 13.0 or newer is
 * present, and checked by the compiler.
 *
 * cuda_runtime_api.h is included first. cudart_types.h then declares its structs again under other
 * names, and each field must have the offset of NVIDIA's header.
 */
#include <criterion/criterion.h>

#if defined(TOL_HAS_CUDA_H)

#include <cuda.h>
#include <cuda_runtime_api.h>

#define SOFT_ABI(name) own_##name
#define CUDART_TYPE(name) own_##name
#include "cudart_types.h"

#define CUDART_MAJOR 13
#include "cudart_properties.h"

#include <stddef.h>

#define CUDART_ERROR(name, value) _Static_assert((name) == (value), #name " differs");
#include "cudart_errors.def"
#undef CUDART_ERROR

#define SIZE(own, type) _Static_assert(sizeof(own) == sizeof(type), #type " differs in size");
#define FIELD(own, type, field)                                                                    \
    _Static_assert(offsetof(own, field) == offsetof(type, field) &&                                \
                       sizeof(((own *)0)->field) == sizeof(((type *)0)->field),                    \
                   #type "." #field " differs");

SIZE(own_dim3, struct dim3)
FIELD(own_dim3, struct dim3, x)
FIELD(own_dim3, struct dim3, y)
FIELD(own_dim3, struct dim3, z)
SIZE(own_cudaChannelFormatDesc, struct cudaChannelFormatDesc)
FIELD(own_cudaChannelFormatDesc, struct cudaChannelFormatDesc, x)
FIELD(own_cudaChannelFormatDesc, struct cudaChannelFormatDesc, y)
FIELD(own_cudaChannelFormatDesc, struct cudaChannelFormatDesc, z)
FIELD(own_cudaChannelFormatDesc, struct cudaChannelFormatDesc, w)
FIELD(own_cudaChannelFormatDesc, struct cudaChannelFormatDesc, f)
SIZE(own_cudaPitchedPtr, struct cudaPitchedPtr)
FIELD(own_cudaPitchedPtr, struct cudaPitchedPtr, ptr)
FIELD(own_cudaPitchedPtr, struct cudaPitchedPtr, pitch)
FIELD(own_cudaPitchedPtr, struct cudaPitchedPtr, xsize)
FIELD(own_cudaPitchedPtr, struct cudaPitchedPtr, ysize)
SIZE(own_cudaExtent, struct cudaExtent)
FIELD(own_cudaExtent, struct cudaExtent, width)
FIELD(own_cudaExtent, struct cudaExtent, height)
FIELD(own_cudaExtent, struct cudaExtent, depth)
SIZE(own_cudaPos, struct cudaPos)
FIELD(own_cudaPos, struct cudaPos, x)
FIELD(own_cudaPos, struct cudaPos, y)
FIELD(own_cudaPos, struct cudaPos, z)
SIZE(own_cudaMemcpy3DParms, struct cudaMemcpy3DParms)
FIELD(own_cudaMemcpy3DParms, struct cudaMemcpy3DParms, srcArray)
FIELD(own_cudaMemcpy3DParms, struct cudaMemcpy3DParms, srcPos)
FIELD(own_cudaMemcpy3DParms, struct cudaMemcpy3DParms, srcPtr)
FIELD(own_cudaMemcpy3DParms, struct cudaMemcpy3DParms, dstArray)
FIELD(own_cudaMemcpy3DParms, struct cudaMemcpy3DParms, dstPos)
FIELD(own_cudaMemcpy3DParms, struct cudaMemcpy3DParms, dstPtr)
FIELD(own_cudaMemcpy3DParms, struct cudaMemcpy3DParms, extent)
FIELD(own_cudaMemcpy3DParms, struct cudaMemcpy3DParms, kind)
SIZE(own_cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms)
FIELD(own_cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms, srcArray)
FIELD(own_cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms, srcPos)
FIELD(own_cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms, srcPtr)
FIELD(own_cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms, srcDevice)
FIELD(own_cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms, dstArray)
FIELD(own_cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms, dstPos)
FIELD(own_cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms, dstPtr)
FIELD(own_cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms, dstDevice)
FIELD(own_cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms, extent)
SIZE(own_cudaResourceDesc, struct cudaResourceDesc)
FIELD(own_cudaResourceDesc, struct cudaResourceDesc, resType)
FIELD(own_cudaResourceDesc, struct cudaResourceDesc, res.array)
FIELD(own_cudaResourceDesc, struct cudaResourceDesc, res.mipmap)
FIELD(own_cudaResourceDesc, struct cudaResourceDesc, res.linear.devPtr)
FIELD(own_cudaResourceDesc, struct cudaResourceDesc, res.linear.desc)
FIELD(own_cudaResourceDesc, struct cudaResourceDesc, res.linear.sizeInBytes)
FIELD(own_cudaResourceDesc, struct cudaResourceDesc, res.pitch2D.devPtr)
FIELD(own_cudaResourceDesc, struct cudaResourceDesc, res.pitch2D.desc)
FIELD(own_cudaResourceDesc, struct cudaResourceDesc, res.pitch2D.width)
FIELD(own_cudaResourceDesc, struct cudaResourceDesc, res.pitch2D.height)
FIELD(own_cudaResourceDesc, struct cudaResourceDesc, res.pitch2D.pitchInBytes)
FIELD(own_cudaResourceDesc, struct cudaResourceDesc, flags)
SIZE(own_cudaTextureDesc, struct cudaTextureDesc)
FIELD(own_cudaTextureDesc, struct cudaTextureDesc, addressMode)
FIELD(own_cudaTextureDesc, struct cudaTextureDesc, filterMode)
FIELD(own_cudaTextureDesc, struct cudaTextureDesc, readMode)
FIELD(own_cudaTextureDesc, struct cudaTextureDesc, sRGB)
FIELD(own_cudaTextureDesc, struct cudaTextureDesc, borderColor)
FIELD(own_cudaTextureDesc, struct cudaTextureDesc, normalizedCoords)
FIELD(own_cudaTextureDesc, struct cudaTextureDesc, maxAnisotropy)
FIELD(own_cudaTextureDesc, struct cudaTextureDesc, mipmapFilterMode)
FIELD(own_cudaTextureDesc, struct cudaTextureDesc, mipmapLevelBias)
FIELD(own_cudaTextureDesc, struct cudaTextureDesc, minMipmapLevelClamp)
FIELD(own_cudaTextureDesc, struct cudaTextureDesc, maxMipmapLevelClamp)
FIELD(own_cudaTextureDesc, struct cudaTextureDesc, disableTrilinearOptimization)
FIELD(own_cudaTextureDesc, struct cudaTextureDesc, seamlessCubemap)
SIZE(own_cudaMemcpyAttributes, struct cudaMemcpyAttributes)
FIELD(own_cudaMemcpyAttributes, struct cudaMemcpyAttributes, srcAccessOrder)
FIELD(own_cudaMemcpyAttributes, struct cudaMemcpyAttributes, srcLocHint)
FIELD(own_cudaMemcpyAttributes, struct cudaMemcpyAttributes, dstLocHint)
FIELD(own_cudaMemcpyAttributes, struct cudaMemcpyAttributes, flags)
SIZE(own_cudaMemcpy3DOperand, struct cudaMemcpy3DOperand)
FIELD(own_cudaMemcpy3DOperand, struct cudaMemcpy3DOperand, type)
FIELD(own_cudaMemcpy3DOperand, struct cudaMemcpy3DOperand, op)
SIZE(own_cudaMemcpy3DBatchOp, struct cudaMemcpy3DBatchOp)
FIELD(own_cudaMemcpy3DBatchOp, struct cudaMemcpy3DBatchOp, src)
FIELD(own_cudaMemcpy3DBatchOp, struct cudaMemcpy3DBatchOp, dst)
FIELD(own_cudaMemcpy3DBatchOp, struct cudaMemcpy3DBatchOp, extent)
FIELD(own_cudaMemcpy3DBatchOp, struct cudaMemcpy3DBatchOp, srcAccessOrder)
FIELD(own_cudaMemcpy3DBatchOp, struct cudaMemcpy3DBatchOp, flags)
SIZE(own_cudaPointerAttributes, struct cudaPointerAttributes)
FIELD(own_cudaPointerAttributes, struct cudaPointerAttributes, type)
FIELD(own_cudaPointerAttributes, struct cudaPointerAttributes, device)
FIELD(own_cudaPointerAttributes, struct cudaPointerAttributes, devicePointer)
FIELD(own_cudaPointerAttributes, struct cudaPointerAttributes, hostPointer)
FIELD(own_cudaPointerAttributes, struct cudaPointerAttributes, reserved)
SIZE(own_cudaFuncAttributes, struct cudaFuncAttributes)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, sharedSizeBytes)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, constSizeBytes)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, localSizeBytes)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, maxThreadsPerBlock)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, numRegs)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, ptxVersion)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, binaryVersion)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, cacheModeCA)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, maxDynamicSharedSizeBytes)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, preferredShmemCarveout)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, clusterDimMustBeSet)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, requiredClusterWidth)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, requiredClusterHeight)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, requiredClusterDepth)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, clusterSchedulingPolicyPreference)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, nonPortableClusterSizeAllowed)
FIELD(own_cudaFuncAttributes, struct cudaFuncAttributes, reserved)
SIZE(own_cudaLaunchConfig_t, cudaLaunchConfig_t)
FIELD(own_cudaLaunchConfig_t, cudaLaunchConfig_t, gridDim)
FIELD(own_cudaLaunchConfig_t, cudaLaunchConfig_t, blockDim)
FIELD(own_cudaLaunchConfig_t, cudaLaunchConfig_t, dynamicSmemBytes)
FIELD(own_cudaLaunchConfig_t, cudaLaunchConfig_t, stream)
FIELD(own_cudaLaunchConfig_t, cudaLaunchConfig_t, attrs)
FIELD(own_cudaLaunchConfig_t, cudaLaunchConfig_t, numAttrs)
SIZE(own_cudaKernelNodeParams, struct cudaKernelNodeParams)
FIELD(own_cudaKernelNodeParams, struct cudaKernelNodeParams, func)
FIELD(own_cudaKernelNodeParams, struct cudaKernelNodeParams, gridDim)
FIELD(own_cudaKernelNodeParams, struct cudaKernelNodeParams, blockDim)
FIELD(own_cudaKernelNodeParams, struct cudaKernelNodeParams, sharedMemBytes)
FIELD(own_cudaKernelNodeParams, struct cudaKernelNodeParams, kernelParams)
FIELD(own_cudaKernelNodeParams, struct cudaKernelNodeParams, extra)
SIZE(own_cudaMemcpyNodeParams, struct cudaMemcpyNodeParams)
FIELD(own_cudaMemcpyNodeParams, struct cudaMemcpyNodeParams, flags)
FIELD(own_cudaMemcpyNodeParams, struct cudaMemcpyNodeParams, reserved)
FIELD(own_cudaMemcpyNodeParams, struct cudaMemcpyNodeParams, copyParams)
SIZE(own_cudaGraphNodeParams, struct cudaGraphNodeParams)
FIELD(own_cudaGraphNodeParams, struct cudaGraphNodeParams, type)
FIELD(own_cudaGraphNodeParams, struct cudaGraphNodeParams, reserved0)
FIELD(own_cudaGraphNodeParams, struct cudaGraphNodeParams, kernel)
FIELD(own_cudaGraphNodeParams, struct cudaGraphNodeParams, memcpy)
FIELD(own_cudaGraphNodeParams, struct cudaGraphNodeParams, memset)
FIELD(own_cudaGraphNodeParams, struct cudaGraphNodeParams, host)
FIELD(own_cudaGraphNodeParams, struct cudaGraphNodeParams, graph)
FIELD(own_cudaGraphNodeParams, struct cudaGraphNodeParams, eventWait)
FIELD(own_cudaGraphNodeParams, struct cudaGraphNodeParams, eventRecord)
FIELD(own_cudaGraphNodeParams, struct cudaGraphNodeParams, alloc)
FIELD(own_cudaGraphNodeParams, struct cudaGraphNodeParams, free)
FIELD(own_cudaGraphNodeParams, struct cudaGraphNodeParams, reserved1)
FIELD(own_cudaGraphNodeParams, struct cudaGraphNodeParams, reserved2)
SIZE(struct cudart_properties, struct cudaDeviceProp)
FIELD(struct cudart_properties, struct cudaDeviceProp, luid)
FIELD(struct cudart_properties, struct cudaDeviceProp, totalGlobalMem)
FIELD(struct cudart_properties, struct cudaDeviceProp, reserved)
#define CUDART_PROPERTY(versions, type, member, elements, first, second, third)                    \
    CUDART_IN_##versions(FIELD(struct cudart_properties, struct cudaDeviceProp, member))
#include "cudart_property.def"

/* What is passed on to the driver as it is. */
SIZE(CUDA_RESOURCE_VIEW_DESC, struct cudaResourceViewDesc)
FIELD(CUDA_RESOURCE_VIEW_DESC, struct cudaResourceViewDesc, format)
FIELD(CUDA_RESOURCE_VIEW_DESC, struct cudaResourceViewDesc, width)
FIELD(CUDA_RESOURCE_VIEW_DESC, struct cudaResourceViewDesc, height)
FIELD(CUDA_RESOURCE_VIEW_DESC, struct cudaResourceViewDesc, depth)
FIELD(CUDA_RESOURCE_VIEW_DESC, struct cudaResourceViewDesc, firstMipmapLevel)
FIELD(CUDA_RESOURCE_VIEW_DESC, struct cudaResourceViewDesc, lastMipmapLevel)
FIELD(CUDA_RESOURCE_VIEW_DESC, struct cudaResourceViewDesc, firstLayer)
FIELD(CUDA_RESOURCE_VIEW_DESC, struct cudaResourceViewDesc, lastLayer)
SIZE(CUDA_ARRAY_MEMORY_REQUIREMENTS, struct cudaArrayMemoryRequirements)
FIELD(CUDA_ARRAY_MEMORY_REQUIREMENTS, struct cudaArrayMemoryRequirements, size)
FIELD(CUDA_ARRAY_MEMORY_REQUIREMENTS, struct cudaArrayMemoryRequirements, alignment)
SIZE(CUDA_ARRAY_SPARSE_PROPERTIES, struct cudaArraySparseProperties)
FIELD(CUDA_ARRAY_SPARSE_PROPERTIES, struct cudaArraySparseProperties, tileExtent)
FIELD(CUDA_ARRAY_SPARSE_PROPERTIES, struct cudaArraySparseProperties, miptailFirstLevel)
FIELD(CUDA_ARRAY_SPARSE_PROPERTIES, struct cudaArraySparseProperties, miptailSize)
FIELD(CUDA_ARRAY_SPARSE_PROPERTIES, struct cudaArraySparseProperties, flags)
SIZE(CUmemLocation, struct cudaMemLocation)
FIELD(CUmemLocation, struct cudaMemLocation, type)
FIELD(CUmemLocation, struct cudaMemLocation, id)
SIZE(CUmemAccessDesc, struct cudaMemAccessDesc)
FIELD(CUmemAccessDesc, struct cudaMemAccessDesc, location)
FIELD(CUmemAccessDesc, struct cudaMemAccessDesc, flags)
SIZE(CUmemPoolProps, struct cudaMemPoolProps)
FIELD(CUmemPoolProps, struct cudaMemPoolProps, allocType)
FIELD(CUmemPoolProps, struct cudaMemPoolProps, handleTypes)
FIELD(CUmemPoolProps, struct cudaMemPoolProps, location)
FIELD(CUmemPoolProps, struct cudaMemPoolProps, maxSize)
FIELD(CUmemPoolProps, struct cudaMemPoolProps, usage)
SIZE(CUmemPoolPtrExportData, struct cudaMemPoolPtrExportData)
FIELD(CUmemPoolPtrExportData, struct cudaMemPoolPtrExportData, reserved)
SIZE(CUDA_MEM_ALLOC_NODE_PARAMS, struct cudaMemAllocNodeParams)
FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, struct cudaMemAllocNodeParams, poolProps)
FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, struct cudaMemAllocNodeParams, accessDescs)
FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, struct cudaMemAllocNodeParams, accessDescCount)
FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, struct cudaMemAllocNodeParams, bytesize)
FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, struct cudaMemAllocNodeParams, dptr)
SIZE(CUDA_MEMSET_NODE_PARAMS, struct cudaMemsetParams)
FIELD(CUDA_MEMSET_NODE_PARAMS, struct cudaMemsetParams, dst)
FIELD(CUDA_MEMSET_NODE_PARAMS, struct cudaMemsetParams, pitch)
FIELD(CUDA_MEMSET_NODE_PARAMS, struct cudaMemsetParams, value)
FIELD(CUDA_MEMSET_NODE_PARAMS, struct cudaMemsetParams, elementSize)
FIELD(CUDA_MEMSET_NODE_PARAMS, struct cudaMemsetParams, width)
FIELD(CUDA_MEMSET_NODE_PARAMS, struct cudaMemsetParams, height)
SIZE(CUDA_HOST_NODE_PARAMS, struct cudaHostNodeParams)
FIELD(CUDA_HOST_NODE_PARAMS, struct cudaHostNodeParams, fn)
FIELD(CUDA_HOST_NODE_PARAMS, struct cudaHostNodeParams, userData)
SIZE(CUgraphEdgeData, cudaGraphEdgeData)
FIELD(CUgraphEdgeData, cudaGraphEdgeData, from_port)
FIELD(CUgraphEdgeData, cudaGraphEdgeData, to_port)
FIELD(CUgraphEdgeData, cudaGraphEdgeData, type)
SIZE(CUDA_GRAPH_INSTANTIATE_PARAMS, cudaGraphInstantiateParams)
FIELD(CUDA_GRAPH_INSTANTIATE_PARAMS, cudaGraphInstantiateParams, flags)
SIZE(CUgraphExecUpdateResultInfo, cudaGraphExecUpdateResultInfo)
FIELD(CUgraphExecUpdateResultInfo, cudaGraphExecUpdateResultInfo, result)
FIELD(CUgraphExecUpdateResultInfo, cudaGraphExecUpdateResultInfo, errorNode)
FIELD(CUgraphExecUpdateResultInfo, cudaGraphExecUpdateResultInfo, errorFromNode)
SIZE(CUipcMemHandle, cudaIpcMemHandle_t)
FIELD(CUipcMemHandle, cudaIpcMemHandle_t, reserved)
SIZE(CUipcEventHandle, cudaIpcEventHandle_t)
FIELD(CUipcEventHandle, cudaIpcEventHandle_t, reserved)
SIZE(CUuuid, cudaUUID_t)
FIELD(CUuuid, cudaUUID_t, bytes)
SIZE(CUlaunchAttribute, cudaLaunchAttribute)
_Static_assert(offsetof(CUlaunchAttribute, value) == offsetof(cudaLaunchAttribute, val), "value");
#define ATTRIBUTE(field) FIELD(CUlaunchAttributeValue, cudaLaunchAttributeValue, field)
ATTRIBUTE(accessPolicyWindow)
ATTRIBUTE(cooperative)
ATTRIBUTE(clusterDim)
ATTRIBUTE(programmaticEvent)
ATTRIBUTE(priority)
ATTRIBUTE(memSyncDomainMap)
ATTRIBUTE(launchCompletionEvent)
ATTRIBUTE(deviceUpdatableKernelNode)

_Static_assert(cudaMemcpyHostToDevice == 1 && cudaMemcpyDeviceToHost == 2 &&
                   cudaMemcpyDeviceToDevice == 3 && cudaMemcpyDefault == 4,
               "cudaMemcpyKind");
_Static_assert(cudaMemoryTypeHost == 1 && cudaMemoryTypeDevice == 2 && cudaMemoryTypeManaged == 3,
               "cudaMemoryType");

_Static_assert(cudaChannelFormatKindUnsigned == 1 && cudaChannelFormatKindFloat == 2 &&
                   cudaChannelFormatKindNone == 3 && cudaChannelFormatKindNV12 == 4 &&
                   cudaChannelFormatKindUnsignedNormalized8X1 == 5 &&
                   cudaChannelFormatKindSignedNormalized16X4 == 16 &&
                   cudaChannelFormatKindUnsignedBlockCompressed1 == 17 &&
                   cudaChannelFormatKindUnsignedBlockCompressed7SRGB == 30 &&
                   cudaChannelFormatKindUnsignedNormalized1010102 == 31,
               "cudaChannelFormatKind");
_Static_assert(cudaReadModeNormalizedFloat == 1, "cudaTextureReadMode");

Test(cudart_types, agree_with_cuda_runtime_api_h) {
    cr_assert(CUDART_VERSION >= 13000);
}

#else

Test(cudart_types, agree_with_cuda_runtime_api_h) {
    cr_skip_test("no CUDA toolkit of version 13.0 or newer where this was compiled");
}

#endif
