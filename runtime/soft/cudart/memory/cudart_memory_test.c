/*
 * Memory, copies and devices: differences from the driver's calls.
 */
#include "cudart/test/test_cudart.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

TestSuite(cudart_memory, .init = test_cudart_begin);

Test(cudart_memory, no_bytes_are_null_and_null_may_be_freed) {
    void *address = &address;
    size_t pitch = 1;
    OK(rt.cudaMalloc(&address, 0));
    cr_assert_null(address);
    address = &address;
    OK(rt.cudaMallocHost(&address, 0));
    cr_assert_null(address);
    address = &address;
    OK(rt.cudaMallocPitch(&address, &pitch, 0, 10));
    cr_assert_null(address);
    OK(rt.cudaMallocAsync(&address, 0, NULL));
    OK(rt.cudaFree(NULL));
    OK(rt.cudaFreeHost(NULL));
    OK(rt.cudaFreeAsync(NULL, NULL));
    OK(rt.cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault));
}

Test(cudart_memory, directions_and_pitches_are_checked_first) {
    int value = 0;
    IS(rt.cudaMemcpy(&value, &value, 4, 5), cudaErrorInvalidMemcpyDirection);
    IS(rt.cudaMemcpy(&value, &value, 4, -1), cudaErrorInvalidMemcpyDirection);
    IS(rt.cudaMemcpyAsync(&value, &value, 4, 6, NULL), cudaErrorInvalidMemcpyDirection);
    IS(rt.cudaMemcpy2D(&value, 4, &value, 4, 5, 1, cudaMemcpyHostToHost),
       cudaErrorInvalidPitchValue);
    IS(rt.cudaMemcpy3D(NULL), cudaErrorInvalidValue);
}

Test(cudart_memory, hosts_copy_to_hosts) {
    int from = 5, to = 0;
    OK(rt.cudaMemcpy(&to, &from, sizeof to, cudaMemcpyHostToHost));
    cr_assert(to == 5);
    from = 6;
    OK(rt.cudaMemcpy(&to, &from, sizeof to, cudaMemcpyDefault));
    cr_assert(to == 6);
}

Test(cudart_memory, addresses_say_what_they_are) {
    cudaPointerAttributes attributes;
    void *device = NULL, *host = NULL, *managed = NULL;
    OK(rt.cudaMalloc(&device, 64));
    OK(rt.cudaMallocHost(&host, 64));
    OK(rt.cudaMallocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    OK(rt.cudaPointerGetAttributes(&attributes, (char *)device + 8));
    cr_assert(attributes.type == cudaMemoryTypeDevice && attributes.device == 0 &&
              attributes.devicePointer == (char *)device + 8 && attributes.hostPointer == NULL);
    OK(rt.cudaPointerGetAttributes(&attributes, host));
    cr_assert(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == host);
    OK(rt.cudaPointerGetAttributes(&attributes, managed));
    cr_assert(attributes.type == cudaMemoryTypeManaged && attributes.hostPointer == managed &&
              attributes.devicePointer == managed);
    OK(rt.cudaPointerGetAttributes(&attributes, &attributes));
    cr_assert(attributes.type == cudaMemoryTypeUnregistered &&
              attributes.device == cudaInvalidDeviceId && attributes.devicePointer == NULL &&
              attributes.hostPointer == &attributes);
    OK(rt.cudaFree(device));
    OK(rt.cudaFreeHost(host));
    OK(rt.cudaFree(managed));
}

static void *see_device(void *device) {
    cr_assert(rt.cudaGetDevice(device) == cudaSuccess);
    return NULL;
}

Test(cudart_memory, a_device_is_chosen_for_a_thread) {
    pthread_t thread;
    int device = 5, count = 0, other = 5;
    setenv("TOLLENS_SOFT_DEVICES", "3", 1);
    OK(rt.cudaGetDeviceCount(&count));
    cr_assert(count == 3, "%d", count);
    OK(rt.cudaGetDevice(&device));
    cr_assert(device == 0, "%d", device);
    OK(rt.cudaSetDevice(2));
    OK(rt.cudaGetDevice(&device));
    cr_assert(device == 2, "%d", device);
    cr_assert(pthread_create(&thread, NULL, see_device, &other) == 0);
    pthread_join(thread, NULL);
    cr_assert(other == 0, "%d", other);
    IS(rt.cudaSetDevice(3), cudaErrorInvalidDevice);
    OK(rt.cudaGetDevice(&device));
    cr_assert(device == 2, "%d", device);
}

Test(cudart_memory, devices_copy_to_each_other) {
    void *address[2] = {NULL, NULL};
    int value = 7, can = 0;
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    for (int device = 0; device < 2; device++) {
        OK(rt.cudaSetDevice(device));
        OK(rt.cudaMalloc(&address[device], sizeof value));
    }
    OK(rt.cudaDeviceCanAccessPeer(&can, 1, 0));
    cr_assert(can == 1);
    OK(rt.cudaDeviceEnablePeerAccess(0, 0));
    IS(rt.cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
    OK(rt.cudaMemcpy(address[0], &value, sizeof value, cudaMemcpyHostToDevice));
    OK(rt.cudaMemcpyPeer(address[1], 1, address[0], 0, sizeof value));
    value = 0;
    OK(rt.cudaMemcpy(&value, address[1], sizeof value, cudaMemcpyDeviceToHost));
    cr_assert(value == 7, "%d", value);
    IS(rt.cudaMemcpyPeer(address[1], 5, address[0], 0, 4), cudaErrorInvalidDevice);
    OK(rt.cudaDeviceDisablePeerAccess(0));
    OK(rt.cudaFree(address[0]));
    OK(rt.cudaFree(address[1]));
}

/* CUDA 12's names without a suffix have the signatures of CUDA 11: a device, no location. */
Test(cudart_memory, the_older_signatures_are_kept) {
    void *library = test_cudart_open("libcudart.so.12"), *address = NULL, *function = NULL;
    cudaError_t (*malloc_managed)(void **, size_t, unsigned) = NULL;
    cudaError_t (*prefetch)(const void *, size_t, int, cudaStream_t) = NULL;
    cudaError_t (*advise)(const void *, size_t, int, int) = NULL;
    cudaError_t (*capture_info)(cudaStream_t, int *, unsigned long long *) = NULL;
    int status = -1;
    unsigned long long id = 0;
    function = test_cudart_find(library, "cudaMallocManaged");
    memcpy(&malloc_managed, &function, sizeof function);
    function = test_cudart_find(library, "cudaMemPrefetchAsync");
    memcpy(&prefetch, &function, sizeof function);
    function = test_cudart_find(library, "cudaMemAdvise");
    memcpy(&advise, &function, sizeof function);
    function = test_cudart_find(library, "cudaStreamGetCaptureInfo");
    memcpy(&capture_info, &function, sizeof function);
    OK(malloc_managed(&address, 4096, CU_MEM_ATTACH_GLOBAL));
    OK(prefetch(address, 4096, 0, NULL));
    OK(prefetch(address, 4096, cudaCpuDeviceId, NULL));
    IS(prefetch(address, 4096, 5, NULL), cudaErrorInvalidDevice);
    OK(advise(address, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, cudaCpuDeviceId));
    IS(advise(address, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, 5), cudaErrorInvalidDevice);
    OK(capture_info(NULL, &status, &id));
    cr_assert(status == 0, "%d", status);
}

/* The members of both editions are at other places: sharedMemPerBlock comes before any difference,
 * clockRate is CUDA 12's alone. */
Test(cudart_memory, both_editions_have_their_own_properties) {
    static union {
        char bytes[4096];
        size_t words[512];
    } properties[2];
    cudaError_t (*get)(void *, int) = NULL;
    int wanted = 0, threads = 0;
    const char *const names[2][2] = {{"libcudart.so.12", "cudaGetDeviceProperties_v2"},
                                     {"libcudart.so.13", "cudaGetDeviceProperties"}};
    OK(rt.cudaDeviceGetAttribute(&wanted, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0));
    for (int i = 0; i < 2; i++) {
        void *function = test_cudart_find(test_cudart_open(names[i][0]), names[i][1]);
        memcpy(&get, &function, sizeof function);
        OK(get(&properties[i], 0));
        memcpy(&threads, &properties[i].bytes[320], sizeof threads);
        cr_assert(threads == wanted, "%d: %d", i, threads);
        IS(get(&properties[i], 9), cudaErrorInvalidDevice);
    }
    cr_assert_str_eq(properties[0].bytes, properties[1].bytes);
}

/* The driver has kept one address for each side, the host's or the device's. */
Test(cudart_memory, a_captured_copy_tells_both_its_sides) {
    char host[64];
    void *device = NULL;
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphNode_t node = NULL;
    cudaMemcpy3DParms found;
    size_t count = 1;
    OK(rt.cudaMalloc(&device, sizeof host));
    OK(rt.cudaStreamCreate(&stream));
    for (int back = 0; back < 2; back++) {
        void *const from = back ? device : host, *const to = back ? host : device;
        OK(rt.cudaStreamBeginCapture(stream, 0));
        OK(rt.cudaMemcpyAsync(to, from, sizeof host,
                              back ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice, stream));
        OK(rt.cudaStreamEndCapture(stream, &graph));
        OK(rt.cudaGraphGetNodes(graph, &node, &count));
        cr_assert_eq(count, 1);
        OK(rt.cudaGraphMemcpyNodeGetParams(node, &found));
        cr_assert(found.srcPtr.ptr == from && found.dstPtr.ptr == to, "%d: %p %p", back,
                  found.srcPtr.ptr, found.dstPtr.ptr);
    }
}
