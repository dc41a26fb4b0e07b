/*
 * Before every call: rejects calls before cuInit and from host functions, applies fault rules, and
 * rejects calls that a capture forbids.
 */
#include "call.h"

#include "base/report.h"
#include "graph/capture.h"
#include "state/driver_state.h"
#include "state/fault.h"
#include "leak.h"
#include "queue/stream_fault.h"
#include "state/thread_state.h"
#include "trace_call.h"

/* Calls that take effect at once, so that a graph captured meanwhile would lack it when it is
 * launched again, and queries, also of streams and events outside of captures. Calls that wait
 * check captures themselves. */
static const bool is_unsafe[SOFT_CALLS] = {
    [SOFT_CALL_cuMemAlloc_v2] = true,       [SOFT_CALL_cuMemAllocPitch_v2] = true,
    [SOFT_CALL_cuMemAllocManaged] = true,   [SOFT_CALL_cuMemAllocHost_v2] = true,
    [SOFT_CALL_cuMemHostAlloc] = true,      [SOFT_CALL_cuMemHostRegister_v2] = true,
    [SOFT_CALL_cuMemHostUnregister] = true, [SOFT_CALL_cuMemHostRegister] = true,
    [SOFT_CALL_cuMemFree_v2] = true,        [SOFT_CALL_cuMemFreeHost] = true,
    [SOFT_CALL_cuCtxSynchronize] = true,    [SOFT_CALL_cuCtxSynchronize_v2] = true,
    [SOFT_CALL_cuModuleLoad] = true,        [SOFT_CALL_cuModuleLoadData] = true,
    [SOFT_CALL_cuModuleLoadDataEx] = true,  [SOFT_CALL_cuModuleUnload] = true,
    [SOFT_CALL_cuStreamQuery] = true,       [SOFT_CALL_cuEventQuery] = true,
};

/* Functions that involve no device and may be called at any time: a host function that receives an
 * error code may look up its name. */
static const bool is_general[SOFT_CALLS] = {
    [SOFT_CALL_cuDriverGetVersion] = true,  [SOFT_CALL_cuGetErrorName] = true,
    [SOFT_CALL_cuGetErrorString] = true,    [SOFT_CALL_cuGetProcAddress] = true,
    [SOFT_CALL_cuGetProcAddress_v2] = true, [SOFT_CALL_cuGetExportTable] = true,
    [SOFT_CALL_cuLogsCurrent] = true,       [SOFT_CALL_cuLogsDumpToFile] = true,
    [SOFT_CALL_cuLogsDumpToMemory] = true,
};

CUresult soft_call_begin(enum soft_call call, bool own_default, const void *site) {
    struct soft_thread *thread = soft_thread();
    soft_trace_call_begin();
    if (thread->in_host_function) {
        return is_general[call] ? CUDA_SUCCESS : CUDA_ERROR_NOT_PERMITTED;
    }
    if (!is_general[call] && call != SOFT_CALL_cuInit) {
        /* Before any argument is checked, as in an H200's driver. */
        CUresult ready = soft_state_check();
        if (ready != CUDA_SUCCESS) return ready;
    }
    thread->own_default = own_default;
    soft_leak_call(call, site);
    CUresult result = soft_fault_begin(call, own_default);
    if (result != CUDA_SUCCESS) return result;
    return is_unsafe[call] ? soft_capture_allows() : CUDA_SUCCESS;
}

/* Calls that only a program makes which does something with the device. NVIDIA's CUDA runtime makes
 * none of them after it was refused the tables that it needs. */
static bool is_use(enum soft_call call) {
    switch (call) {
    case SOFT_CALL_cuMemAlloc_v2:
    case SOFT_CALL_cuMemAllocPitch_v2:
    case SOFT_CALL_cuMemAllocManaged:
    case SOFT_CALL_cuMemAllocAsync:
    case SOFT_CALL_cuMemAllocHost_v2:
    case SOFT_CALL_cuMemHostAlloc:
    case SOFT_CALL_cuMemCreate:
    case SOFT_CALL_cuStreamCreate:
    case SOFT_CALL_cuStreamCreateWithPriority:
    case SOFT_CALL_cuEventCreate:
    case SOFT_CALL_cuModuleLoad:
    case SOFT_CALL_cuModuleLoadData:
    case SOFT_CALL_cuModuleLoadDataEx:
    case SOFT_CALL_cuLibraryLoadData:
    case SOFT_CALL_cuCtxSynchronize:
        return true;
    default:
        return false;
    }
}

CUresult soft_call_end(enum soft_call call, CUresult result) {
    struct soft_thread *thread = soft_thread();
    if (result == CUDA_SUCCESS && is_use(call)) soft_refusal_forgive(SOFT_REFUSED_TABLE);
    soft_trace_call_end(call, result);
    /* The thread is inside another call, to which this state belongs. */
    if (thread->in_host_function) return result;
    soft_stream_fault_end(result);
    thread->own_default = false;
    return result;
}
