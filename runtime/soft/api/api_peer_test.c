/*
 * Several devices: their separate state, and access to each other's memory.
 */
#include "test/test_api.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A number of devices with a context on each; the first one is current. */
static void begin(const char *devices, CUcontext *contexts, int count) {
    setenv("TOLLENS_SOFT_DEVICES", devices, 1);
    for (int device = count - 1; device >= 0; device--) contexts[device] = api_context(device);
}

static CUdeviceptr memory_of(CUcontext context, size_t bytes) {
    CUdeviceptr memory = 0;
    CUcontext before = NULL;
    OK(cuCtxGetCurrent(&before));
    OK(cuCtxSetCurrent(context));
    OK(cuMemAlloc_v2(&memory, bytes));
    OK(cuMemsetD8_v2(memory, 0, bytes));
    OK(cuCtxSynchronize());
    OK(cuCtxSetCurrent(before));
    return memory;
}

Test(api_peer, there_are_as_many_devices_as_are_wanted) {
    int count = 0;
    CUdevice device = -1;
    char name[64], first[64];
    setenv("TOLLENS_SOFT_DEVICES", "8", 1);
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    cr_assert_eq(count, 8);
    OK(cuDeviceGetName(first, sizeof first, 0));
    for (int i = 0; i < count; i++) {
        OK(cuDeviceGet(&device, i));
        OK(cuDeviceGetName(name, sizeof name, device));
        cr_assert(strcmp(name, first) == 0);
    }
    REFUSED(cuDeviceGet(&device, 8), CUDA_ERROR_INVALID_DEVICE);
}

Test(api_peer, a_number_that_makes_no_sense_leaves_one) {
    int count = 0;
    setenv("TOLLENS_SOFT_DEVICES", "9", 1);
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    cr_assert_eq(count, 1);
}

Test(api_peer, each_has_memory_of_its_own) {
    enum { MEBI = 1 << 20 };
    CUcontext contexts[2];
    CUdeviceptr full = 0, more = 0;
    size_t left = 0, total = 0;
    setenv("TOLLENS_SOFT_MEMORY", "4M", 1);
    begin("2", contexts, 2);
    OK(cuMemAlloc_v2(&full, 4 * MEBI));
    REFUSED(cuMemAlloc_v2(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuCtxSetCurrent(contexts[1]));
    OK(cuMemGetInfo_v2(&left, &total));
    cr_assert(left == total && total == 4 * MEBI);
    OK(cuMemAlloc_v2(&more, 2 * MEBI));
    cr_assert(more >= full + 4 * MEBI || more + 2 * MEBI <= full, "one range of addresses");
    OK(cuMemFree_v2(full)); /* from whatever context is current */
    OK(cuMemGetInfo_v2(&left, &total));
    cr_assert_eq(left, 2 * MEBI);
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuMemGetInfo_v2(&left, &total));
    cr_assert_eq(left, total);
}

Test(api_peer, pairs_are_asked_about) {
    int value = 9;
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    REFUSED(cuDeviceCanAccessPeer(&value, 0, 1), CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    OK(cuDeviceCanAccessPeer(&value, 0, 1));
    cr_assert_eq(value, 1);
    OK(cuDeviceCanAccessPeer(&value, 1, 1));
    cr_assert_eq(value, 0);
    REFUSED(cuDeviceCanAccessPeer(&value, 0, 2), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuDeviceCanAccessPeer(&value, -1, 0), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuDeviceCanAccessPeer(NULL, 0, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
    cr_assert_eq(value, 1);
    OK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 1, 0));
    cr_assert_eq(value, 1);
    OK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED, 1, 0));
    cr_assert_eq(value, 0);
    REFUSED(cuDeviceGetP2PAttribute(&value, 99, 0, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0),
            CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuDeviceGetP2PAttribute(NULL, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1),
            CUDA_ERROR_INVALID_VALUE);
}

Test(api_peer, access_is_one_way_and_enabled_once) {
    CUcontext contexts[2], beside = NULL;
    begin("2", contexts, 2);
    REFUSED(cuCtxDisablePeerAccess(contexts[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    REFUSED(cuCtxEnablePeerAccess(contexts[1], 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxEnablePeerAccess(contexts[1], 0));
    REFUSED(cuCtxEnablePeerAccess(contexts[1], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    OK(cuCtxSetCurrent(contexts[1]));
    REFUSED(cuCtxDisablePeerAccess(contexts[0]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    OK(cuCtxEnablePeerAccess(contexts[0], 0)); /* the other way it is enabled for itself, once */
    REFUSED(cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    OK(cuCtxDisablePeerAccess(contexts[0]));
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuCtxDisablePeerAccess(contexts[1]));
    REFUSED(cuCtxDisablePeerAccess(contexts[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    REFUSED(cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuCtxEnablePeerAccess(NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuCtxEnablePeerAccess((CUcontext)(uintptr_t)64, 0), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxCreate_v2(&beside, 0, 0));
    REFUSED(cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    REFUSED(cuCtxDisablePeerAccess(contexts[0]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    OK(cuCtxSetCurrent(NULL));
    OK(cuCtxSetCurrent(NULL)); /* takes another off the stack */
    REFUSED(cuCtxEnablePeerAccess(contexts[1], 0), CUDA_ERROR_INVALID_CONTEXT);
}

Test(api_peer, kernels_need_access) {
    CUcontext contexts[2];
    begin("2", contexts, 2);
    CUdeviceptr far = memory_of(contexts[1], 64);
    OK(cuCtxEnablePeerAccess(contexts[1], 0));
    api_put(far, 5, NULL);
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(far), 5);
    OK(cuCtxDisablePeerAccess(contexts[1]));
    api_put(far, 6, NULL);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    /* The other's context is as well as ever. */
    OK(cuCtxSetCurrent(contexts[1]));
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(far), 5);
}

Test(api_peer, access_does_not_pass_to_who_comes_after) {
    CUcontext contexts[2], other = NULL;
    begin("2", contexts, 2);
    OK(cuCtxCreate_v2(&other, 0, 1));
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuCtxEnablePeerAccess(other, 0));
    OK(cuCtxDestroy_v2(other));
    REFUSED(cuCtxDisablePeerAccess(other), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxCreate_v2(&other, 0, 1)); /* perhaps in the same place */
    CUdeviceptr far = memory_of(other, 64);
    OK(cuCtxSetCurrent(contexts[0]));
    api_put(far, 5, NULL);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Copies go between devices whether access is enabled or not. */
Test(api_peer, copies_need_no_access) {
    CUcontext contexts[2];
    CUstream stream = NULL;
    begin("2", contexts, 2);
    CUdeviceptr near = memory_of(contexts[0], 64), far = memory_of(contexts[1], 64);
    OK(cuMemsetD32_v2(near, 7, 16));
    OK(cuMemcpyPeer(far, contexts[1], near, contexts[0], 4));
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(far), 7);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemcpyPeerAsync(far + 4, contexts[1], near, contexts[0], 4, stream));
    OK(cuMemcpyAsync(far + 8, near, 4, stream));
    OK(cuMemcpyDtoDAsync_v2(far + 12, near, 4, stream));
    OK(cuStreamSynchronize(stream));
    cr_assert(api_read(far + 4) == 7 && api_read(far + 8) == 7 && api_read(far + 12) == 7);
    OK(cuCtxSetCurrent(contexts[1]));
    cr_assert_eq(api_read(near), 7, "any context reads any device's memory");
    REFUSED(cuMemcpyPeer(far, NULL, near, contexts[0], 4), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuMemcpyPeer(far, contexts[1], near, (CUcontext)(uintptr_t)64, 4),
            CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuMemcpyPeer(16, contexts[1], near, contexts[0], 4), CUDA_ERROR_INVALID_VALUE);
}

Test(api_peer, pinned_memory_is_everybodys) {
    CUcontext contexts[2];
    CUdeviceptr address = 0;
    begin("2", contexts, 2);
    volatile unsigned *flag = api_flag(&address);
    OK(cuCtxSetCurrent(contexts[1]));
    api_put(address, 3, NULL);
    OK(cuCtxSynchronize());
    cr_assert_eq(*flag, 3);
}

/* The context's device is what a pointer, a stream and a launch belong to. */
Test(api_peer, handles_know_their_device) {
    CUcontext contexts[2], owner = NULL;
    CUdevice device = -1;
    CUstream far_stream = NULL;
    int ordinal = -1;
    begin("2", contexts, 2);
    CUdeviceptr far = memory_of(contexts[1], 64);
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, far));
    OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, far));
    cr_assert(ordinal == 1 && owner == contexts[1]);
    OK(cuCtxSetCurrent(contexts[1]));
    OK(cuStreamCreate(&far_stream, CU_STREAM_NON_BLOCKING));
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuStreamGetCtx(far_stream, &owner));
    OK(cuStreamGetDevice(far_stream, &device));
    cr_assert(owner == contexts[1] && device == 1);
    OK(cuCtxGetDevice_v2(&device, contexts[1]));
    cr_assert_eq(device, 1);
    OK(cuCtxGetDevice(&device));
    cr_assert_eq(device, 0);
    /* A copy in another context's stream is that context's work. */
    OK(cuMemsetD32Async(far, 4, 16, far_stream));
    OK(cuStreamSynchronize(far_stream));
    cr_assert_eq(api_read(far), 4);
}

Test(api_peer, a_fault_is_one_contexts_alone) {
    CUcontext contexts[3];
    begin("3", contexts, 3);
    OK(cuCtxSetCurrent(contexts[1]));
    cr_assert_eq(api_fault(), CUDA_ERROR_ILLEGAL_ADDRESS);
    CUdeviceptr memory = 0;
    REFUSED(cuMemAlloc_v2(&memory, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuCtxSetCurrent(contexts[2]));
    memory = memory_of(contexts[2], 4);
    api_put(memory, 1, NULL);
    OK(cuCtxSynchronize());
}
