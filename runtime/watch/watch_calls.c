/*
 * What a driver call does: which device ranges a copy or a fill uses, and what a launch launches.
 */
#include "watch_state.h"

/* The value of the argument at this place. */
#define ARGUMENT(type, place) (*(type const *)call->arguments[place])

static unsigned one(struct watch_use uses[2], enum watch_effect effect, CUdeviceptr address,
                    uint64_t bytes) {
    uses[0] = (struct watch_use){effect, address, bytes, bytes};
    return 1;
}

static unsigned two(struct watch_use uses[2], CUdeviceptr to, CUdeviceptr from, uint64_t bytes) {
    uses[0] = (struct watch_use){WATCH_WRITTEN, to, bytes, bytes};
    uses[1] = (struct watch_use){WATCH_READ, from, bytes, bytes};
    return 2;
}

/* Of a copy of rows: the device's side or sides. */
static unsigned rows(struct watch_use uses[2], const CUDA_MEMCPY2D *copy) {
    unsigned count = 0;
    const uint64_t bytes = copy->WidthInBytes * copy->Height;
    if (bytes == 0) return 0;
    const bool to_device = copy->dstMemoryType == CU_MEMORYTYPE_DEVICE,
               from_device = copy->srcMemoryType == CU_MEMORYTYPE_DEVICE;
    if (to_device) {
        uses[count++] =
            (struct watch_use){from_device ? WATCH_WRITTEN : WATCH_IN,
                               copy->dstDevice + copy->dstY * copy->dstPitch + copy->dstXInBytes,
                               bytes, (copy->Height - 1) * copy->dstPitch + copy->WidthInBytes};
    }
    if (from_device) {
        uses[count++] =
            (struct watch_use){to_device ? WATCH_READ : WATCH_OUT,
                               copy->srcDevice + copy->srcY * copy->srcPitch + copy->srcXInBytes,
                               bytes, (copy->Height - 1) * copy->srcPitch + copy->WidthInBytes};
    }
    return count;
}

unsigned watch_copies(const struct tol_interpose_call *call, struct watch_use uses[2],
                      CUstream *stream) {
    *stream = NULL;
    switch (call->index) {
    case TOL_DRIVER_INDEX_cuMemcpyHtoDAsync_v2:
        *stream = ARGUMENT(CUstream, 3);
        return one(uses, WATCH_IN, ARGUMENT(CUdeviceptr, 0), ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemcpyHtoD_v2:
        return one(uses, WATCH_IN, ARGUMENT(CUdeviceptr, 0), ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemcpyDtoHAsync_v2:
        *stream = ARGUMENT(CUstream, 3);
        return one(uses, WATCH_OUT, ARGUMENT(CUdeviceptr, 1), ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemcpyDtoH_v2:
        return one(uses, WATCH_OUT, ARGUMENT(CUdeviceptr, 1), ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemcpyDtoDAsync_v2:
        *stream = ARGUMENT(CUstream, 3);
        return two(uses, ARGUMENT(CUdeviceptr, 0), ARGUMENT(CUdeviceptr, 1), ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemcpyDtoD_v2:
        return two(uses, ARGUMENT(CUdeviceptr, 0), ARGUMENT(CUdeviceptr, 1), ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemcpyPeerAsync:
        *stream = ARGUMENT(CUstream, 5);
        return two(uses, ARGUMENT(CUdeviceptr, 0), ARGUMENT(CUdeviceptr, 2), ARGUMENT(size_t, 4));
    case TOL_DRIVER_INDEX_cuMemcpy2DAsync_v2:
        *stream = ARGUMENT(CUstream, 1);
        return rows(uses, ARGUMENT(const CUDA_MEMCPY2D *, 0));
    case TOL_DRIVER_INDEX_cuMemsetD8Async:
        *stream = ARGUMENT(CUstream, 3);
        return one(uses, WATCH_WRITTEN, ARGUMENT(CUdeviceptr, 0), ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemsetD16Async:
        *stream = ARGUMENT(CUstream, 3);
        return one(uses, WATCH_WRITTEN, ARGUMENT(CUdeviceptr, 0), 2 * ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemsetD32Async:
        *stream = ARGUMENT(CUstream, 3);
        return one(uses, WATCH_WRITTEN, ARGUMENT(CUdeviceptr, 0), 4 * ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemsetD8_v2:
        return one(uses, WATCH_WRITTEN, ARGUMENT(CUdeviceptr, 0), ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemsetD16_v2:
        return one(uses, WATCH_WRITTEN, ARGUMENT(CUdeviceptr, 0), 2 * ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemsetD32_v2:
        return one(uses, WATCH_WRITTEN, ARGUMENT(CUdeviceptr, 0), 4 * ARGUMENT(size_t, 2));
    default:
        return 0;
    }
}

bool watch_is_seen(enum tol_driver_index index) {
    switch (index) {
    case TOL_DRIVER_INDEX_cuMemcpyHtoD_v2:
    case TOL_DRIVER_INDEX_cuMemcpyHtoDAsync_v2:
    case TOL_DRIVER_INDEX_cuMemcpyDtoH_v2:
    case TOL_DRIVER_INDEX_cuMemcpyDtoHAsync_v2:
    case TOL_DRIVER_INDEX_cuMemcpyDtoD_v2:
    case TOL_DRIVER_INDEX_cuMemcpyDtoDAsync_v2:
    case TOL_DRIVER_INDEX_cuMemcpyPeerAsync:
    case TOL_DRIVER_INDEX_cuMemcpy2DAsync_v2:
    case TOL_DRIVER_INDEX_cuMemsetD8_v2:
    case TOL_DRIVER_INDEX_cuMemsetD16_v2:
    case TOL_DRIVER_INDEX_cuMemsetD32_v2:
    case TOL_DRIVER_INDEX_cuMemsetD8Async:
    case TOL_DRIVER_INDEX_cuMemsetD16Async:
    case TOL_DRIVER_INDEX_cuMemsetD32Async:
    case TOL_DRIVER_INDEX_cuLaunchKernel:
    case TOL_DRIVER_INDEX_cuLaunchKernelEx:
    case TOL_DRIVER_INDEX_cuGraphAddKernelNode_v2:
    case TOL_DRIVER_INDEX_cuGraphKernelNodeSetParams_v2:
    case TOL_DRIVER_INDEX_cuGraphExecKernelNodeSetParams_v2:
        return true;
    default:
        return false;
    }
}

bool watch_launch_of(const struct tol_interpose_call *call, struct watch_launch *launch) {
    const CUDA_KERNEL_NODE_PARAMS *node;
    switch (call->index) {
    case TOL_DRIVER_INDEX_cuLaunchKernel:
        *launch = (struct watch_launch){ARGUMENT(CUfunction, 0), ARGUMENT(CUstream, 8),
                                        ARGUMENT(void **, 9), ARGUMENT(void **, 10)};
        return true;
    case TOL_DRIVER_INDEX_cuLaunchKernelEx:
        *launch = (struct watch_launch){ARGUMENT(CUfunction, 1),
                                        ARGUMENT(const CUlaunchConfig *, 0)->hStream,
                                        ARGUMENT(void **, 2), ARGUMENT(void **, 3)};
        return true;
    case TOL_DRIVER_INDEX_cuGraphAddKernelNode_v2:
        node = ARGUMENT(const void *, 4);
        break;
    case TOL_DRIVER_INDEX_cuGraphKernelNodeSetParams_v2:
        node = ARGUMENT(const void *, 1);
        break;
    case TOL_DRIVER_INDEX_cuGraphExecKernelNodeSetParams_v2:
        node = ARGUMENT(const void *, 2);
        break;
    default:
        return false;
    }
    *launch = (struct watch_launch){node->func, NULL, node->kernelParams, node->extra};
    return true;
}
