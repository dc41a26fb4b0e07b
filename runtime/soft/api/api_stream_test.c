/*
 * Streams: their attributes, and the order of their work.
 */
#include "test/test_api.h"

#include <pthread.h>
#include <stdlib.h>

Test(api_stream, bad_arguments_are_refused) {
    CUstream stream = NULL, gone = NULL;
    int number = 0;
    unsigned flags = 0;
    unsigned long long id = 0;
    api_context(0);
    REFUSED(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamCreate(&stream, 2), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamCreateWithPriority(NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamCreate(&stream, 0));
    OK(cuStreamCreate(&gone, 0));
    OK(cuStreamDestroy_v2(gone));
    CUstream none[] = {gone, (CUstream)(uintptr_t)0x40, (CUstream)((char *)stream + 1)};
    for (int i = 0; i < 3; i++) {
        REFUSED(cuStreamDestroy_v2(none[i]), CUDA_ERROR_INVALID_HANDLE);
        REFUSED(cuStreamQuery(none[i]), CUDA_ERROR_INVALID_HANDLE);
        REFUSED(cuStreamSynchronize(none[i]), CUDA_ERROR_INVALID_HANDLE);
        REFUSED(cuStreamGetPriority(none[i], &number), CUDA_ERROR_INVALID_HANDLE);
        REFUSED(cuStreamGetFlags(none[i], &flags), CUDA_ERROR_INVALID_HANDLE);
        REFUSED(cuStreamGetId(none[i], &id), CUDA_ERROR_INVALID_HANDLE);
        REFUSED(cuMemsetD8Async(4096, 0, 4, none[i]), CUDA_ERROR_INVALID_HANDLE);
        REFUSED(cuStreamWaitEvent(none[i], NULL, 0), CUDA_ERROR_INVALID_HANDLE);
    }
    REFUSED(cuStreamDestroy_v2(NULL), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuStreamGetPriority(stream, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamGetFlags(stream, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamGetId(stream, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamGetCtx(stream, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamGetDevice(stream, NULL), CUDA_ERROR_INVALID_VALUE);
}

Test(api_stream, they_say_what_they_are) {
    CUcontext context = api_context(0), owner = NULL;
    CUgreenCtx green = (CUgreenCtx)(uintptr_t)8;
    CUstream stream = NULL, other = NULL;
    int priority = 9, least = 9, greatest = 9;
    unsigned flags = 9;
    unsigned long long ids[4];
    CUdevice device = 9;
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    OK(cuCtxGetStreamPriorityRange(NULL, NULL));
    cr_assert(least == 0 && greatest < 0);
    OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest));
    OK(cuStreamGetPriority(stream, &priority));
    cr_assert_eq(priority, greatest);
    OK(cuStreamGetFlags(stream, &flags));
    cr_assert_eq(flags, (unsigned)CU_STREAM_NON_BLOCKING);
    OK(cuStreamGetCtx(stream, &owner));
    cr_assert(owner == context);
    OK(cuStreamGetCtx_v2(stream, &owner, &green));
    cr_assert(owner == context && green == NULL);
    OK(cuStreamGetDevice(stream, &device));
    cr_assert_eq(device, 0);
    OK(cuStreamCreateWithPriority(&other, 0, -1000));
    OK(cuStreamGetPriority(other, &priority));
    cr_assert_eq(priority, greatest, "priorities are cut to the range");
    OK(cuStreamDestroy_v2(other));
    OK(cuStreamCreateWithPriority(&other, 0, 1000));
    OK(cuStreamGetPriority(other, &priority));
    cr_assert_eq(priority, least);
    OK(cuStreamGetId(stream, &ids[0]));
    OK(cuStreamGetId(other, &ids[1]));
    OK(cuStreamGetId(NULL, &ids[2]));
    OK(cuStreamGetId(CU_STREAM_LEGACY, &ids[3]));
    cr_assert(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2] && ids[2] == ids[3]);
    OK(cuStreamGetFlags(NULL, &flags));
    cr_assert_eq(flags, (unsigned)CU_STREAM_DEFAULT);
}

Test(api_stream, attributes_are_kept_and_copied) {
    CUstream one = NULL, other = NULL;
    CUstreamAttrValue value = {.syncPolicy = CU_SYNC_POLICY_YIELD}, got = {{0}};
    api_context(0);
    OK(cuStreamCreateWithPriority(&one, 0, -2));
    OK(cuStreamCreate(&other, 0));
    OK(cuStreamGetAttribute(one, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &got));
    cr_assert_eq(got.syncPolicy, CU_SYNC_POLICY_AUTO);
    OK(cuStreamSetAttribute(one, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    OK(cuStreamCopyAttributes(other, one));
    OK(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &got));
    cr_assert_eq(got.syncPolicy, CU_SYNC_POLICY_YIELD);
    OK(cuStreamGetAttribute(one, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
    cr_assert_eq(got.priority, -2);
    value.syncPolicy = 9;
    REFUSED(cuStreamSetAttribute(one, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
            CUDA_ERROR_INVALID_VALUE);
    value.accessPolicyWindow = (CUaccessPolicyWindow){.num_bytes = 8, .hitRatio = 1.5f};
    REFUSED(cuStreamSetAttribute(one, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamSetAttribute(one, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamGetAttribute(one, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamSetAttribute(one, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, NULL),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamCopyAttributes(other, (CUstream)(uintptr_t)0x40), CUDA_ERROR_INVALID_HANDLE);
}

/* ---- order ---- */

struct scene {
    CUdeviceptr flag_address, value;
    volatile unsigned *flag;
};

/* A flag that holds kernels back, and a value of 0. */
static struct scene set_scene(void) {
    struct scene scene;
    api_context(0);
    scene.flag = api_flag(&scene.flag_address);
    OK(cuMemAlloc_v2(&scene.value, 4));
    OK(cuMemsetD32_v2(scene.value, 0, 1));
    OK(cuCtxSynchronize());
    return scene;
}

Test(api_stream, a_query_says_whether_work_is_left) {
    struct scene scene = set_scene();
    CUstream stream = NULL;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamQuery(stream));
    api_hold(scene.flag_address, stream);
    REFUSED(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    OK(cuStreamQuery(NULL));
    *scene.flag = 1;
    OK(cuStreamSynchronize(stream));
    OK(cuStreamQuery(stream));
}

/* Whether work put into one stream goes past work that another is held back with. A query works for
 * a short time only, so on a busy machine work that may pass needs several. */
static bool passes_within(int queries, CUstream held, CUstream later) {
    struct scene scene = set_scene();
    api_hold(scene.flag_address, held);
    api_put(scene.value, 1, held);
    api_put(scene.value, 2, later);
    CUresult result = CUDA_ERROR_NOT_READY;
    for (int i = 0; i < queries && result == CUDA_ERROR_NOT_READY; i++) {
        result = cuStreamQuery(later);
    }
    *scene.flag = 1;
    OK(cuCtxSynchronize());
    /* Whoever came last wrote last. */
    cr_assert_eq(api_read(scene.value), result == CUDA_SUCCESS ? 1 : 2);
    return result == CUDA_SUCCESS;
}

static bool passes(CUstream held, CUstream later) {
    return passes_within(100000, held, later);
}

static bool waits(CUstream held, CUstream later) {
    return !passes_within(3, held, later);
}

Test(api_stream, the_legacy_stream_and_blocking_ones_wait_for_each_other) {
    CUstream one = NULL, other = NULL, apart = NULL;
    api_context(0);
    OK(cuStreamCreate(&one, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&other, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
    cr_assert(waits(one, NULL));
    cr_assert(waits(NULL, one));
    cr_assert(waits(one, CU_STREAM_LEGACY));
    cr_assert(passes(one, other));
    cr_assert(passes(apart, NULL));
    cr_assert(passes(NULL, apart));
    cr_assert(passes(one, apart));
    cr_assert(waits(CU_STREAM_PER_THREAD, NULL), "a thread's own stream is a blocking one");
    cr_assert(waits(NULL, CU_STREAM_PER_THREAD));
    cr_assert(passes(one, CU_STREAM_PER_THREAD));
}

Test(api_stream, work_goes_through_the_legacy_stream_to_all_others) {
    struct scene scene = set_scene();
    CUstream one = NULL, other = NULL;
    OK(cuStreamCreate(&one, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&other, CU_STREAM_DEFAULT));
    api_hold(scene.flag_address, one);
    api_put(scene.value, 1, NULL);
    api_put(scene.value, 2, other);
    REFUSED(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    *scene.flag = 1;
    OK(cuStreamSynchronize(other));
    cr_assert_eq(api_read(scene.value), 2);
}

static unsigned long long own_id(void) {
    unsigned long long id = 0;
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, &id));
    return id;
}

static void *own_id_on_thread(void *context) {
    OK(cuCtxSetCurrent(context));
    unsigned long long first = own_id();
    return (void *)(uintptr_t)(first == own_id() ? first : 0);
}

Test(api_stream, each_thread_has_a_default_stream_of_its_own) {
    CUcontext context = api_context(0);
    pthread_t thread;
    void *ids[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        pthread_create(&thread, NULL, own_id_on_thread, context);
        pthread_join(thread, &ids[i]);
    }
    unsigned long long mine = own_id(), legacy = 0;
    OK(cuStreamGetId(CU_STREAM_LEGACY, &legacy));
    cr_assert(ids[0] != NULL && ids[1] != NULL && ids[0] != ids[1]);
    cr_assert(mine != (uintptr_t)ids[0] && mine != (uintptr_t)ids[1] && mine != legacy);
}

/* Programs compiled for per-thread default streams call other variants. */
CUresult CUDAAPI cuStreamGetId_ptsz(CUstream stream, unsigned long long *id);
CUresult CUDAAPI cuMemsetD32_v2_ptds(CUdeviceptr address, unsigned value, size_t count);

Test(api_stream, the_null_stream_of_other_variants_is_the_threads_own) {
    struct scene scene = set_scene();
    unsigned long long id = 0, legacy = 0;
    CUstream one = NULL;
    OK(cuStreamGetId_ptsz(NULL, &id));
    cr_assert_eq(id, own_id());
    OK(cuStreamGetId_ptsz(CU_STREAM_LEGACY, &id));
    OK(cuStreamGetId(NULL, &legacy));
    cr_assert_eq(id, legacy);
    /* The legacy stream waits for a blocking one that is held back; the thread's own does not. */
    OK(cuStreamCreate(&one, CU_STREAM_DEFAULT));
    api_hold(scene.flag_address, one);
    OK(cuMemsetD32_v2_ptds(scene.value, 3, 1));
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    *scene.flag = 1;
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(scene.value), 3);
}

Test(api_stream, one_that_is_destroyed_still_finishes_its_work) {
    struct scene scene = set_scene();
    CUstream stream = NULL;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    api_hold(scene.flag_address, stream);
    api_put(scene.value, 5, stream);
    OK(cuStreamDestroy_v2(stream));
    REFUSED(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    *scene.flag = 1;
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(scene.value), 5);
}

/* They are destroyed while their work waits for one event, and end when it is done. */
static void destroy_many_at_work(void) {
    enum { STREAMS = 50 };
    static struct scene scene;
    static CUstream holds;
    static CUevent event;
    if (holds == NULL) {
        scene = set_scene();
        OK(cuStreamCreate(&holds, CU_STREAM_NON_BLOCKING));
        OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    }
    *scene.flag = 0;
    api_hold(scene.flag_address, holds);
    OK(cuEventRecord(event, holds));
    for (int i = 0; i < STREAMS; i++) {
        CUstream stream = NULL;
        OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        OK(cuStreamWaitEvent(stream, event, 0));
        OK(cuStreamDestroy_v2(stream));
    }
    *scene.flag = 1;
    OK(cuCtxSynchronize());
}

Test(api_stream, those_destroyed_at_work_leave_nothing) {
    api_context(0);
    api_must_keep_nothing(destroy_many_at_work, 50);
}

/* However many have come and gone, those that live are known and the others are not. */
Test(api_stream, handles_are_told_apart) {
    enum { ROUNDS = 20000, KEPT = 50 };
    CUstream kept[KEPT], stream = NULL;
    api_context(0);
    for (int i = 0; i < KEPT; i++) OK(cuStreamCreate(&kept[i], 0));
    for (int i = 0; i < ROUNDS; i++) {
        OK(cuStreamCreate(&stream, 0));
        OK(cuStreamDestroy_v2(stream));
    }
    REFUSED(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuEventQuery((CUevent)kept[0]), CUDA_ERROR_INVALID_HANDLE);
    for (int i = 0; i < KEPT; i++) {
        OK(cuStreamQuery(kept[i]));
        OK(cuStreamDestroy_v2(kept[i]));
        REFUSED(cuStreamQuery(kept[i]), CUDA_ERROR_INVALID_HANDLE);
    }
}

/* How often, of 60 times, what was queued first in one of two streams runs last. The helper thread
 * begins some work before the rest is queued, but not in most turns. */
static int older_runs_last(const char *order) {
    enum { TIMES = 60 };
    CUstream streams[2] = {NULL, NULL};
    CUdeviceptr memory = 0;
    int count = 0;
    setenv("TOLLENS_SOFT_ORDER", order, 1);
    api_context(0);
    for (int i = 0; i < 2; i++) OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc_v2(&memory, 4));
    for (unsigned i = 0; i < TIMES; i++) {
        api_put(memory, 1, streams[i % 2]);
        api_put(memory, 2, streams[1 - i % 2]);
        OK(cuCtxSynchronize());
        count += api_read(memory) == 1;
    }
    return count;
}

Test(api_stream, the_newest_work_can_run_first) {
    const int count = older_runs_last("newest");
    cr_assert(count > 45, "%d of 60", count);
}

Test(api_stream, the_oldest_work_can_run_first) {
    const int count = older_runs_last("oldest");
    cr_assert(count < 15, "%d of 60", count);
}

Test(api_stream, the_order_can_be_drawn) {
    const int count = older_runs_last("drawn");
    cr_assert(count > 10 && count < 50, "%d of 60", count);
}

Test(api_stream, what_an_event_orders_runs_in_that_order_even_if_the_newest_is_first) {
    CUstream streams[2] = {NULL, NULL};
    CUdeviceptr memory = 0;
    CUevent event = NULL;
    setenv("TOLLENS_SOFT_ORDER", "newest", 1);
    api_context(0);
    for (int i = 0; i < 2; i++) OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuMemAlloc_v2(&memory, 4));
    for (unsigned i = 0; i < 60; i++) {
        api_put(memory, 1, streams[0]);
        OK(cuEventRecord(event, streams[0]));
        OK(cuStreamWaitEvent(streams[1], event, 0));
        api_put(memory, 2, streams[1]);
        while (cuStreamQuery(streams[1]) == CUDA_ERROR_NOT_READY) continue;
        cr_assert_eq(api_read(memory), 2);
    }
}
