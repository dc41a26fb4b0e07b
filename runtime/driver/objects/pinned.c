/*
 * Pinned host memory, and the events that say when its copies are done.
 *
 * One event per stream is enough: a stream runs in order, so its latest copy ends after all its
 * earlier ones, and recording the event again replaces the older point.
 */
#include "tollens/pinned.h"

#include "core/check.h"
#include "core/nvtx.h"
#include "core/deadline.h"
#include "core/numa.h"
#include "core/numa_pages.h"
#include "huge_pages.h"
#include "pinned_state.h"
#include "tollens/health.h"

#include <stdlib.h>

enum { REGISTER_PORTABLE = 1 }; /* CU_MEMHOSTREGISTER_PORTABLE */

static void pinned_report(struct tol_holder *holder, tol_held_visit *visit, void *user) {
    const struct tol_pinned *pinned =
        (void *)((char *)holder - offsetof(struct tol_pinned, holder));
    visit(user, &(struct tol_held){.kind = TOL_HELD_PINNED,
                                   .address = (uintptr_t)pinned->data,
                                   .bytes = pinned->bytes,
                                   .tag = "",
                                   .site = pinned->site});
}

/* Memory of huge pages that the driver has registered. false: there is none, and nothing is
 * kept. */
static bool map_huge(struct tol_context *context, struct tol_pinned *pinned, size_t bytes,
                     CUresult *answer) {
    if (!tol_driver_has(context->driver, TOL_FEATURE_SHARING)) return false;
    void *data = tol_huge_map(bytes);
    if (data == NULL) return false;
    *answer = context->functions->cuMemHostRegister_v2(data, bytes, REGISTER_PORTABLE);
    if (*answer == CUDA_SUCCESS) {
        pinned->data = data;
        pinned->is_huge = true;
        return true;
    }
    tol_huge_unmap(data, bytes);
    return false;
}

static CUresult pinned_pin(struct tol_context *context, struct tol_pinned *pinned, size_t bytes,
                           bool huge) {
    CUresult answer = CUDA_SUCCESS;
    struct tol_numa_policy policy = tol_numa_prefer(pinned->node);
    if (!huge || (!map_huge(context, pinned, bytes, &answer) &&
                  (answer == CUDA_SUCCESS || answer == CUDA_ERROR_NOT_SUPPORTED))) {
        answer = context->functions->cuMemHostAlloc(&pinned->data, bytes, CU_MEMHOSTALLOC_PORTABLE);
    }
    tol_numa_restore(&policy);
    return answer;
}

static tol_status pinned_create(struct tol_context *context, size_t bytes, bool huge,
                                const void *site, struct tol_pinned **result) {
    TOL_RANGE("tol_pinned_create", bytes);
    tol_status status = TOL_OK;
    struct tol_pinned *pinned = NULL;
    TOL_CHECK(context != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_pinned_create: an argument is NULL");
    TOL_CHECK(bytes > 0, TOL_INVALID_ARGUMENT, "the size of a pinned block is 0");
    TOL_CHECK(!context->device_memory_only, TOL_NOT_RESIDENT,
              "a pinned block of %zu bytes would be host memory that kernels can use; the context "
              "of device %d was created with device_memory_only",
              bytes, context->device.ordinal);
    TOL_TRY(tol_context_enter(context));
    pinned = calloc(1, sizeof *pinned);
    TOL_CHECK(pinned != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a pinned block of %zu bytes", sizeof *pinned);
    pinned->node = tol_numa_node("/sys", context->device.pci_bus_id);
    const CUresult answer = pinned_pin(context, pinned, bytes, huge);
    if (answer != CUDA_SUCCESS) {
        status = tol_context_fail(context, __FILE__, __LINE__,
                                  huge ? "cuMemHostRegister" : "cuMemHostAlloc", (int)answer,
                                  "pinning %zu bytes", bytes);
        if (status == TOL_OUT_OF_DEVICE_MEMORY) status = TOL_OUT_OF_HOST_MEMORY;
        goto out;
    }
    pinned->life.mark = TOL_ALIVE;
    pinned->context = context;
    pinned->bytes = bytes;
    pthread_mutex_init(&pinned->lock, NULL);
    tol_context_retain(context);
    pinned->site = site;
    tol_context_add_holder(context, &pinned->holder, pinned_report);
    *result = pinned;
    pinned = NULL;
out:
    free(pinned);
    return status;
}

tol_status tol_pinned_create(struct tol_context *context, size_t bytes,
                             struct tol_pinned **result) {
    return pinned_create(context, bytes, false, __builtin_return_address(0), result);
}

tol_status tol_pinned_create_huge(struct tol_context *context, size_t bytes,
                                  struct tol_pinned **result) {
    return pinned_create(context, bytes, true, __builtin_return_address(0), result);
}

static tol_status wait_for_copies(struct tol_pinned *pinned) {
    tol_status status = TOL_OK;
    struct tol_deadline deadline = tol_deadline_after(pinned->context->patience_ms);
    pthread_mutex_lock(&pinned->lock);
    for (struct tol_copy_use *use = pinned->uses; use != NULL; use = use->next) {
        if (!use->in_flight) continue;
        status = tol_deadline_wait_event(&use->event, &deadline);
        if (status != TOL_OK) break;
        use->in_flight = false;
    }
    pthread_mutex_unlock(&pinned->lock);
    return status;
}

void tol_pinned_destroy(struct tol_pinned *pinned) {
    if (pinned == NULL || pinned->life.mark != TOL_ALIVE) return;
    struct tol_context *context = pinned->context;
    tol_context_drop_holder(context, &pinned->holder);
    if (tol_bound_context != context->id) (void)tol_context_bind_slow(context);
    const tol_status ended = wait_for_copies(pinned);
    while (pinned->uses != NULL) {
        struct tol_copy_use *use = pinned->uses;
        pinned->uses = use->next;
        context->functions->cuEventDestroy_v2(use->event.handle);
        free(use);
    }
    if (!pinned->is_huge) {
        tol_context_free_later(context, 0, pinned->data);
    } else if (ended != TOL_TIMEOUT &&
               context->functions->cuMemHostUnregister(pinned->data) == CUDA_SUCCESS) {
        tol_huge_unmap(pinned->data, pinned->bytes);
    }
    pthread_mutex_destroy(&pinned->lock);
    tol_retire(&pinned->life);
    tol_context_destroy(context);
}

size_t tol_pinned_bytes(const struct tol_pinned *pinned) {
    return pinned->life.mark == TOL_ALIVE ? pinned->bytes : 0;
}

tol_status tol_pinned_nodes(const struct tol_pinned *pinned, struct tol_pinned_nodes *nodes) {
    tol_status status = TOL_OK;
    struct tol_numa_pages pages;
    TOL_CHECK(pinned != NULL && nodes != NULL, TOL_INVALID_ARGUMENT,
              "tol_pinned_nodes: an argument is NULL");
    TOL_TRY(tol_check_alive("pinned block", &pinned->life));
    tol_numa_look(pinned->data, pinned->bytes, &pages);
    *nodes = (struct tol_pinned_nodes){.wanted = pinned->node,
                                       .found = tol_numa_found(&pages),
                                       .pages = pages.asked,
                                       .seen = pages.seen};
out:
    return status;
}

tol_status tol_pinned_access(struct tol_pinned *pinned, void **data) {
    tol_status status = TOL_OK;
    TOL_CHECK(pinned != NULL && data != NULL, TOL_INVALID_ARGUMENT,
              "tol_pinned_access: an argument is NULL");
    TOL_TRY(tol_check_alive("pinned block", &pinned->life));
    TOL_TRY(tol_context_enter(pinned->context));
    TOL_TRY(wait_for_copies(pinned));
    *data = pinned->data;
out:
    return status;
}

tol_status tol_pinned_await(struct tol_pinned *pinned, void **data) {
    tol_status status = TOL_OK;
    TOL_CHECK(pinned != NULL && data != NULL, TOL_INVALID_ARGUMENT,
              "tol_pinned_await: an argument is NULL");
    TOL_TRY(tol_check_alive("pinned block", &pinned->life));
    TOL_TRY(tol_context_enter(pinned->context));
    pthread_mutex_lock(&pinned->lock);
    for (struct tol_copy_use *use = pinned->uses; use != NULL; use = use->next) {
        if (!use->in_flight) continue;
        const CUresult answer = pinned->context->functions->cuEventSynchronize(use->event.handle);
        if (answer != CUDA_SUCCESS) {
            status = tol_context_fail(pinned->context, __FILE__, __LINE__, "cuEventSynchronize",
                                      (int)answer, "waiting for a copy on stream %u",
                                      use->stream_number);
            break;
        }
        use->in_flight = false;
    }
    pthread_mutex_unlock(&pinned->lock);
    *data = pinned->data;
out:
    return status;
}

/* Finds the use of a stream, or adds one. The caller holds the block's lock. */
static tol_status use_of_stream(struct tol_pinned *pinned, struct tol_stream *stream,
                                struct tol_copy_use **result) {
    tol_status status = TOL_OK;
    struct tol_copy_use *use = pinned->uses;
    while (use != NULL && use->stream_number != stream->number) use = use->next;
    if (use == NULL) {
        use = calloc(1, sizeof *use);
        TOL_CHECK(use != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for the record of a copy");
        CUresult answer =
            pinned->context->functions->cuEventCreate(&use->event.handle, CU_EVENT_DISABLE_TIMING);
        if (answer != CUDA_SUCCESS) {
            free(use);
            status = tol_context_fail(pinned->context, __FILE__, __LINE__, "cuEventCreate",
                                      (int)answer, "creating the event of a copy");
            goto out;
        }
        use->event.context = pinned->context;
        use->stream_number = stream->number;
        use->next = pinned->uses;
        pinned->uses = use;
    }
    *result = use;
out:
    return status;
}

tol_status tol_pinned_prepare(struct tol_pinned *pinned, struct tol_stream *stream,
                              struct tol_copy_use **use) {
    pthread_mutex_lock(&pinned->lock);
    tol_status status = use_of_stream(pinned, stream, use);
    pthread_mutex_unlock(&pinned->lock);
    return status;
}

tol_status tol_pinned_mark(struct tol_pinned *pinned, struct tol_stream *stream,
                           struct tol_copy_use *use) {
    tol_status status = TOL_OK;
    pthread_mutex_lock(&pinned->lock);
    use->in_flight = true;
    TOL_CONTEXT_CU(pinned->context, cuEventRecord, (use->event.handle, stream->handle),
                   "recording a copy on stream %u", stream->number);
out:
    pthread_mutex_unlock(&pinned->lock);
    return status;
}
