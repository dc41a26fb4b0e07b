/*
 * The ring, and the calls by flags.
 *
 * In a ring every step of a rank uses what the rank before it made in the step before, so a stream
 * waits for one event per step. A chunk of a rank is overwritten only after the next rank has
 * read it: the chain of waits goes around the ring in between.
 */
#include "collective/collective_state.h"
#include "core/check.h"

#include <assert.h>

/* ---- the ring ---- */

static unsigned collective_ways_before(const struct kn_collective *c, unsigned rank) {
    return (rank + c->ranks - 1) % c->ranks;
}

static CUdeviceptr collective_ways_at(struct kn_place place, size_t element, enum kn_type type) {
    return place.address + element * kn_type_bytes(type);
}

/* The chunk that a rank makes in a step of the first half: the sum of what has come and its own. */
static void fill_sum(const struct kn_collective *c, const struct kn_collective_part *parts,
                     unsigned rank, unsigned step, size_t count, enum kn_type type,
                     struct collective_direct *x) {
    const unsigned from = collective_ways_before(c, rank);
    const unsigned which = (rank + 2 * c->ranks - 1 - step) % c->ranks;
    const struct kn_chunk chunk = kn_collective_chunk(c, which, count, type);
    x->count = chunk.count;
    x->source_count = 2;
    x->target_count = 1;
    x->sources[0] =
        collective_ways_at(step == 0 ? parts[from].in : parts[from].out, chunk.first, type);
    x->sources[1] = collective_ways_at(parts[rank].in, chunk.first, type);
    x->targets[0] = collective_ways_at(parts[rank].out, chunk.first, type);
}

/* The same of the second half: a copy of a chunk that is whole. */
static void fill_copy(const struct kn_collective *c, const struct kn_collective_part *parts,
                      unsigned rank, struct kn_chunk chunk, enum kn_type type,
                      struct collective_direct *x) {
    x->count = chunk.count;
    x->source_count = x->target_count = 1;
    x->sources[0] =
        collective_ways_at(parts[collective_ways_before(c, rank)].out, chunk.first, type);
    x->targets[0] = collective_ways_at(parts[rank].out, chunk.first, type);
}

/* Lets a rank wait for the one before it, launches, and records. The streams have met at step 0, so
 * the first step waits for nothing more. */
static tol_status collective_ways_take_step(struct kn_collective *c, unsigned rank, unsigned step,
                                            enum kn_type type, struct collective_direct *x) {
    tol_status status = TOL_OK;
    if (step > 1) TOL_TRY(kn_collective_follow(c, rank, collective_ways_before(c, rank), step - 1));
    TOL_TRY(kn_collective_launch(c, rank, type, x));
    TOL_TRY(kn_collective_record(c, rank, step));
out:
    return status;
}

tol_status kn_ring_all_reduce(struct kn_collective *c, const struct kn_collective_part *parts,
                              size_t count, enum kn_type type) {
    tol_status status = TOL_OK;
    const unsigned half = c->ranks - 1;
    TOL_TRY(kn_collective_meet(c, 0));
    for (unsigned step = 0; step < 2 * half; step++) {
        for (unsigned rank = 0; rank < c->ranks; rank++) {
            struct collective_direct x = {.count = 0};
            if (step < half) {
                fill_sum(c, parts, rank, step, count, type, &x);
            } else {
                const unsigned which = (rank + c->ranks - (step - half)) % c->ranks;
                fill_copy(c, parts, rank, kn_collective_chunk(c, which, count, type), type, &x);
            }
            TOL_TRY(collective_ways_take_step(c, rank, step + 1, type, &x));
        }
    }
    TOL_TRY(kn_collective_meet(c, 2 * half + 1));
out:
    return status;
}

tol_status kn_ring_all_gather(struct kn_collective *c, const struct kn_collective_part *parts,
                              size_t count, enum kn_type type) {
    tol_status status = TOL_OK;
    TOL_TRY(kn_collective_meet(c, 0));
    for (unsigned step = 0; step < c->ranks; step++) {
        for (unsigned rank = 0; rank < c->ranks; rank++) {
            /* First each rank's own, then what the rank before it got in the step before. */
            const unsigned which = (rank + c->ranks - step) % c->ranks;
            struct collective_direct x = {.count = 0};
            fill_copy(c, parts, rank, (struct kn_chunk){which * count, count}, type, &x);
            if (step == 0) x.sources[0] = parts[rank].in.address;
            TOL_TRY(collective_ways_take_step(c, rank, step + 1, type, &x));
        }
    }
    TOL_TRY(kn_collective_meet(c, c->ranks + 1));
out:
    return status;
}

/* Pieces follow each other from rank to rank, so that all links are busy but at the ends. */
tol_status kn_ring_broadcast(struct kn_collective *c, const struct kn_collective_part *parts,
                             unsigned root, size_t count, enum kn_type type) {
    enum { PIECES = 16 };
    tol_status status = TOL_OK;
    const size_t align = 16 / kn_type_bytes(type);
    const size_t each = ((count + PIECES - 1) / PIECES + align - 1) / align * align;
    TOL_TRY(kn_collective_meet(c, 0));
    for (unsigned step = 0; step < PIECES + c->ranks - 1; step++) {
        for (unsigned behind = 0; behind < c->ranks; behind++) {
            const unsigned rank = (root + behind) % c->ranks;
            const size_t first = step >= behind ? (step - behind) * each : count;
            struct collective_direct x = {.count = 0};
            if (first < count && step - behind < PIECES) {
                const size_t left = count - first;
                fill_copy(c, parts, rank, (struct kn_chunk){first, left < each ? left : each}, type,
                          &x);
                if (behind == 0) x.sources[0] = collective_ways_at(parts[root].in, first, type);
            }
            TOL_TRY(collective_ways_take_step(c, rank, step + 1, type, &x));
        }
    }
    TOL_TRY(kn_collective_meet(c, PIECES + c->ranks));
out:
    return status;
}

/* ---- flags ---- */

/* The slot of a sender in the inbox of a rank, of the current epoch. */
static CUdeviceptr collective_ways_slot(const struct kn_collective *c, unsigned rank,
                                        unsigned sender) {
    const size_t index = (size_t)(c->epoch % 2) * c->ranks + sender;
    assert(rank < c->ranks && sender < c->ranks && c->epoch > 0);
    return c->rank[rank].inbox_address + index * kn_collective_slot_bytes(c);
}

size_t kn_collective_flags_bytes(unsigned ranks) {
    return KN_COLLECTIVE_FLAGS_SENT / (ranks - 1) / 256 * 256;
}

/* After the last number the streams empty the inboxes, where a line of 2^32 calls ago could have a
 * number that comes again, between two meetings: nobody sends meanwhile. They hold 0 then. */
tol_status kn_collective_next_number(struct kn_collective *c) {
    tol_status status = TOL_OK;
    if (c->epoch < UINT32_MAX) {
        c->epoch++;
        return TOL_OK;
    }
    TOL_TRY(kn_collective_meet(c, 0));
    for (unsigned i = 0; i < c->ranks; i++) {
        const struct kn_collective_rank *r = &c->rank[i];
        if (!kn_collective_is_here(c, i)) continue;
        TOL_TRY(tol_context_bind(r->context));
        TOL_CU(tol_context_functions(r->context), cuMemsetD8Async,
               (r->inbox_address, 0, kn_collective_inbox_bytes(c), tol_stream_handle(r->stream)),
               "the inbox of rank %u", i);
    }
    TOL_TRY(kn_collective_meet(c, 1));
    if (c->link != NULL) kn_link_settle(c);
    c->epoch = 1;
out:
    return status;
}

/* Launches a kernel for each rank that is here; x has what is the same for all. Strides are from
 * the place of a rank's part in `in` or `out` to that of the next. */
static tol_status collective_ways_go_by_flags(struct kn_collective *c,
                                              const struct kn_collective_part *parts,
                                              enum kn_collective_flags which,
                                              struct collective_flags x) {
    tol_status status = TOL_OK;
    TOL_TRY(kn_collective_next_number(c));
    x.slot_bytes = kn_collective_slot_bytes(c);
    x.patience_ns = (uint64_t)c->patience_ms * 1000000u;
    x.ranks = c->ranks;
    x.epoch = c->epoch;
    const struct tol_launch_shape shape = tol_launch_linear(
        (x.bytes + COLLECTIVE_LINE_BYTES - 1) / COLLECTIVE_LINE_BYTES, COLLECTIVE_THREADS);
    for (unsigned i = 0; i < c->ranks; i++) {
        const unsigned rank = kn_collective_turn(c, i);
        const struct kn_collective_rank *r = &c->rank[rank];
        if (!kn_collective_is_here(c, rank)) continue;
        x.rank = rank;
        x.in = parts[rank].in.address;
        x.out = parts[rank].out.address;
        x.inbox = collective_ways_slot(c, rank, 0);
        x.status = (CUdeviceptr)(uintptr_t)r->status;
        for (unsigned j = 0; j < c->ranks; j++) x.outboxes[j] = collective_ways_slot(c, j, rank);
        TOL_TRY(tol_launch_programmatic(
            r->stream, r->flags[which], shape,
            (struct tol_arguments){1, (void *[]){&x}, (const unsigned[]){sizeof x}}));
    }
out:
    return status;
}

tol_status kn_flags_all_reduce(struct kn_collective *c, const struct kn_collective_part *parts,
                               size_t count, enum kn_type type) {
    return collective_ways_go_by_flags(
        c, parts, (enum kn_collective_flags)type,
        (struct collective_flags){.bytes = count * kn_type_bytes(type)});
}

tol_status kn_flags_reduce_scatter(struct kn_collective *c, const struct kn_collective_part *parts,
                                   size_t count, enum kn_type type) {
    const size_t bytes = count * kn_type_bytes(type);
    return collective_ways_go_by_flags(
        c, parts, (enum kn_collective_flags)type,
        (struct collective_flags){.bytes = bytes, .in_stride = bytes});
}

tol_status kn_flags_all_gather(struct kn_collective *c, const struct kn_collective_part *parts,
                               size_t count, enum kn_type type) {
    const size_t bytes = count * kn_type_bytes(type);
    return collective_ways_go_by_flags(c, parts, KN_FLAGS_COPY,
                                       (struct collective_flags){.bytes = bytes,
                                                                 .out_stride = bytes,
                                                                 .senders = (1u << c->ranks) - 1});
}

tol_status kn_flags_broadcast(struct kn_collective *c, const struct kn_collective_part *parts,
                              unsigned root, size_t count, enum kn_type type) {
    return collective_ways_go_by_flags(
        c, parts, KN_FLAGS_COPY,
        (struct collective_flags){.bytes = count * kn_type_bytes(type), .senders = 1u << root});
}
