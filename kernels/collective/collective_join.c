/*
 * A collective whose ranks are processes: memory, the meeting, and what it gave.
 */
#include "collective/collective_link.h"
#include "collective/collective_meeting.h"
#include "core/check.h"
#include "core/monotonic.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 256 };

static tol_status hello_of(const struct kn_collective *c, const struct kn_collective_seat *seat,
                           struct kn_meeting_hello *hello) {
    tol_status status = TOL_OK;
    struct tol_context *context = c->rank[c->local].context;
    const struct tol_driver_table *driver = tol_context_functions(context);
    CUdevice device = 0;
    CUuuid uuid;
    TOL_CU(driver, cuDeviceGet, (&device, tol_context_device(context)->ordinal), "a device");
    TOL_CU(driver, cuDeviceGetUuid_v2, (&uuid, device), "the UUID of a device");
    *hello = (struct kn_meeting_hello){.magic = KN_MEETING_MAGIC,
                                       .version = KN_MEETING_VERSION,
                                       .rank = seat->rank,
                                       .ranks = seat->ranks,
                                       .way = c->way,
                                       .bytes = seat->bytes,
                                       .window_bytes = c->link->windows[c->local].bytes};
    memcpy(hello->device, &uuid, sizeof hello->device);
out:
    return status;
}

/* The memory of this rank, with empty inboxes after what callers use. */
static tol_status create_window(struct kn_collective *c, size_t bytes, int *file) {
    tol_status status = TOL_OK;
    struct tol_context *context = c->rank[c->local].context;
    struct kn_window *window = &c->link->windows[c->local];
    const size_t inbox = kn_collective_inbox_bytes(c);
    struct tol_stream *stream = NULL;
    TOL_CHECK(bytes <= SIZE_MAX / 2, TOL_OUT_OF_RANGE, "%zu bytes are no size", bytes);
    c->link->bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    TOL_TRY(kn_window_create(context, c->link->bytes + inbox, window, file));
    TOL_TRY(tol_stream_create(context, NULL, &stream));
    TOL_TRY(tol_context_bind(context));
    TOL_CU(tol_context_functions(context), cuMemsetD8Async,
           (window->address + c->link->bytes, 0, inbox, tol_stream_handle(stream)),
           "the inboxes of a collective");
    TOL_TRY(tol_stream_synchronize(stream));
out:
    tol_stream_destroy(stream);
    return status;
}

/* What the meeting gave. */
static tol_status collective_join_take(struct kn_collective *c, struct kn_meeting *meeting) {
    tol_status status = TOL_OK;
    struct tol_context *context = c->rank[c->local].context;
    const size_t bytes = c->link->windows[c->local].bytes;
    TOL_TRY(kn_link_open(context, meeting, c->link));
    for (unsigned i = 0; i < c->ranks; i++) {
        if (i != c->local) {
            TOL_TRY(kn_window_open(context, meeting->windows[i], bytes, &c->link->windows[i]));
        }
        c->rank[i].inbox_address = c->link->windows[i].address + c->link->bytes;
    }
out:
    return status;
}

static tol_status collective_join_meet(struct kn_collective *c,
                                       const struct kn_collective_seat *seat) {
    tol_status status = TOL_OK;
    struct kn_meeting meeting = {.path = seat->path, .listener = -1};
    int file = -1, life[2] = {-1, -1};
    const unsigned ms = seat->deadline_ms > 0 ? seat->deadline_ms : TOL_DEADLINE_MS;
    TOL_CHECK(pipe2(life, O_CLOEXEC) == 0, TOL_OUT_OF_HOST_MEMORY, "no more file descriptors");
    c->link->own_life = life[1];
    TOL_TRY(create_window(c, seat->bytes, &file));
    TOL_TRY(hello_of(c, seat, &meeting.own));
    meeting.until_ns = tol_now_ns() + ms * UINT64_C(1000000);
    status = kn_meeting_hold(&meeting, file, life[0]);
    if (status == TOL_OK) {
        char text[300];
        const tol_status taken = collective_join_take(c, &meeting);
        snprintf(text, sizeof text, "%s", taken != TOL_OK ? tol_message() : "");
        status = kn_meeting_agree(&meeting, taken == TOL_OK, text);
        if (taken != TOL_OK) status = tol_fail_again(taken, 0, text);
    }
    kn_meeting_end(&meeting);
out:
    if (file >= 0) close(file);
    if (life[0] >= 0) close(life[0]);
    return status;
}

tol_status kn_collective_join(struct tol_context *context, const struct kn_collective_seat *seat,
                              const struct kn_collective_options *options,
                              struct kn_collective **collective) {
    tol_status status = TOL_OK;
    struct kn_collective *c = NULL;
    TOL_CHECK(context != NULL && seat != NULL && seat->path != NULL && collective != NULL,
              TOL_INVALID_ARGUMENT, "kn_collective_join: an argument is NULL");
    const struct tol_driver *driver = tol_context_driver(context);
    TOL_CHECK(tol_driver_has(driver, TOL_FEATURE_SHARING) &&
                  tol_driver_has(driver, TOL_FEATURE_VMM),
              TOL_UNSUPPORTED, "the driver cannot share memory with other processes");
    c = calloc(1, sizeof *c);
    TOL_CHECK(c != NULL, TOL_OUT_OF_HOST_MEMORY, "no memory for a collective");
    TOL_TRY(kn_collective_choose(c, seat->ranks, context, options));
    TOL_CHECK(seat->rank < seat->ranks, TOL_INVALID_ARGUMENT, "no rank is %u of %u", seat->rank,
              seat->ranks);
    TOL_CHECK(seat->bytes > 0, TOL_INVALID_ARGUMENT, "a collective whose ranks share no memory");
    c->link = calloc(1, sizeof *c->link);
    TOL_CHECK(c->link != NULL, TOL_OUT_OF_HOST_MEMORY, "no memory for a collective");
    c->met_bytes = KN_COLLECTIVE_MET_BYTES;
    c->local = c->link->rank = seat->rank;
    c->link->ranks = seat->ranks;
    c->link->own_life = -1;
    for (unsigned i = 0; i < KN_COLLECTIVE_RANKS_MAX; i++) c->link->lives[i] = -1;
    TOL_TRY(kn_collective_create_rank(c, seat->rank, context));
    TOL_TRY(collective_join_meet(c, seat));
    *collective = c;
    c = NULL;
out:
    kn_collective_destroy(c);
    return status;
}

struct kn_place kn_collective_memory(const struct kn_collective *c) {
    if (c->link == NULL) return (struct kn_place){0, 0};
    return (struct kn_place){c->link->windows[c->local].address, c->link->bytes};
}
