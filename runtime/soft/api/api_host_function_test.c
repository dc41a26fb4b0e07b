/*
 * Host functions in stream order.
 */
#include "test/test_api.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static atomic_int calls;
static CUresult inside;
static pthread_t caller;

static void CUDAAPI count(void *data) {
    caller = pthread_self();
    atomic_fetch_add(&calls, (int)(uintptr_t)data);
}

static void CUDAAPI call_driver(void *data) {
    CUdeviceptr pointer = 0;
    (void)data;
    inside = cuMemAlloc_v2(&pointer, 4);
    atomic_fetch_add(&calls, 1);
}

/* Queries an error's name, and a stream. */
static void CUDAAPI ask_name(void *data) {
    CUresult *results = data;
    const char *name = NULL, *text = NULL;
    results[0] = cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &name);
    results[1] = cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text);
    results[2] = cuStreamQuery(NULL);
    if (name != NULL && text != NULL) atomic_fetch_add(&calls, (int)strlen(name));
}

static void CUDAAPI note(CUstream stream, CUresult status, void *data) {
    *(CUstream *)data = stream;
    inside = status;
    atomic_fetch_add(&calls, 1);
}

Test(api_host_function, bad_arguments_are_refused) {
    api_context(0);
    REFUSED(cuLaunchHostFunc(NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLaunchHostFunc((CUstream)(uintptr_t)0x40, count, NULL), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuStreamAddCallback(NULL, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamAddCallback(NULL, note, NULL, 1), CUDA_ERROR_INVALID_VALUE);
}

Test(api_host_function, it_is_called_in_its_turn_on_another_thread) {
    CUdeviceptr flag_address = 0;
    CUstream stream = NULL;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    api_hold(flag_address, stream);
    OK(cuLaunchHostFunc(stream, count, (void *)(uintptr_t)3));
    REFUSED(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    cr_assert_eq(atomic_load(&calls), 0);
    *flag = 1;
    OK(cuStreamSynchronize(stream));
    cr_assert_eq(atomic_load(&calls), 3);
    cr_assert(!pthread_equal(caller, pthread_self()));
}

/* A function that blocks until the program goes on must not keep the program from going on. */
static void CUDAAPI wait_for_flag(void *data) {
    volatile unsigned *flag = data;
    while (*flag == 0) usleep(100);
}

Test(api_host_function, one_that_blocks_keeps_nobody_else) {
    static volatile unsigned go;
    CUstream one = NULL, other = NULL;
    CUdeviceptr value = 0;
    api_context(0);
    OK(cuMemAlloc_v2(&value, 4));
    OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc(one, wait_for_flag, (void *)(uintptr_t)&go));
    api_put(value, 8, other);
    OK(cuStreamSynchronize(other));
    REFUSED(cuStreamQuery(one), CUDA_ERROR_NOT_READY);
    go = 1;
    OK(cuStreamSynchronize(one));
    cr_assert_eq(api_read(value), 8);
}

/* Nobody waits: the function is called all the same. */
Test(api_host_function, it_is_called_without_being_waited_for) {
    api_context(0);
    OK(cuLaunchHostFunc(NULL, count, (void *)(uintptr_t)1));
    for (int i = 0; i < 5000 && atomic_load(&calls) == 0; i++) usleep(1000);
    cr_assert_eq(atomic_load(&calls), 1);
}

Test(api_host_function, the_driver_may_not_be_called_from_one) {
    api_context(0);
    OK(cuLaunchHostFunc(NULL, call_driver, NULL));
    OK(cuCtxSynchronize());
    cr_assert(atomic_load(&calls) == 1 && inside == CUDA_ERROR_NOT_PERMITTED);
}

Test(api_host_function, one_may_ask_what_an_error_is_called) {
    CUresult results[3] = {CUDA_ERROR_UNKNOWN, CUDA_ERROR_UNKNOWN, CUDA_ERROR_UNKNOWN};
    api_context(0);
    OK(cuLaunchHostFunc(NULL, ask_name, results));
    OK(cuCtxSynchronize());
    cr_assert_eq(atomic_load(&calls), (int)strlen("CUDA_ERROR_OUT_OF_MEMORY"));
    cr_assert(results[0] == CUDA_SUCCESS && results[1] == CUDA_SUCCESS);
    cr_assert_eq(results[2], CUDA_ERROR_NOT_PERMITTED);
}

Test(api_host_function, a_callback_learns_its_stream_and_the_error) {
    CUstream stream = NULL, told = NULL;
    api_context(0);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamAddCallback(stream, note, &told, 0));
    OK(cuStreamSynchronize(stream));
    cr_assert(told == stream && inside == CUDA_SUCCESS && atomic_load(&calls) == 1);
}

Test(api_host_function, after_a_fault_callbacks_are_called_and_functions_are_not) {
    CUdeviceptr flag_address = 0;
    CUstream told = NULL;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    api_hold(flag_address, NULL);
    api_put(16, 1, NULL);
    OK(cuLaunchHostFunc(NULL, count, (void *)(uintptr_t)100));
    OK(cuStreamAddCallback(NULL, note, &told, 0));
    *flag = 1;
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert_eq(atomic_load(&calls), 1);
    cr_assert_eq(inside, CUDA_ERROR_ILLEGAL_ADDRESS);
}
