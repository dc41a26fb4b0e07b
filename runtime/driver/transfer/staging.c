/*
 * Acquiring, creating and releasing staging blocks.
 */
#include "staging.h"

#include "tollens/context.h"
#include "core/deadline.h"
#include "core/numa.h"
#include "core/numa_pages.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

void tol_stages_open(struct tol_stages *stages, struct tol_context *context, size_t block_bytes,
                     unsigned count_max, const struct tol_retry_policy *retry) {
    *stages = (struct tol_stages){.context = context,
                                  .retry = retry,
                                  .block_bytes = block_bytes,
                                  .count_max = count_max,
                                  .node = tol_numa_node("/sys", context->device.pci_bus_id)};
    pthread_mutex_init(&stages->lock, NULL);
    pthread_cond_init(&stages->given, NULL);
}

int tol_stages_node(const struct tol_stages *stages) {
    struct tol_numa_pages all = {.asked = 0}, pages;
    for (const struct tol_stage *stage = stages->free; stage != NULL; stage = stage->next) {
        tol_numa_look(stage->data, stages->block_bytes, &pages);
        for (int node = 0; node < TOL_NUMA_NODES_MAX; node++) all.on[node] += pages.on[node];
        all.seen += pages.seen;
    }
    /* Not all of a block need have been used. */
    all.asked = all.seen;
    return tol_numa_found(&all);
}

void tol_stages_close(struct tol_stages *stages) {
    const struct tol_driver_table *driver = stages->context->functions;
    struct tol_deadline deadline = tol_deadline_after(TOL_DEADLINE_MS);
    while (stages->free != NULL) {
        struct tol_stage *stage = stages->free;
        stages->free = stage->next;
        bool in_use =
            stage->is_lost && tol_deadline_wait_event(&stage->done, &deadline) == TOL_TIMEOUT;
        driver->cuEventDestroy_v2(stage->done.handle);
        if (!in_use) driver->cuMemFreeHost(stage->data);
        free(stage);
    }
    pthread_cond_destroy(&stages->given);
    pthread_mutex_destroy(&stages->lock);
}

static tol_status staging_make(struct tol_stages *stages, struct tol_stage **result) {
    tol_status status = TOL_OK;
    struct tol_context *context = stages->context;
    struct tol_retry retry = {.policy = stages->retry};
    CUresult answer = CUDA_SUCCESS;
    void *data = NULL;
    struct tol_stage *stage = calloc(1, sizeof *stage);
    TOL_CHECK(stage != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a staging block");
    TOL_TRY(tol_context_enter(context));
    stage->done.context = context;
    TOL_CONTEXT_CU(context, cuEventCreate, (&stage->done.handle, CU_EVENT_DISABLE_TIMING),
                   "preparing a staging block");
    do {
        struct tol_numa_policy policy = tol_numa_prefer(stages->node);
        answer = context->functions->cuMemHostAlloc(&data, stages->block_bytes,
                                                    CU_MEMHOSTALLOC_PORTABLE);
        tol_numa_restore(&policy);
    } while (tol_retry_again(&retry, answer));
    if (answer != CUDA_SUCCESS) {
        status = tol_context_fail(context, __FILE__, __LINE__, "cuMemHostAlloc", (int)answer,
                                  "pinning %zu bytes to stage copies, in %u attempts",
                                  stages->block_bytes, retry.failures + (retry.failures == 0));
        if (status == TOL_OUT_OF_DEVICE_MEMORY) status = TOL_OUT_OF_HOST_MEMORY;
        goto out;
    }
    stage->data = data;
    *result = stage;
    return TOL_OK;
out:
    if (stage != NULL && stage->done.handle != NULL) {
        context->functions->cuEventDestroy_v2(stage->done.handle);
    }
    free(stage);
    return status;
}

/* A free block; a lost one only if its copy has ended since. The caller holds the lock, and the
 * context is entered. */
static struct tol_stage *staging_pop(struct tol_stages *stages) {
    for (struct tol_stage **link = &stages->free; *link != NULL; link = &(*link)->next) {
        struct tol_stage *stage = *link;
        if (stage->is_lost &&
            stages->context->functions->cuEventQuery(stage->done.handle) != CUDA_SUCCESS) {
            continue;
        }
        *link = stage->next;
        stage->is_lost = false;
        return stage;
    }
    return NULL;
}

tol_status tol_stages_take(struct tol_stages *stages, unsigned deadline_ms,
                           struct tol_stage **result) {
    tol_status status = TOL_OK;
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += deadline_ms / 1000;
    end.tv_nsec += (long)(deadline_ms % 1000) * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    TOL_TRY(tol_context_enter(stages->context));
    pthread_mutex_lock(&stages->lock);
    struct tol_stage *stage = staging_pop(stages);
    bool late = deadline_ms == 0;
    while (stage == NULL && stages->count >= stages->count_max && !late) {
        late = pthread_cond_timedwait(&stages->given, &stages->lock, &end) == ETIMEDOUT;
        stage = staging_pop(stages);
    }
    bool is_new = stage == NULL && stages->count < stages->count_max;
    if (is_new) stages->count++;
    pthread_mutex_unlock(&stages->lock);
    if (is_new) {
        status = staging_make(stages, &stage);
        if (status != TOL_OK) {
            pthread_mutex_lock(&stages->lock);
            stages->count--;
            pthread_cond_signal(&stages->given);
            pthread_mutex_unlock(&stages->lock);
            goto out;
        }
    }
    if (stage == NULL && deadline_ms == 0) return TOL_NOT_READY;
    TOL_CHECK(stage != NULL, TOL_TIMEOUT, "none of %u staging blocks became free in %u ms",
              stages->count_max, deadline_ms);
    *result = stage;
out:
    return status;
}

void tol_stages_give(struct tol_stages *stages, struct tol_stage *stage, bool is_lost) {
    pthread_mutex_lock(&stages->lock);
    stage->is_lost = is_lost;
    stage->next = stages->free;
    stages->free = stage;
    pthread_cond_signal(&stages->given);
    pthread_mutex_unlock(&stages->lock);
}
