/*
 * What a driver call does: the device ranges of a copy or a fill, the kernel of a launch, and the
 * memory that a call shares.
 */
#include "watch_state.h"

/* The value of the argument at this place. */
#define ARGUMENT(type, place) (*(type const *)call->arguments[place])

/* ---- copies and fills ------------------------------------------------------------------------ */

static unsigned watch_calls_one(struct watch_use uses[2], enum watch_effect effect,
                                CUdeviceptr address, uint64_t bytes) {
    uses[0] = (struct watch_use){effect, address, bytes, bytes, 0};
    return 1;
}

static unsigned watch_calls_two(struct watch_use uses[2], CUdeviceptr to, CUdeviceptr from,
                                uint64_t bytes) {
    uses[0] = (struct watch_use){WATCH_WRITTEN, to, bytes, bytes, from};
    uses[1] = (struct watch_use){WATCH_READ, from, bytes, bytes, to};
    return 2;
}

/* Rows of one fill: width elements of a number of bytes. */
static unsigned watch_calls_fill(struct watch_use uses[2], CUdeviceptr to, uint64_t pitch,
                                 uint64_t width, uint64_t height) {
    if (width * height == 0) return 0;
    uses[0] =
        (struct watch_use){WATCH_WRITTEN, to, width * height, (height - 1) * pitch + width, 0};
    return 1;
}

/* An end of a copy of rows and layers. */
struct end {
    CUmemorytype kind;
    CUdeviceptr address; /* of its first byte; 0: an array's or the host's */
    uint64_t pitch, slice;
};

static struct end end_of(CUmemorytype kind, CUdeviceptr device, uint64_t pitch, uint64_t height,
                         uint64_t x, uint64_t y, uint64_t z) {
    const bool has_address = kind == CU_MEMORYTYPE_DEVICE || kind == CU_MEMORYTYPE_UNIFIED;
    return (struct end){kind, has_address ? device + z * height * pitch + y * pitch + x : 0, pitch,
                        height * pitch};
}

static unsigned watch_calls_box(struct watch_use uses[2], const struct end *to,
                                const struct end *from, uint64_t width, uint64_t height,
                                uint64_t depth) {
    unsigned count = 0;
    const uint64_t bytes = width * height * depth;
    if (bytes == 0) return 0;
    if (to->address != 0) {
        uses[count++] = (struct watch_use){
            from->kind == CU_MEMORYTYPE_HOST ? WATCH_IN : WATCH_WRITTEN, to->address, bytes,
            (depth - 1) * to->slice + (height - 1) * to->pitch + width, from->address};
    }
    if (from->address != 0) {
        uses[count++] = (struct watch_use){
            to->kind == CU_MEMORYTYPE_HOST ? WATCH_OUT : WATCH_READ, from->address, bytes,
            (depth - 1) * from->slice + (height - 1) * from->pitch + width, to->address};
    }
    return count;
}

static unsigned watch_calls_rows(struct watch_use uses[2], const CUDA_MEMCPY2D *copy) {
    const struct end to = end_of(copy->dstMemoryType, copy->dstDevice, copy->dstPitch, 0,
                                 copy->dstXInBytes, copy->dstY, 0),
                     from = end_of(copy->srcMemoryType, copy->srcDevice, copy->srcPitch, 0,
                                   copy->srcXInBytes, copy->srcY, 0);
    return watch_calls_box(uses, &to, &from, copy->WidthInBytes, copy->Height, 1);
}

/* Of CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER, which have the same members here. */
#define LAYERS(uses, copy)                                                                         \
    watch_calls_box(uses,                                                                          \
                    &(struct end[]){end_of((copy)->dstMemoryType, (copy)->dstDevice,               \
                                           (copy)->dstPitch, (copy)->dstHeight,                    \
                                           (copy)->dstXInBytes, (copy)->dstY, (copy)->dstZ)}[0],   \
                    &(struct end[]){end_of((copy)->srcMemoryType, (copy)->srcDevice,               \
                                           (copy)->srcPitch, (copy)->srcHeight,                    \
                                           (copy)->srcXInBytes, (copy)->srcY, (copy)->srcZ)}[0],   \
                    (copy)->WidthInBytes, (copy)->Height, (copy)->Depth)

unsigned watch_copy_of_node(const CUDA_MEMCPY3D *copy, struct watch_use uses[2]) {
    return LAYERS(uses, copy);
}

unsigned watch_fill_of_node(const CUDA_MEMSET_NODE_PARAMS *node, struct watch_use uses[2]) {
    return watch_calls_fill(uses, node->dst, node->pitch, node->width * node->elementSize,
                            node->height);
}

unsigned watch_copies(const struct tol_interpose_call *call, struct watch_use uses[2],
                      CUstream *stream) {
    *stream = NULL;
    switch (call->index) {
    case TOL_DRIVER_INDEX_cuMemcpyHtoDAsync_v2:
        *stream = ARGUMENT(CUstream, 3);
        return watch_calls_one(uses, WATCH_IN, ARGUMENT(CUdeviceptr, 0), ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemcpyHtoD_v2:
        return watch_calls_one(uses, WATCH_IN, ARGUMENT(CUdeviceptr, 0), ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemcpyDtoHAsync_v2:
        *stream = ARGUMENT(CUstream, 3);
        return watch_calls_one(uses, WATCH_OUT, ARGUMENT(CUdeviceptr, 1), ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemcpyDtoH_v2:
        return watch_calls_one(uses, WATCH_OUT, ARGUMENT(CUdeviceptr, 1), ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemcpyDtoDAsync_v2:
    case TOL_DRIVER_INDEX_cuMemcpyAsync:
        *stream = ARGUMENT(CUstream, 3);
        return watch_calls_two(uses, ARGUMENT(CUdeviceptr, 0), ARGUMENT(CUdeviceptr, 1),
                               ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemcpyDtoD_v2:
    case TOL_DRIVER_INDEX_cuMemcpy:
        return watch_calls_two(uses, ARGUMENT(CUdeviceptr, 0), ARGUMENT(CUdeviceptr, 1),
                               ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemcpyPeerAsync:
        *stream = ARGUMENT(CUstream, 5);
        return watch_calls_two(uses, ARGUMENT(CUdeviceptr, 0), ARGUMENT(CUdeviceptr, 2),
                               ARGUMENT(size_t, 4));
    case TOL_DRIVER_INDEX_cuMemcpyPeer:
        return watch_calls_two(uses, ARGUMENT(CUdeviceptr, 0), ARGUMENT(CUdeviceptr, 2),
                               ARGUMENT(size_t, 4));
    case TOL_DRIVER_INDEX_cuMemcpy2DAsync_v2:
        *stream = ARGUMENT(CUstream, 1);
        return watch_calls_rows(uses, ARGUMENT(const CUDA_MEMCPY2D *, 0));
    case TOL_DRIVER_INDEX_cuMemcpy2D_v2:
    case TOL_DRIVER_INDEX_cuMemcpy2DUnaligned_v2:
        return watch_calls_rows(uses, ARGUMENT(const CUDA_MEMCPY2D *, 0));
    case TOL_DRIVER_INDEX_cuMemcpy3DAsync_v2:
        *stream = ARGUMENT(CUstream, 1);
        return LAYERS(uses, ARGUMENT(const CUDA_MEMCPY3D *, 0));
    case TOL_DRIVER_INDEX_cuMemcpy3D_v2:
        return LAYERS(uses, ARGUMENT(const CUDA_MEMCPY3D *, 0));
    case TOL_DRIVER_INDEX_cuMemcpy3DPeerAsync:
        *stream = ARGUMENT(CUstream, 1);
        return LAYERS(uses, ARGUMENT(const CUDA_MEMCPY3D_PEER *, 0));
    case TOL_DRIVER_INDEX_cuMemcpy3DPeer:
        return LAYERS(uses, ARGUMENT(const CUDA_MEMCPY3D_PEER *, 0));
    case TOL_DRIVER_INDEX_cuMemsetD8Async:
        *stream = ARGUMENT(CUstream, 3);
        return watch_calls_one(uses, WATCH_WRITTEN, ARGUMENT(CUdeviceptr, 0), ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemsetD16Async:
        *stream = ARGUMENT(CUstream, 3);
        return watch_calls_one(uses, WATCH_WRITTEN, ARGUMENT(CUdeviceptr, 0),
                               2 * ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemsetD32Async:
        *stream = ARGUMENT(CUstream, 3);
        return watch_calls_one(uses, WATCH_WRITTEN, ARGUMENT(CUdeviceptr, 0),
                               4 * ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemsetD8_v2:
        return watch_calls_one(uses, WATCH_WRITTEN, ARGUMENT(CUdeviceptr, 0), ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemsetD16_v2:
        return watch_calls_one(uses, WATCH_WRITTEN, ARGUMENT(CUdeviceptr, 0),
                               2 * ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuMemsetD32_v2:
        return watch_calls_one(uses, WATCH_WRITTEN, ARGUMENT(CUdeviceptr, 0),
                               4 * ARGUMENT(size_t, 2));
    case TOL_DRIVER_INDEX_cuStreamWriteValue32_v2:
        *stream = ARGUMENT(CUstream, 0);
        return watch_calls_one(uses, WATCH_WRITTEN, ARGUMENT(CUdeviceptr, 1), 4);
#define ROWS_OF(size)                                                                              \
    watch_calls_fill(uses, ARGUMENT(CUdeviceptr, 0), ARGUMENT(size_t, 1),                          \
                     (size)*ARGUMENT(size_t, 3), ARGUMENT(size_t, 4))
    case TOL_DRIVER_INDEX_cuMemsetD2D8Async:
        *stream = ARGUMENT(CUstream, 5);
        return ROWS_OF(1);
    case TOL_DRIVER_INDEX_cuMemsetD2D16Async:
        *stream = ARGUMENT(CUstream, 5);
        return ROWS_OF(2);
    case TOL_DRIVER_INDEX_cuMemsetD2D32Async:
        *stream = ARGUMENT(CUstream, 5);
        return ROWS_OF(4);
    case TOL_DRIVER_INDEX_cuMemsetD2D8_v2:
        return ROWS_OF(1);
    case TOL_DRIVER_INDEX_cuMemsetD2D16_v2:
        return ROWS_OF(2);
    case TOL_DRIVER_INDEX_cuMemsetD2D32_v2:
        return ROWS_OF(4);
    default:
        return 0;
    }
}

bool watch_is_of_host(const struct tol_driver_table *driver, CUdeviceptr address) {
    int kind = 0;
    unsigned is_managed = 0;
    if (driver->cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) !=
            CUDA_SUCCESS ||
        kind == CU_MEMORYTYPE_HOST) {
        return true;
    }
    return driver->cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) ==
               CUDA_SUCCESS &&
           is_managed != 0;
}

/* ---- what is looked at ----------------------------------------------------------------------- */

bool watch_is_work(enum tol_driver_index index) {
    switch (index) {
    case TOL_DRIVER_INDEX_cuMemcpy:
    case TOL_DRIVER_INDEX_cuMemcpyAsync:
    case TOL_DRIVER_INDEX_cuMemcpyHtoD_v2:
    case TOL_DRIVER_INDEX_cuMemcpyHtoDAsync_v2:
    case TOL_DRIVER_INDEX_cuMemcpyDtoH_v2:
    case TOL_DRIVER_INDEX_cuMemcpyDtoHAsync_v2:
    case TOL_DRIVER_INDEX_cuMemcpyDtoD_v2:
    case TOL_DRIVER_INDEX_cuMemcpyDtoDAsync_v2:
    case TOL_DRIVER_INDEX_cuMemcpyPeer:
    case TOL_DRIVER_INDEX_cuMemcpyPeerAsync:
    case TOL_DRIVER_INDEX_cuMemcpy2D_v2:
    case TOL_DRIVER_INDEX_cuMemcpy2DUnaligned_v2:
    case TOL_DRIVER_INDEX_cuMemcpy2DAsync_v2:
    case TOL_DRIVER_INDEX_cuMemcpy3D_v2:
    case TOL_DRIVER_INDEX_cuMemcpy3DAsync_v2:
    case TOL_DRIVER_INDEX_cuMemcpy3DPeer:
    case TOL_DRIVER_INDEX_cuMemcpy3DPeerAsync:
    case TOL_DRIVER_INDEX_cuMemsetD8_v2:
    case TOL_DRIVER_INDEX_cuMemsetD16_v2:
    case TOL_DRIVER_INDEX_cuMemsetD32_v2:
    case TOL_DRIVER_INDEX_cuMemsetD8Async:
    case TOL_DRIVER_INDEX_cuMemsetD16Async:
    case TOL_DRIVER_INDEX_cuMemsetD32Async:
    case TOL_DRIVER_INDEX_cuMemsetD2D8_v2:
    case TOL_DRIVER_INDEX_cuMemsetD2D16_v2:
    case TOL_DRIVER_INDEX_cuMemsetD2D32_v2:
    case TOL_DRIVER_INDEX_cuMemsetD2D8Async:
    case TOL_DRIVER_INDEX_cuMemsetD2D16Async:
    case TOL_DRIVER_INDEX_cuMemsetD2D32Async:
    case TOL_DRIVER_INDEX_cuStreamWriteValue32_v2:
    case TOL_DRIVER_INDEX_cuLaunchKernel:
    case TOL_DRIVER_INDEX_cuLaunchKernelEx:
    case TOL_DRIVER_INDEX_cuLaunchCooperativeKernel:
    case TOL_DRIVER_INDEX_cuGraphLaunch:
        return true;
    default:
        return false;
    }
}

bool watch_is_seen(enum tol_driver_index index) {
    switch (index) {
    case TOL_DRIVER_INDEX_cuIpcGetMemHandle:
    case TOL_DRIVER_INDEX_cuMemRetainAllocationHandle:
    case TOL_DRIVER_INDEX_cuMemExportToShareableHandle:
    case TOL_DRIVER_INDEX_cuMemMap:
        return true;
    default:
        return watch_is_work(index);
    }
}

bool watch_launch_of(const struct tol_interpose_call *call, struct watch_launch *launch) {
    switch (call->index) {
    case TOL_DRIVER_INDEX_cuLaunchKernel:
        *launch = (struct watch_launch){ARGUMENT(CUfunction, 0), ARGUMENT(CUstream, 8),
                                        ARGUMENT(void **, 9), ARGUMENT(void **, 10)};
        return true;
    case TOL_DRIVER_INDEX_cuLaunchCooperativeKernel:
        *launch = (struct watch_launch){ARGUMENT(CUfunction, 0), ARGUMENT(CUstream, 8),
                                        ARGUMENT(void **, 9), NULL};
        return true;
    case TOL_DRIVER_INDEX_cuLaunchKernelEx:
        *launch = (struct watch_launch){ARGUMENT(CUfunction, 1),
                                        ARGUMENT(const CUlaunchConfig *, 0)->hStream,
                                        ARGUMENT(void **, 2), ARGUMENT(void **, 3)};
        return true;
    default:
        return false;
    }
}
