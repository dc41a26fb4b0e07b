/*
 * Creating, destroying and waiting; the order of the ranks' streams.
 */
#include "collective/collective_state.h"
#include "core/check.h"
#include "core/monotonic.h"

#include <assert.h>
#include <stdlib.h>

KN_IMAGES(collective_1_direct);
KN_IMAGES(collective_2_flags);
KN_IMAGES(collective_3_columns);
KN_IMAGES(collective_4_early);
KN_IMAGES(collective_5_early);
KN_IMAGES(collective_6_met);
KN_IMAGES(collective_7_early);

#define DIRECT(type)                                                                               \
    {                                                                                              \
        .name = "direct", .entry = "direct_" #type, .images = kn_images_collective_1_direct,       \
        .compute_capability_min = 75, .threads = COLLECTIVE_THREADS                                \
    }
#define FLAGS(type)                                                                                \
    {                                                                                              \
        .name = "flags", .entry = "flags_" #type, .images = kn_images_collective_2_flags,          \
        .compute_capability_min = 75, .threads = COLLECTIVE_THREADS                                \
    }

#define EARLY(type)                                                                                \
    {                                                                                              \
        .name = "flags, early", .entry = "flags_early_" #type,                                     \
        .images = kn_images_collective_5_early, .compute_capability_min = 90,                      \
        .threads = COLLECTIVE_THREADS                                                              \
    }

static const struct kn_variant direct[KN_TYPES] = {
    [KN_F32] = DIRECT(f32), [KN_F16] = DIRECT(f16), [KN_BF16] = DIRECT(bf16)};
static const struct kn_variant flags[KN_FLAGS] = {[KN_F32] = FLAGS(f32),
                                                  [KN_F16] = FLAGS(f16),
                                                  [KN_BF16] = FLAGS(bf16),
                                                  [KN_FLAGS_COPY] = FLAGS(copy)};
static const struct kn_variant early[KN_FLAGS] = {[KN_F32] = EARLY(f32),
                                                  [KN_F16] = EARLY(f16),
                                                  [KN_BF16] = EARLY(bf16),
                                                  [KN_FLAGS_COPY] = EARLY(copy)};

#define MET(type)                                                                                  \
    {                                                                                              \
        .name = "met", .entry = "met_" #type, .images = kn_images_collective_6_met,                \
        .compute_capability_min = 75, .threads = COLLECTIVE_THREADS                                \
    }

#define MET_EARLY(type)                                                                            \
    {                                                                                              \
        .name = "met, early", .entry = "met_early_" #type, .images = kn_images_collective_7_early, \
        .compute_capability_min = 90, .threads = COLLECTIVE_THREADS                                \
    }

static const struct kn_variant met[KN_TYPES] = {
    [KN_F32] = MET(f32), [KN_F16] = MET(f16), [KN_BF16] = MET(bf16)};
static const struct kn_variant met_early[KN_TYPES] = {
    [KN_F32] = MET_EARLY(f32), [KN_F16] = MET_EARLY(f16), [KN_BF16] = MET_EARLY(bf16)};

static const struct kn_variant columns[3] = {
    {.name = "direct",
     .entry = "columns_direct",
     .images = kn_images_collective_3_columns,
     .compute_capability_min = 75,
     .threads = COLLECTIVE_THREADS},
    {.name = "flags",
     .entry = "columns_flags",
     .images = kn_images_collective_3_columns,
     .compute_capability_min = 75,
     .threads = COLLECTIVE_THREADS},
    {.name = "early",
     .entry = "columns_flags_early",
     .images = kn_images_collective_4_early,
     .compute_capability_min = 90,
     .threads = COLLECTIVE_THREADS},
};

const char *kn_collective_way_name(enum kn_collective_way way) {
    static const char *const names[KN_WAYS] = {"auto", "direct", "ring", "flags"};
    return (unsigned)way < KN_WAYS ? names[way] : NULL;
}

/* ---- creating ---- */

size_t kn_collective_inbox_bytes(const struct kn_collective *c) {
    return 2 * c->ranks * kn_collective_slot_bytes(c) + sizeof(struct collective_words);
}

static tol_status collective_create_enable(struct kn_collective *c, unsigned user, unsigned owner) {
    tol_status status = TOL_OK;
    struct tol_context *context = c->rank[user].context, *other = c->rank[owner].context;
    const struct tol_driver_table *driver = tol_context_functions(context);
    const int device = tol_context_device(context)->ordinal;
    const int peer = tol_context_device(other)->ordinal;
    CUdevice handle = 0, peer_handle = 0;
    CUcontext peer_context = NULL;
    int can = 0;
    TOL_TRY(tol_context_bind(other));
    TOL_CU(driver, cuCtxGetCurrent, (&peer_context), "the context of device %d", peer);
    TOL_CU(driver, cuDeviceGet, (&handle, device), "device %d", device);
    TOL_CU(driver, cuDeviceGet, (&peer_handle, peer), "device %d", peer);
    TOL_CU(driver, cuDeviceCanAccessPeer, (&can, handle, peer_handle), "devices %d and %d", device,
           peer);
    TOL_CHECK(can != 0, TOL_UNSUPPORTED, "device %d cannot access the memory of device %d", device,
              peer);
    TOL_TRY(tol_context_bind(context));
    const CUresult result = driver->cuCtxEnablePeerAccess(peer_context, 0);
    TOL_CHECK(result == CUDA_SUCCESS || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
              TOL_UNSUPPORTED, "device %d gets no access to the memory of device %d: CUDA error %d",
              device, peer, (int)result);
out:
    return status;
}

static tol_status create_flags(struct kn_collective *c, struct kn_collective_rank *rank) {
    tol_status status = TOL_OK;
    const struct tol_driver_table *driver = tol_context_functions(rank->context);
    const size_t bytes = kn_collective_inbox_bytes(c);
    void *memory = NULL;
    const bool is_early = tol_launch_has_programmatic(rank->context);
    for (int i = 0; i < KN_FLAGS; i++) {
        TOL_TRY(kn_kernels_find(rank->kernels, is_early ? &early[i] : &flags[i], &rank->flags[i]));
    }
    for (int i = 0; i < KN_TYPES; i++) {
        TOL_TRY(kn_kernels_find(rank->kernels, is_early ? &met_early[i] : &met[i], &rank->met[i]));
    }
    if (c->link == NULL) {
        TOL_TRY(tol_buffer_create(rank->context, bytes, 1, &rank->inbox));
        TOL_TRY(tol_buffer_fill_at(rank->inbox, 0, 0, 1, bytes));
        rank->inbox_address = tol_buffer_address(rank->inbox);
    }
    TOL_TRY(tol_context_bind(rank->context));
    TOL_CU(driver, cuMemHostAlloc,
           (&memory, sizeof *rank->status, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
           "a word for the status of a rank");
    rank->status = memory;
    *rank->status = 0;
out:
    return status;
}

tol_status kn_collective_create_rank(struct kn_collective *c, unsigned index,
                                     struct tol_context *context) {
    tol_status status = TOL_OK;
    struct kn_collective_rank *rank = &c->rank[index];
    const struct tol_device *device = tol_context_device(context);
    const struct tol_driver_table *driver = tol_context_functions(context);
    /* One more reference to the same context. */
    TOL_TRY(tol_context_create(tol_context_driver(context), device->ordinal, &rank->context));
    TOL_CHECK(rank->context == context, TOL_INVALID_ARGUMENT, "rank %u is not of this driver",
              index);
    for (unsigned i = 0; i < index && c->link == NULL; i++) {
        TOL_CHECK(c->rank[i].context != context, TOL_INVALID_ARGUMENT,
                  "ranks %u and %u are one device, %d", i, index, device->ordinal);
    }
    rank->blocks = c->blocks > 0 ? c->blocks : 2 * (unsigned)device->multiprocessors;
    TOL_TRY(kn_kernels_create(context, &rank->kernels));
    for (int type = 0; type < KN_TYPES; type++) {
        TOL_TRY(kn_kernels_find(rank->kernels, &direct[type], &rank->direct[type]));
    }
    for (int i = 0; i < 3; i++) {
        if (device->compute_capability < columns[i].compute_capability_min) continue;
        TOL_TRY(kn_kernels_find(rank->kernels, &columns[i], &rank->columns[i]));
    }
    TOL_TRY(tol_context_bind(context));
    for (int i = 0; i < 2 && c->link == NULL; i++) {
        TOL_CU(driver, cuEventCreate, (&rank->events[i], CU_EVENT_DISABLE_TIMING), "rank %u",
               index);
    }
    if (c->has_flags) TOL_TRY(create_flags(c, rank));
out:
    return status;
}

tol_status kn_collective_choose(struct kn_collective *c, unsigned ranks,
                                struct tol_context *context,
                                const struct kn_collective_options *options) {
    tol_status status = TOL_OK;
    const enum kn_collective_way way = options != NULL ? options->way : KN_WAY_AUTO;
    TOL_CHECK(ranks >= 2 && ranks <= KN_COLLECTIVE_RANKS_MAX, TOL_INVALID_ARGUMENT,
              "a collective of %u ranks; it has 2 to %d", ranks, KN_COLLECTIVE_RANKS_MAX);
    TOL_CHECK((unsigned)way < KN_WAYS, TOL_INVALID_ARGUMENT, "there is no way %d", (int)way);
    TOL_CHECK(context != NULL, TOL_INVALID_ARGUMENT, "the context of rank 0 is NULL");
    c->way = way;
    c->ranks = ranks;
    c->flags_bytes = kn_collective_flags_bytes(ranks);
    /* Events of two ranks of one process take less; those of four take 45 us of the host. */
    c->met_bytes = ranks > 2 ? KN_COLLECTIVE_MET_BYTES : 0;
    c->blocks = options != NULL ? options->blocks : 0;
    c->patience_ms =
        options != NULL && options->patience_ms > 0 ? options->patience_ms : TOL_DEADLINE_MS;
    c->has_flags = way == KN_WAY_FLAGS ||
                   (way == KN_WAY_AUTO && !tol_driver_is_soft(tol_context_driver(context)));
    assert(c->flags_bytes > 0 && c->patience_ms > 0);
out:
    return status;
}

tol_status kn_collective_create(struct tol_context *const *contexts, unsigned ranks,
                                const struct kn_collective_options *options,
                                struct kn_collective **collective) {
    tol_status status = TOL_OK;
    struct kn_collective *c = NULL, chosen = {.ranks = 0};
    TOL_CHECK(contexts != NULL && collective != NULL, TOL_INVALID_ARGUMENT,
              "kn_collective_create: an argument is NULL");
    TOL_TRY(kn_collective_choose(&chosen, ranks, contexts[0], options));
    for (unsigned i = 0; i < ranks; i++) {
        TOL_CHECK(contexts[i] != NULL, TOL_INVALID_ARGUMENT, "the context of rank %u is NULL", i);
    }
    c = calloc(1, sizeof *c);
    TOL_CHECK(c != NULL, TOL_OUT_OF_HOST_MEMORY, "no memory for a collective");
    *c = chosen;
    for (unsigned i = 0; i < ranks; i++) TOL_TRY(kn_collective_create_rank(c, i, contexts[i]));
    for (unsigned i = 0; i < ranks * ranks; i++) {
        if (i / ranks != i % ranks) TOL_TRY(collective_create_enable(c, i / ranks, i % ranks));
    }
    *collective = c;
    c = NULL;
out:
    kn_collective_destroy(c);
    return status;
}

/* Whether no kernel of any rank can still use the memory of another. */
static bool collective_create_is_idle(const struct kn_collective *c) {
    enum { BROKEN_MS = 100 };
    bool is_done = true;
    for (unsigned i = 0; i < c->ranks; i++) {
        if (c->rank[i].context == NULL) continue;
        is_done &= tol_context_synchronize(c->rank[i].context,
                                           c->is_broken ? BROKEN_MS : TOL_DEADLINE_MS) == TOL_OK;
    }
    return is_done;
}

/* What a late kernel may still write is given up: it stays allocated until the process ends. */
static void destroy_rank(struct kn_collective_rank *rank, bool is_done) {
    const struct tol_driver_table *driver = tol_context_functions(rank->context);
    if (tol_context_bind(rank->context) == TOL_OK) {
        for (int j = 0; j < 2; j++) {
            if (rank->events[j] != NULL) driver->cuEventDestroy_v2(rank->events[j]);
        }
        if (rank->status != NULL && is_done) driver->cuMemFreeHost(rank->status);
    }
    if (is_done) tol_buffer_destroy(rank->inbox);
    kn_kernels_destroy(rank->kernels);
    tol_context_destroy(rank->context);
}

void kn_collective_destroy(struct kn_collective *c) {
    if (c == NULL) return;
    bool is_done = collective_create_is_idle(c);
    if (c->link != NULL) {
        if (!is_done && kn_link_release(c, c->local)) is_done = collective_create_is_idle(c);
        kn_link_close(c, is_done);
    }
    for (unsigned i = 0; i < c->ranks; i++) {
        if (c->rank[i].context != NULL) destroy_rank(&c->rank[i], is_done);
    }
    free(c);
}

unsigned kn_collective_ranks(const struct kn_collective *c) {
    return c->ranks;
}

/* ---- order ---- */

tol_status kn_collective_record(struct kn_collective *c, unsigned rank, unsigned step) {
    tol_status status = TOL_OK;
    struct kn_collective_rank *r = &c->rank[rank];
    if (c->link != NULL) return rank == c->local ? kn_link_record(c, step) : TOL_OK;
    TOL_TRY(tol_context_bind(r->context));
    TOL_CU(tol_context_functions(r->context), cuEventRecord,
           (r->events[step % 2], tol_stream_handle(r->stream)), "rank %u", rank);
out:
    return status;
}

tol_status kn_collective_follow(struct kn_collective *c, unsigned rank, unsigned other,
                                unsigned step) {
    tol_status status = TOL_OK;
    struct kn_collective_rank *r = &c->rank[rank];
    if (c->link != NULL) return rank == c->local ? kn_link_follow(c, other, step) : TOL_OK;
    TOL_TRY(tol_context_bind(r->context));
    TOL_CU(tol_context_functions(r->context), cuStreamWaitEvent,
           (tol_stream_handle(r->stream), c->rank[other].events[step % 2], 0),
           "rank %u waits for rank %u", rank, other);
out:
    return status;
}

tol_status kn_collective_meet(struct kn_collective *c, unsigned step) {
    tol_status status = TOL_OK;
    for (unsigned i = 0; i < c->ranks; i++) TOL_TRY(kn_collective_record(c, i, step));
    for (unsigned i = 0; i < c->ranks; i++) {
        for (unsigned j = 0; j < c->ranks; j++) {
            if (i != j) TOL_TRY(kn_collective_follow(c, i, j, step));
        }
    }
out:
    return status;
}

/* ---- waiting ---- */

/* What a kernel noted that gave up. */
static tol_status check_flags(const struct kn_collective *c) {
    tol_status status = TOL_OK;
    for (unsigned i = 0; i < c->ranks && c->has_flags; i++) {
        if (!kn_collective_is_here(c, i)) continue;
        const unsigned missing = *(volatile unsigned *)c->rank[i].status;
        TOL_CHECK(missing == 0, TOL_TIMEOUT,
                  "rank %u of a collective waited %u ms for rank %u, and gave up", i,
                  c->patience_ms, missing - 1);
    }
out:
    return status;
}

tol_status kn_collective_wait(struct kn_collective *c, unsigned deadline_ms) {
    tol_status status = TOL_OK;
    TOL_CHECK(c != NULL, TOL_INVALID_ARGUMENT, "kn_collective_wait: the collective is NULL");
    TOL_CHECK(!c->is_broken, TOL_POISONED,
              "a collective failed before: destroy it and create another");
    unsigned left_ms = deadline_ms;
    c->is_broken = true;
    if (c->link != NULL) TOL_TRY(kn_link_wait(c, deadline_ms));
    for (unsigned i = 0; i < c->ranks && c->link == NULL; i++) {
        if (c->rank[i].stream == NULL) continue;
        const uint64_t begin_ns = tol_now_ns();
        TOL_TRY(tol_stream_synchronize_for(c->rank[i].stream, left_ms));
        const uint64_t took_ms = (tol_now_ns() - begin_ns) / 1000000;
        left_ms = took_ms < left_ms ? left_ms - (unsigned)took_ms : 0;
    }
    TOL_TRY(check_flags(c));
    c->is_broken = false;
out:
    return status;
}
