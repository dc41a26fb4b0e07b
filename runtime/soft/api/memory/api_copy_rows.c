/*
 * Copies of rows and of layers of rows. As in "Memory Management" of the CUDA Driver API 13.0.
 */
#include "state/contexts.h"
#include "driver/copy_call.h"
#include "queue/copy_rows.h"
#include "api/export.h"

#include <string.h>

/* The errors of the context come before those of the arguments. */
static CUresult copy_rows_submit(CUstream stream, bool sound, const struct soft_copy *copy,
                                 bool wait) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    return sound ? soft_copy_submit(stream, copy, wait) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult submit_2d(CUstream stream, const CUDA_MEMCPY2D *call, bool wait) {
    struct soft_copy copy = {0};
    bool sound = call != NULL && soft_copy_of_2d(call, &copy);
    return copy_rows_submit(stream, sound, &copy, wait);
}

static CUresult submit_3d(CUstream stream, const CUDA_MEMCPY3D *call, bool wait) {
    struct soft_copy copy = {0};
    bool sound = call != NULL && soft_copy_of_3d(call, &copy);
    return copy_rows_submit(stream, sound, &copy, wait);
}

/* CUDA_MEMCPY3D_PEER has contexts where CUDA_MEMCPY3D has nothing. */
static CUresult submit_peer(CUstream stream, const CUDA_MEMCPY3D_PEER *call, bool wait) {
    struct soft_context *current = NULL, *to = NULL, *from = NULL;
    CUDA_MEMCPY3D plain = {0};
    CUresult result = soft_context_current(&current);
    if (result != CUDA_SUCCESS) return result;
    if (call == NULL) return CUDA_ERROR_INVALID_VALUE;
    _Static_assert(sizeof plain == sizeof *call, "they differ by the names of two fields");
    result = soft_context_find(call->dstContext, &to);
    if (result == CUDA_SUCCESS) result = soft_context_find(call->srcContext, &from);
    if (result != CUDA_SUCCESS) return result;
    memcpy(&plain, call, sizeof plain);
    return submit_3d(stream, &plain, wait);
}

EXPORT(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *copy)) {
    return submit_2d(NULL, copy, true);
}

EXPORT(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *copy)) {
    return submit_2d(NULL, copy, true);
}

EXPORT(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *copy, CUstream stream)) {
    return submit_2d(stream, copy, false);
}

EXPORT(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *copy)) {
    return submit_3d(NULL, copy, true);
}

EXPORT(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *copy, CUstream stream)) {
    return submit_3d(stream, copy, false);
}

EXPORT(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *copy)) {
    return submit_peer(NULL, copy, true);
}

EXPORT(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *copy, CUstream stream)) {
    return submit_peer(stream, copy, false);
}
