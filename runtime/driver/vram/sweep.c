/*
 * Finds free granules in frames, maps frames for another sweep, and unmaps what is not needed.
 */
#include "sweep.h"

#include <stdlib.h>
#include <string.h>

/* A frame is swept again when so much of it is free: each sweep costs a mapping, and what is not
 * swept is wasted. And no more open frames than this are looked at before a new one is made. */
enum { SWEEP_SHARE = 2, LOOKS = 64 };

static uint32_t granules_of(uint64_t bytes) {
    return (uint32_t)((bytes + TOL_FRAME_GRANULE - 1) / TOL_FRAME_GRANULE);
}

/* ---- lists ---- */

static void link_to(struct tol_frame **list, struct tol_frame *frame) {
    frame->next = *list;
    frame->link = list;
    if (*list != NULL) (*list)->link = &frame->next;
    *list = frame;
}

static void unlink_frame(struct tol_frame *frame) {
    *frame->link = frame->next;
    if (frame->next != NULL) frame->next->link = frame->link;
}

/* ---- addresses ---- */

static bool is_window(uintptr_t page) {
    return page > TOL_PAGE_DEAD_REST;
}

static size_t sweep_page_of(const struct tol_once *once, CUdeviceptr address) {
    return (size_t)((address - once->begin) / once->page_bytes);
}

/* The first of count pages without a live block, at or after the cursor; page_count: none. */
static size_t find_pages(const struct tol_once *once, size_t count) {
    size_t from = once->page_cursor;
    for (int turn = 0; turn < 2; turn++, from = 0) {
        size_t run = 0;
        for (size_t page = from; page < once->page_count; page++) {
            run = is_window(once->pages[page]) ? 0 : run + 1;
            if (run == count) return page + 1 - count;
        }
    }
    return once->page_count;
}

/* ---- windows ---- */

/* Unmaps a window; its addresses are known for freed ones from now on. */
static void end_window(struct tol_once *once, struct tol_frame *frame, struct tol_window *window) {
    const size_t first = sweep_page_of(once, window->begin);
    const size_t count = (size_t)(window->bytes / once->page_bytes);
    struct tol_window **link = &frame->windows;
    while (*link != window) link = &(*link)->next;
    *link = window->next;
    once->context->functions->cuMemUnmap(window->begin, window->bytes);
    for (size_t i = 0; i < count; i++) {
        once->pages[first + i] = !frame->is_large ? TOL_PAGE_DEAD_SMALL
                                 : i == 0         ? TOL_PAGE_DEAD_FIRST
                                                  : TOL_PAGE_DEAD_REST;
    }
    once->stats.windows--;
    free(window->blocks);
    free(window);
}

/* Maps a frame at addresses of its own, for a sweep from its begin. */
static tol_status open_window(struct tol_once *once, struct tol_frame *frame) {
    tol_status status = TOL_OK;
    const struct tol_driver_table *driver = once->context->functions;
    const size_t count = (size_t)(frame->bytes / once->page_bytes);
    const size_t first = find_pages(once, count);
    struct tol_window *window = NULL;
    TOL_CHECK(first < once->page_count, TOL_OUT_OF_DEVICE_MEMORY,
              "no range of %llu bytes is free in %llu bytes of addresses",
              (unsigned long long)frame->bytes, (unsigned long long)once->bytes);
    window = calloc(1, sizeof *window);
    TOL_CHECK(window != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a record of mapped memory");
    window->frame = frame;
    window->begin = once->begin + first * once->page_bytes;
    window->bytes = frame->bytes;
    TOL_CONTEXT_CU(once->context, cuMemMap, (window->begin, frame->bytes, 0, frame->memory, 0),
                   "mapping %llu bytes", (unsigned long long)frame->bytes);
    CUresult answer = driver->cuMemSetAccess(window->begin, frame->bytes, &once->access, 1);
    if (answer != CUDA_SUCCESS) {
        status = tol_context_fail(once->context, __FILE__, __LINE__, "cuMemSetAccess", (int)answer,
                                  "mapping %llu bytes", (unsigned long long)frame->bytes);
        driver->cuMemUnmap(window->begin, frame->bytes);
        goto out;
    }
    for (size_t i = 0; i < count; i++) once->pages[first + i] = (uintptr_t)window;
    once->page_cursor = first + count < once->page_count ? first + count : 0;
    once->stats.windows++;
    window->next = frame->windows;
    frame->windows = window;
    frame->cursor = 0;
    /* The one that was swept before is kept only by what lives in it. */
    if (window->next != NULL && window->next->live == 0) end_window(once, frame, window->next);
    return TOL_OK;
out:
    free(window);
    return status;
}

/* ---- frames ---- */

void tol_frame_release(struct tol_once *once, struct tol_frame *frame) {
    while (frame->windows != NULL) end_window(once, frame, frame->windows);
    once->context->functions->cuMemRelease(frame->memory);
    once->stats.held_bytes -= frame->bytes;
    if (once->spare == frame) once->spare = NULL;
    unlink_frame(frame);
    free(frame);
}

static tol_status make_frame(struct tol_once *once, uint64_t bytes, bool is_large,
                             struct tol_frame **result) {
    tol_status status = TOL_OK;
    struct tol_context *context = once->context;
    const uint32_t granules = is_large ? 0 : granules_of(bytes);
    struct tol_frame *frame = calloc(1, sizeof *frame + granules / 8);
    TOL_CHECK(frame != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a record of a page of memory");
    frame->bytes = bytes;
    frame->free = granules;
    frame->is_large = is_large;
    CUresult answer = context->functions->cuMemCreate(&frame->memory, bytes, &once->prop, 0);
    if (answer == CUDA_ERROR_OUT_OF_MEMORY && once->spare != NULL) {
        tol_frame_release(once, once->spare);
        answer = context->functions->cuMemCreate(&frame->memory, bytes, &once->prop, 0);
    }
    if (answer != CUDA_SUCCESS) {
        size_t free_bytes = 0, total_bytes = 0;
        context->functions->cuMemGetInfo_v2(&free_bytes, &total_bytes);
        status = tol_context_fail(context, __FILE__, __LINE__, "cuMemCreate", (int)answer,
                                  "allocating %llu bytes; %zu of %zu bytes are free",
                                  (unsigned long long)bytes, free_bytes, total_bytes);
        free(frame);
        goto out;
    }
    once->stats.held_bytes += bytes;
    link_to(is_large ? &once->large : &once->open, frame);
    status = open_window(once, frame);
    if (status != TOL_OK) {
        tol_frame_release(once, frame);
        goto out;
    }
    *result = frame;
out:
    return status;
}

/* ---- room ---- */

static bool sweep_is_used(const struct tol_frame *frame, uint32_t granule) {
    return (frame->used[granule / 64] >> (granule % 64) & 1) != 0;
}

static void sweep_mark(struct tol_frame *frame, uint32_t first, uint32_t count, bool used) {
    for (uint32_t i = first; i < first + count; i++) {
        const uint64_t bit = (uint64_t)1 << (i % 64);
        frame->used[i / 64] = used ? frame->used[i / 64] | bit : frame->used[i / 64] & ~bit;
    }
    frame->free = used ? frame->free - count : frame->free + count;
}

/* The first run of count free granules at or after from; the frame's end: there is none. */
static uint32_t find_run(const struct tol_frame *frame, uint32_t from, uint32_t count) {
    const uint32_t end = granules_of(frame->bytes);
    if (frame->free < count || count > end - from) return end;
    for (uint32_t i = from, run = 0; i < end; i++) {
        if (i % 64 == 0 && frame->used[i / 64] == ~(uint64_t)0) {
            run = 0;
            i += 63;
            continue;
        }
        run = sweep_is_used(frame, i) ? 0 : run + 1;
        if (run == count) return i + 1 - count;
    }
    return end;
}

/* An open frame with space for granules after its cursor; in sweep the first that has it if swept
 * anew. */
static struct tol_frame *find_open(struct tol_once *once, uint32_t granules, uint32_t *at,
                                   struct tol_frame **sweep) {
    struct tol_frame *next = NULL;
    int looks = 0;
    *sweep = NULL;
    for (struct tol_frame *frame = once->open; frame != NULL && looks < LOOKS; frame = next) {
        const uint32_t end = granules_of(frame->bytes);
        next = frame->next;
        looks++;
        *at = find_run(frame, frame->cursor, granules);
        if (*at < end) return frame;
        if (frame->free >= end / SWEEP_SHARE) {
            if (*sweep == NULL && find_run(frame, 0, granules) < end) *sweep = frame;
        } else if (end - frame->cursor < end / 8) {
            unlink_frame(frame);
            link_to(&once->full, frame);
        }
    }
    return NULL;
}

/* Where memory is out, any hole will do. */
static struct tol_frame *find_anywhere(struct tol_once *once, uint32_t granules) {
    struct tol_frame *const lists[] = {once->open, once->full};
    for (int i = 0; i < 2; i++) {
        for (struct tol_frame *frame = lists[i]; frame != NULL; frame = frame->next) {
            if (find_run(frame, 0, granules) < granules_of(frame->bytes)) return frame;
        }
    }
    return NULL;
}

static tol_status place_small(struct tol_once *once, uint32_t granules, struct tol_frame **result,
                              uint32_t *at) {
    tol_status status = TOL_OK;
    struct tol_frame *sweep = NULL;
    *result = find_open(once, granules, at, &sweep);
    if (*result != NULL) return TOL_OK;
    if (sweep != NULL) {
        status = open_window(once, sweep);
    } else {
        status = make_frame(once, once->page_bytes, false, &sweep); /* and a window of it */
        if (status == TOL_OUT_OF_DEVICE_MEMORY) sweep = find_anywhere(once, granules);
        if (status == TOL_OUT_OF_DEVICE_MEMORY && sweep != NULL) status = open_window(once, sweep);
    }
    if (status != TOL_OK) return status;
    *at = find_run(sweep, 0, granules);
    *result = sweep;
    return TOL_OK;
}

tol_status tol_frame_place(struct tol_once *once, uint64_t bytes, struct tol_window **window,
                           uint32_t *index) {
    tol_status status = TOL_OK;
    struct tol_frame *frame = NULL;
    const bool is_large = bytes > once->page_bytes / 2;
    uint32_t at = 0, granules = is_large ? 0 : granules_of(bytes);
    if (is_large) {
        TOL_CHECK(bytes <= once->bytes, TOL_OUT_OF_DEVICE_MEMORY,
                  "%llu bytes are more than the %llu bytes of addresses in total",
                  (unsigned long long)bytes, (unsigned long long)once->bytes);
        uint64_t whole = (bytes + once->page_bytes - 1) / once->page_bytes * once->page_bytes;
        TOL_TRY(make_frame(once, whole, true, &frame));
    } else {
        TOL_TRY(place_small(once, granules, &frame, &at));
    }
    struct tol_window *found = frame->windows;
    if (found->count == found->room) {
        uint32_t room = is_large ? 1 : 2 * found->room + 8;
        struct tol_once_block *more = realloc(found->blocks, room * sizeof *more);
        if (more == NULL && found->live == 0 && is_large) tol_frame_release(once, frame);
        TOL_CHECK(more != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for the record of a block");
        found->blocks = more;
        found->room = room;
    }
    found->blocks[found->count] = (struct tol_once_block){.granule = at, .bytes = bytes};
    if (!is_large) sweep_mark(frame, at, granules, true);
    frame->cursor = at + granules;
    found->live++;
    if (once->spare == frame) once->spare = NULL;
    *window = found;
    *index = found->count++;
out:
    return status;
}

void tol_frame_end_block(struct tol_once *once, struct tol_window *window, uint32_t index) {
    struct tol_frame *frame = window->frame;
    const struct tol_once_block *block = &window->blocks[index];
    if (frame->is_large) {
        tol_frame_release(once, frame);
        return;
    }
    sweep_mark(frame, block->granule, granules_of(block->bytes), false);
    if (--window->live == 0 && window != frame->windows) end_window(once, frame, window);
    const uint32_t all = granules_of(frame->bytes);
    if (frame->free == all && once->spare != NULL && once->spare != frame) {
        tol_frame_release(once, frame);
        return;
    }
    if (frame->free == all) once->spare = frame;
    if (frame->free >= all / SWEEP_SHARE) { /* to the front, which is searched first */
        unlink_frame(frame);
        link_to(&once->open, frame);
    }
}
