/*
 * The reservation, and blocks by address.
 */
#include "once.h"

#include "core/deadline.h"
#include "tollens/driver.h"
#include "sweep.h"

#include <stdlib.h>

/* An address is reused only after allocations of this multiple of the device's memory; of less,
 * down to the second number in bytes, if the process has fewer addresses left. */
enum { ADDRESS_TIMES = 32, ADDRESS_LEAST = 64 << 20 };

tol_status tol_once_create(struct tol_context *context, uint64_t address_bytes,
                           struct tol_once **result) {
    tol_status status = TOL_OK;
    struct tol_once *once = NULL;
    size_t unit = 0;
    TOL_TRY(tol_context_enter(context));
    TOL_CHECK(tol_driver_has(context->driver, TOL_FEATURE_VMM) &&
                  context->device.virtual_memory_management,
              TOL_UNSUPPORTED, "device %d has no virtual memory management",
              context->device.ordinal);
    once = calloc(1, sizeof *once);
    TOL_CHECK(once != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a table of addresses");
    once->context = context;
    once->prop =
        (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, context->device_handle}};
    once->access = (CUmemAccessDesc){.location = once->prop.location,
                                     .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    TOL_CONTEXT_CU(context, cuMemGetAllocationGranularity,
                   (&unit, &once->prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                   "getting the granularity of memory");
    once->page_bytes = unit;
    if (address_bytes == 0) address_bytes = ADDRESS_TIMES * context->device.memory_bytes;
    once->page_count = (size_t)((address_bytes + unit - 1) / unit);
    once->pages = calloc(once->page_count, sizeof *once->pages);
    TOL_CHECK(once->pages != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a table of %zu pages", once->page_count);
    CUresult answer = CUDA_SUCCESS;
    for (;; once->page_count /= 2) {
        once->bytes = once->page_count * once->page_bytes;
        answer = context->functions->cuMemAddressReserve(&once->begin, once->bytes, unit, 0, 0);
        bool is_least = once->bytes / 2 < ADDRESS_LEAST;
        if (answer != CUDA_ERROR_OUT_OF_MEMORY || is_least) break;
    }
    if (answer != CUDA_SUCCESS) {
        status =
            tol_context_fail(context, __FILE__, __LINE__, "cuMemAddressReserve", (int)answer,
                             "reserving %llu bytes of addresses", (unsigned long long)once->bytes);
        goto out;
    }
    pthread_mutex_init(&once->lock, NULL);
    tol_context_retain(context);
    *result = once;
    once = NULL;
out:
    if (once != NULL) free(once->pages);
    free(once);
    return status;
}

void tol_once_destroy(struct tol_once *once) {
    if (once == NULL) return;
    struct tol_context *context = once->context;
    struct tol_frame **const lists[] = {&once->open, &once->full, &once->large};
    if (tol_bound_context != context->id) (void)tol_context_bind_slow(context);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        while (*lists[i] != NULL) tol_frame_release(once, *lists[i]);
    }
    context->functions->cuMemAddressFree(once->begin, once->bytes);
    pthread_mutex_destroy(&once->lock);
    free(once->pages);
    free(once);
    tol_context_destroy(context);
}

bool tol_once_has(const struct tol_once *once, CUdeviceptr address) {
    return address >= once->begin && address - once->begin < once->bytes;
}

/* The last block of the address's window that begins at it or before it; false: there is none. */
static bool once_find(const struct tol_once *once, CUdeviceptr address, struct tol_window **window,
                      uint32_t *index) {
    if (!tol_once_has(once, address)) return false;
    uintptr_t page = once->pages[(address - once->begin) / once->page_bytes];
    if (page <= TOL_PAGE_DEAD_REST) return false;
    struct tol_window *found = (struct tol_window *)page;
    const uint64_t offset = address - found->begin;
    uint32_t low = 0, high = found->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if ((uint64_t)found->blocks[middle].granule * TOL_FRAME_GRANULE <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *window = found;
    *index = low - 1;
    return low > 0;
}

static CUdeviceptr once_begin_of(const struct tol_window *window, uint32_t index) {
    return window->begin + (uint64_t)window->blocks[index].granule * TOL_FRAME_GRANULE;
}

static enum tol_once_kind once_kind_of(const struct tol_once *once, CUdeviceptr address,
                                       struct tol_window **window, uint32_t *index) {
    if (once_find(once, address, window, index)) {
        if (once_begin_of(*window, *index) != address) return TOL_ONCE_FOREIGN;
        return (*window)->blocks[*index].is_freed ? TOL_ONCE_FREED : TOL_ONCE_LIVE;
    }
    if (!tol_once_has(once, address)) return TOL_ONCE_FOREIGN;
    const uint64_t offset = (address - once->begin) % once->page_bytes;
    switch (once->pages[(address - once->begin) / once->page_bytes]) {
    case TOL_PAGE_DEAD_SMALL:
        return offset % TOL_FRAME_GRANULE == 0 ? TOL_ONCE_FREED : TOL_ONCE_FOREIGN;
    case TOL_PAGE_DEAD_FIRST:
        return offset == 0 ? TOL_ONCE_FREED : TOL_ONCE_FOREIGN;
    default:
        return TOL_ONCE_FOREIGN;
    }
}

enum tol_once_kind tol_once_kind_of(struct tol_once *once, CUdeviceptr address) {
    struct tol_window *window = NULL;
    uint32_t index = 0;
    pthread_mutex_lock(&once->lock);
    enum tol_once_kind kind = once_kind_of(once, address, &window, &index);
    pthread_mutex_unlock(&once->lock);
    return kind;
}

tol_status tol_once_allocate(struct tol_once *once, size_t bytes, CUdeviceptr *address) {
    tol_status status = TOL_OK;
    struct tol_window *window = NULL;
    uint32_t index = 0;
    TOL_CHECK(bytes > 0, TOL_INVALID_ARGUMENT, "the size of an allocation is 0");
    TOL_TRY(tol_context_enter(once->context));
    pthread_mutex_lock(&once->lock);
    status = tol_frame_place(once, bytes, &window, &index);
    if (status == TOL_OK) {
        once->stats.live_blocks++;
        once->stats.live_bytes += bytes;
        *address = once_begin_of(window, index);
    }
    pthread_mutex_unlock(&once->lock);
out:
    return status;
}

/* What was queued by anyone of this program; not of other processes. */
static tol_status wait_for_device(struct tol_context *context) {
    tol_status status = tol_context_synchronize(context, TOL_DEADLINE_MS);
    return status != TOL_OK ? status : tol_deadline_wait_legacy(context);
}

/* Releases a block; if it is freed, the last release ends it. The caller locks. */
static void once_let_go(struct tol_once *once, CUdeviceptr begin) {
    struct tol_window *window = NULL;
    uint32_t index = 0;
    if (!once_find(once, begin, &window, &index)) return;
    struct tol_once_block *block = &window->blocks[index];
    if (--block->holds > 0 || !block->is_freed) return;
    tol_frame_end_block(once, window, index);
}

tol_status tol_once_free(struct tol_once *once, CUdeviceptr address, enum tol_once_kind *kind) {
    tol_status status = TOL_OK;
    struct tol_window *window = NULL;
    uint32_t index = 0;
    pthread_mutex_lock(&once->lock);
    *kind = once_kind_of(once, address, &window, &index);
    if (*kind == TOL_ONCE_LIVE) {
        /* Held while it is waited for: a copy that ends meanwhile must not end it. */
        window->blocks[index].is_freed = true;
        window->blocks[index].holds++;
        once->stats.live_blocks--;
        once->stats.live_bytes -= window->blocks[index].bytes;
    }
    pthread_mutex_unlock(&once->lock);
    if (*kind != TOL_ONCE_LIVE) return TOL_OK;

    status = tol_context_enter(once->context);
    if (status == TOL_OK) status = wait_for_device(once->context);
    /* Unmapping needs the context even if it is poisoned. */
    if (tol_bound_context != once->context->id) (void)tol_context_bind_slow(once->context);
    pthread_mutex_lock(&once->lock);
    if (status != TOL_OK && tol_context_check(once->context) == TOL_OK &&
        once_find(once, address, &window, &index)) {
        window->blocks[index].is_freed = false;
        once->stats.live_blocks++;
        once->stats.live_bytes += window->blocks[index].bytes;
    }
    once_let_go(once, address);
    pthread_mutex_unlock(&once->lock);
    return status;
}

bool tol_once_hold(struct tol_once *once, CUdeviceptr address, CUdeviceptr *begin, size_t *bytes) {
    struct tol_window *window = NULL;
    uint32_t index = 0;
    pthread_mutex_lock(&once->lock);
    bool found = once_find(once, address, &window, &index) && !window->blocks[index].is_freed &&
                 address - once_begin_of(window, index) < window->blocks[index].bytes;
    if (found) {
        window->blocks[index].holds++;
        *begin = once_begin_of(window, index);
        *bytes = (size_t)window->blocks[index].bytes;
    }
    pthread_mutex_unlock(&once->lock);
    return found;
}

void tol_once_release(struct tol_once *once, CUdeviceptr begin) {
    if (tol_bound_context != once->context->id) (void)tol_context_bind_slow(once->context);
    pthread_mutex_lock(&once->lock);
    once_let_go(once, begin);
    pthread_mutex_unlock(&once->lock);
}

void tol_once_stats(struct tol_once *once, struct tol_once_stats *stats) {
    pthread_mutex_lock(&once->lock);
    *stats = once->stats;
    pthread_mutex_unlock(&once->lock);
}
