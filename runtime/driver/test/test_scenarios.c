/*
 * Contexts that are retained between repetitions of a scenario, and the counting of calls.
 */
#include "test_scenarios.h"

#include <pthread.h>
#include <stdlib.h>

/* Cold repetitions cost half a second each; a scenario of 300 calls still has several. */
enum { DEVICES_MAX = 2, SCENARIOS_PER_CONTEXT = 64 };

static const struct tol_driver_table *cu; /* NULL: nothing is retained */
static CUcontext kept[DEVICES_MAX];
static CUdevice devices[DEVICES_MAX];
static uint64_t begun, latest; /* repetitions that have begun; the number of the latest */

static uint64_t number_in(const char *text) {
    const uint64_t number = text != NULL ? strtoull(text, NULL, 10) : 1;
    return number > 0 ? number : 1;
}

static uint64_t stride_wanted(void) {
    const char *text = getenv("TOLLENS_TEST_SCENARIOS_ONE_IN");
    return number_in(text != NULL ? text : getenv("TOLLENS_TEST_LIVES_ONE_IN"));
}

uint64_t test_next_scenario(uint64_t n) {
    const uint64_t one_in = stride_wanted();
    return n > 0 ? n + one_in : 1 + number_in(getenv("TOLLENS_TEST_SEED")) % one_in;
}

unsigned test_rounds(unsigned all) {
    const uint64_t some = all / stride_wanted();
    return some > 2 ? (unsigned)some : all < 2 ? all : 2;
}

static void check_kept(uint64_t n) {
    for (int i = 0; cu != NULL && i < DEVICES_MAX; i++) {
        if (kept[i] == NULL) continue;
        CUresult result = cu->cuCtxSetCurrent(kept[i]);
        if (result == CUDA_SUCCESS) result = cu->cuCtxSynchronize();
        cr_assert(result == CUDA_SUCCESS,
                  "repetition %llu left the context of device %d in error %d",
                  (unsigned long long)n, i, (int)result);
        cu->cuCtxSetCurrent(NULL);
    }
}

static void release_kept(void) {
    for (int i = 0; i < DEVICES_MAX; i++) {
        if (kept[i] != NULL) cu->cuDevicePrimaryCtxRelease_v2(devices[i]);
        kept[i] = NULL;
    }
    cu = NULL;
}

void test_scenarios_end(void) {
    release_kept();
    begun = 0;
}

void test_scenario_begin(struct tol_driver *driver, uint64_t n, int device_count) {
    int present = 0;
    if (!test_on_gpu()) return;
    check_kept(latest);
    latest = n;
    if (begun++ % SCENARIOS_PER_CONTEXT == 0) {
        release_kept();
        return;
    }
    if (cu != NULL) return;
    cu = tol_driver_functions(driver);
    MUST(tol_device_count(driver, &present));
    for (int i = 0; i < present && i < device_count && i < DEVICES_MAX; i++) {
        cr_assert(cu->cuDeviceGet(&devices[i], i) == CUDA_SUCCESS &&
                  cu->cuDevicePrimaryCtxRetain(&kept[i], devices[i]) == CUDA_SUCCESS);
    }
}

/* A transfer's threads may call at the same time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The stream or event that a call queries, or NULL. The legacy stream has no handle, so the address
 * of lock represents it. */
static const void *queried_by(const struct tol_interpose_call *call) {
    if (call->index != TOL_DRIVER_INDEX_cuStreamQuery &&
        call->index != TOL_DRIVER_INDEX_cuEventQuery) {
        return NULL;
    }
    const void *handle = *(const void *const *)call->arguments[0];
    return handle != NULL ? handle : &lock;
}

void test_refuse(struct tol_interpose_call *call, struct test_refusal *refusal) {
    const void *about = queried_by(call);
    pthread_mutex_lock(&lock);
    bool again = about != NULL && about == refusal->asked && refusal->times > 1;
    if (!again && ++refusal->calls == refusal->nth) {
        call->forward = false;
        call->result = refusal->result;
    }
    pthread_mutex_unlock(&lock);
}

void test_refuse_after(const struct tol_interpose_call *call, struct test_refusal *refusal) {
    const void *about = call->result == CUDA_ERROR_NOT_READY ? queried_by(call) : NULL;
    pthread_mutex_lock(&lock);
    if (!call->forward) refusal->refused = call->index;
    refusal->times = about != NULL && about == refusal->asked ? refusal->times + 1 : about != NULL;
    refusal->asked = about;
    pthread_mutex_unlock(&lock);
}

struct test_staged test_staged;

static void before(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (test_staged.is_armed) test_refuse(call, &test_staged.refusal);
}

static void after(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (test_staged.is_armed) test_refuse_after(call, &test_staged.refusal);
}

void test_staged_install(struct tol_driver *driver) {
    MUST(tol_interpose_install(driver,
                               &(struct tol_interpose_options){.before = before, .after = after}));
}
