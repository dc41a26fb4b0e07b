#include "test_memory.h"

#include "test_api.h"

#include <stdatomic.h>
#include <stdlib.h>

/* What the linker's --wrap calls them. NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
/* NOLINTEND(bugprone-reserved-identifier) */

static _Atomic unsigned left; /* until one fails; 0: none does */
static _Atomic bool failed;

static bool fails(void) {
    unsigned now = atomic_load(&left);
    while (now > 0 && !atomic_compare_exchange_weak(&left, &now, now - 1)) continue;
    if (now == 1) atomic_store(&failed, true);
    return now == 1;
}

void *__wrap_malloc(size_t bytes) { /* NOLINT(bugprone-reserved-identifier) */
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) { /* NOLINT(bugprone-reserved-identifier) */
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *block, size_t bytes) { /* NOLINT(bugprone-reserved-identifier) */
    return fails() ? NULL : __real_realloc(block, bytes);
}

void test_memory_fail(unsigned nth) {
    atomic_store(&failed, false);
    atomic_store(&left, nth);
}

bool test_memory_failed(void) {
    return atomic_load(&failed);
}

static struct {
    CUresult (*work)(void);
    unsigned nth;
    CUresult result;
    bool hit;
} trial;

static void try_once(void) {
    test_memory_fail(trial.nth);
    trial.result = trial.work();
    trial.hit = test_memory_failed();
    test_memory_fail(0);
}

struct test_memory_count test_each_allocation_fails(CUresult (*work)(void), int times) {
    struct test_memory_count count = {0};
    trial.work = work;
    for (trial.nth = 1;; trial.nth++) {
        if (times > 0) {
            api_must_keep_nothing(try_once, times);
        } else {
            try_once();
        }
        if (!trial.hit) {
            cr_assert_eq(trial.result, CUDA_SUCCESS, "no failure: %s", api_code(trial.result));
            return count;
        }
        cr_assert(trial.result == CUDA_SUCCESS || trial.result == CUDA_ERROR_OUT_OF_MEMORY,
                  "allocation %u fails: %s", trial.nth, api_code(trial.result));
        count.failures++;
        count.refusals += trial.result != CUDA_SUCCESS;
    }
}
