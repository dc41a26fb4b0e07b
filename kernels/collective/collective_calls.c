/*
 * The calls: what is checked, and the direct way, in which all of them are one kernel with other
 * sources and targets.
 */
#include "collective/collective_state.h"
#include "collective/collective_link.h"
#include "core/check.h"

#include <assert.h>
#include <string.h>

/* ---- checks ---- */

struct call {
    char name[KN_LINK_NAME];
    size_t in_count, out_count; /* elements of a rank's in and out */
    unsigned root;              /* whose in alone is used; UINT32_MAX: all are */
};

static tol_status collective_calls_check_place(const struct call *call, const char *which,
                                               unsigned rank, struct kn_place place, size_t count,
                                               enum kn_type type) {
    tol_status status = TOL_OK;
    const size_t element = kn_type_bytes(type);
    if (count == 0) return TOL_OK;
    TOL_CHECK(place.address != 0 && place.address % element == 0, TOL_INVALID_ARGUMENT,
              "%s: %s of rank %u is at %#llx, which is no address of a %s", call->name, which, rank,
              (unsigned long long)place.address, kn_type_name(type));
    TOL_CHECK(count <= place.bytes / element, TOL_OUT_OF_RANGE,
              "%s: %s of rank %u has %zu bytes, and %zu elements of %zu are needed", call->name,
              which, rank, place.bytes, count, element);
out:
    return status;
}

/* Whether in is where out may have it: the same place, or this rank's chunk of it. */
static bool may_share(const struct call *call, const struct kn_collective_part *part, unsigned rank,
                      enum kn_type type) {
    if (call->in_count == call->out_count) return part->in.address == part->out.address;
    return call->in_count < call->out_count &&
           part->in.address == part->out.address + rank * call->in_count * kn_type_bytes(type);
}

static tol_status collective_calls_check_part(const struct kn_collective *c,
                                              const struct call *call, unsigned rank,
                                              const struct kn_collective_part *part,
                                              enum kn_type type) {
    tol_status status = TOL_OK;
    const size_t element = kn_type_bytes(type);
    TOL_CHECK(part->stream != NULL, TOL_INVALID_ARGUMENT, "%s: rank %u has no stream", call->name,
              rank);
    TOL_CHECK(tol_stream_context(part->stream) == c->rank[rank].context, TOL_WRONG_CONTEXT,
              "%s: the stream of rank %u is of another context", call->name, rank);
    TOL_TRY(collective_calls_check_place(call, "out", rank, part->out, call->out_count, type));
    /* In other processes in of the root is where each rank says its own is. */
    if (call->root != UINT32_MAX && call->root != rank && c->link == NULL) return TOL_OK;
    TOL_TRY(collective_calls_check_place(call, "in", rank, part->in, call->in_count, type));
    TOL_CHECK(!kn_place_overlap(part->in, call->in_count * element, part->out,
                                call->out_count * element) ||
                  may_share(call, part, rank, type),
              TOL_INVALID_ARGUMENT, "%s: in and out of rank %u overlap", call->name, rank);
out:
    return status;
}

/* Where the same place is in the window of a rank. */
static struct kn_place collective_calls_mirror(const struct kn_collective *c, struct kn_place place,
                                               unsigned rank) {
    const struct kn_window *windows = c->link->windows;
    return (struct kn_place){place.address - windows[c->local].address + windows[rank].address,
                             place.bytes};
}

static tol_status check_shared(const struct kn_collective *c, const struct call *call,
                               const char *which, struct kn_place place, size_t count,
                               enum kn_type type) {
    tol_status status = TOL_OK;
    const CUdeviceptr base = c->link->windows[c->local].address;
    const size_t bytes = count * kn_type_bytes(type), all = c->link->bytes;
    TOL_CHECK(place.address >= base && bytes <= all && place.address - base <= all - bytes,
              TOL_INVALID_ARGUMENT,
              "%s: %s of rank %u must be in the memory that the ranks share "
              "(kn_collective_memory)",
              call->name, which, c->local);
out:
    return status;
}

/* The parts of all ranks from that of this process: what others use is at the same place of their
 * memory. And what others compare this call with. */
static tol_status collective_calls_spread(struct kn_collective *c, const struct call *call,
                                          const struct kn_collective_part *own, size_t count,
                                          enum kn_type type, struct kn_collective_part *all) {
    tol_status status = TOL_OK;
    const bool has_in = call->in_count >= call->out_count,
               has_out = call->out_count >= call->in_count;
    const CUdeviceptr base = c->link->windows[c->local].address;
    struct kn_link_call noted = {.count = count,
                                 .in = has_in ? own->in.address - base : UINT64_MAX,
                                 .out = has_out ? own->out.address - base : UINT64_MAX,
                                 .type = type,
                                 .root = call->root};
    if (has_in) TOL_TRY(check_shared(c, call, "in", own->in, call->in_count, type));
    if (has_out) TOL_TRY(check_shared(c, call, "out", own->out, call->out_count, type));
    for (unsigned i = 0; i < c->ranks; i++) {
        all[i] = (struct kn_collective_part){.in = own->in, .out = own->out, .stream = own->stream};
        if (has_in) all[i].in = collective_calls_mirror(c, own->in, i);
        if (has_out) all[i].out = collective_calls_mirror(c, own->out, i);
    }
    memcpy(noted.name, call->name, sizeof noted.name);
    kn_link_begin(c->link, &noted);
out:
    return status;
}

/* Everything that can be refused is, before anything is queued. *parts become those of all ranks,
 * in `all` if there are others than this process has. */
static tol_status collective_calls_check(struct kn_collective *c, const struct call *call,
                                         const struct kn_collective_part **given, size_t count,
                                         enum kn_type type, struct kn_collective_part *all) {
    tol_status status = TOL_OK;
    const struct kn_collective_part *parts = *given;
    TOL_CHECK(c != NULL && parts != NULL, TOL_INVALID_ARGUMENT, "%s: an argument is NULL",
              call->name);
    TOL_CHECK((unsigned)type < KN_TYPES, TOL_INVALID_ARGUMENT, "%s: there is no type %d",
              call->name, (int)type);
    TOL_CHECK(!c->is_broken, TOL_POISONED,
              "%s: the collective failed before: destroy it and create another", call->name);
    TOL_CHECK(call->in_count <= SIZE_MAX / 8 && call->out_count <= SIZE_MAX / 8, TOL_OUT_OF_RANGE,
              "%s: that number of elements overflows a size", call->name);
    if (c->link != NULL) {
        TOL_TRY(collective_calls_check_part(c, call, c->local, &parts[0], type));
        if (count > 0) TOL_TRY(collective_calls_spread(c, call, &parts[0], count, type, all));
        c->rank[c->local].stream = parts[0].stream;
        *given = all;
        return TOL_OK;
    }
    for (unsigned i = 0; i < c->ranks; i++)
        TOL_TRY(collective_calls_check_part(c, call, i, &parts[i], type));
    for (unsigned i = 0; i < c->ranks; i++) c->rank[i].stream = parts[i].stream;
out:
    return status;
}

/* The product of ranks and count, or a number that check refuses. */
static size_t all_of(const struct kn_collective *c, size_t count) {
    return c == NULL || count > SIZE_MAX / KN_COLLECTIVE_RANKS_MAX ? SIZE_MAX : c->ranks * count;
}

/* ---- the direct way ---- */

/* A chunk of as many as `owners` have; all but the last begin and end at 16 bytes. */
static struct kn_chunk chunk_of(unsigned owner, unsigned owners, size_t count, enum kn_type type) {
    const size_t piece = 16 / kn_type_bytes(type);
    const size_t each = ((count + owners - 1) / owners + piece - 1) / piece * piece;
    const size_t first = owner * each < count ? owner * each : count;
    assert(owner < owners && each * owners >= count);
    return (struct kn_chunk){first, count - first < each ? count - first : each};
}

struct kn_chunk kn_collective_chunk(const struct kn_collective *c, unsigned rank, size_t count,
                                    enum kn_type type) {
    return chunk_of(rank, c->ranks, count, type);
}

/* Says whether addresses are wide, and how many threads there are, at least a block's. */
static struct tol_launch_shape collective_calls_shape_of(const struct kn_collective_rank *r,
                                                         enum kn_type type,
                                                         struct collective_direct *x) {
    CUdeviceptr bits = 0;
    for (unsigned i = 0; i < x->source_count; i++) bits |= x->sources[i];
    for (unsigned i = 0; i < x->target_count; i++) bits |= x->targets[i];
    x->is_wide = bits % 16 == 0;
    const uint64_t units = x->is_wide != 0 ? x->count * kn_type_bytes(type) / 16 + 1 : x->count;
    uint64_t blocks = (units + COLLECTIVE_THREADS - 1) / COLLECTIVE_THREADS;
    if (blocks > r->blocks) blocks = r->blocks;
    return tol_launch_linear((blocks > 0 ? blocks : 1) * COLLECTIVE_THREADS, COLLECTIVE_THREADS);
}

tol_status kn_collective_launch(struct kn_collective *c, unsigned rank, enum kn_type type,
                                struct collective_direct *x) {
    const struct kn_collective_rank *r = &c->rank[rank];
    if (x->count == 0 || !kn_collective_is_here(c, rank)) return TOL_OK;
    const struct tol_launch_shape shape = collective_calls_shape_of(r, type, x);
    return tol_launch(r->stream, r->direct[type], shape,
                      (struct tol_arguments){1, (void *[]){x}, (const unsigned[]){sizeof *x}});
}

/* The same with the meetings inside. A rank with nothing to move meets the others too. */
static tol_status collective_calls_launch_met(struct kn_collective *c, unsigned rank,
                                              enum kn_type type,
                                              const struct collective_direct *direct) {
    const struct kn_collective_rank *r = &c->rank[rank];
    struct collective_met x = {.direct = *direct,
                               .status = (CUdeviceptr)(uintptr_t)r->status,
                               .patience_ns = (uint64_t)c->patience_ms * 1000000u,
                               .rank = rank,
                               .ranks = c->ranks,
                               .epoch = c->epoch};
    if (!kn_collective_is_here(c, rank)) return TOL_OK;
    for (unsigned i = 0; i < c->ranks; i++) x.words[i] = kn_collective_words(c, i);
    const struct tol_launch_shape shape = collective_calls_shape_of(r, type, &x.direct);
    return tol_launch_programmatic(
        r->stream, r->met[type], shape,
        (struct tol_arguments){1, (void *[]){&x}, (const unsigned[]){sizeof x}});
}

/* What every rank launches, between two meetings, or with them inside. */
typedef void fill_rank(const struct kn_collective *c, const struct kn_collective_part *parts,
                       unsigned rank, size_t count, enum kn_type type, unsigned root,
                       struct collective_direct *x);

static tol_status collective_calls_go_direct(struct kn_collective *c,
                                             const struct kn_collective_part *parts, size_t count,
                                             enum kn_type type, unsigned root, fill_rank *fill) {
    tol_status status = TOL_OK;
    const bool meets_inside = c->has_flags && count <= c->met_bytes / kn_type_bytes(type);
    TOL_TRY(meets_inside ? kn_collective_next_number(c) : kn_collective_meet(c, 0));
    for (unsigned i = 0; i < c->ranks; i++) {
        struct collective_direct x = {.count = 0};
        const unsigned rank = meets_inside ? kn_collective_turn(c, i) : i;
        fill(c, parts, rank, count, type, root, &x);
        TOL_TRY(meets_inside ? collective_calls_launch_met(c, rank, type, &x)
                             : kn_collective_launch(c, rank, type, &x));
    }
    if (!meets_inside) TOL_TRY(kn_collective_meet(c, 1));
out:
    return status;
}

static CUdeviceptr collective_calls_at(struct kn_place place, size_t element, enum kn_type type) {
    return place.address + element * kn_type_bytes(type);
}

static void fill_all_reduce(const struct kn_collective *c, const struct kn_collective_part *parts,
                            unsigned rank, size_t count, enum kn_type type, unsigned root,
                            struct collective_direct *x) {
    const struct kn_chunk chunk = kn_collective_chunk(c, rank, count, type);
    (void)root;
    x->count = chunk.count;
    x->source_count = x->target_count = c->ranks;
    for (unsigned i = 0; i < c->ranks; i++) {
        x->sources[i] = collective_calls_at(parts[i].in, chunk.first, type);
        x->targets[i] = collective_calls_at(parts[i].out, chunk.first, type);
    }
}

static void fill_reduce_scatter(const struct kn_collective *c,
                                const struct kn_collective_part *parts, unsigned rank, size_t count,
                                enum kn_type type, unsigned root, struct collective_direct *x) {
    (void)root;
    x->count = count;
    x->source_count = c->ranks;
    x->target_count = 1;
    for (unsigned i = 0; i < c->ranks; i++)
        x->sources[i] = collective_calls_at(parts[i].in, rank * count, type);
    x->targets[0] = parts[rank].out.address;
}

static void fill_all_gather(const struct kn_collective *c, const struct kn_collective_part *parts,
                            unsigned rank, size_t count, enum kn_type type, unsigned root,
                            struct collective_direct *x) {
    (void)root;
    x->count = count;
    x->source_count = 1;
    x->target_count = c->ranks;
    x->sources[0] = parts[rank].in.address;
    for (unsigned i = 0; i < c->ranks; i++)
        x->targets[i] = collective_calls_at(parts[i].out, rank * count, type);
}

/* The root's links carry most: each byte that another rank owns leaves it once, and each that it
 * owned would leave it for every other rank. So among more than two ranks it owns none, and copies
 * to its own out. Among two it is the same bytes, and both have half of the work. */
static void fill_broadcast(const struct kn_collective *c, const struct kn_collective_part *parts,
                           unsigned rank, size_t count, enum kn_type type, unsigned root,
                           struct collective_direct *x) {
    const bool root_owns = c->ranks <= 2;
    x->source_count = 1;
    if (rank == root && !root_owns) {
        x->target_count = 1;
        x->sources[0] = parts[root].in.address;
        x->targets[0] = parts[root].out.address;
        x->count = x->sources[0] == x->targets[0] ? 0 : count; /* others read it meanwhile */
        return;
    }
    const unsigned owner = root_owns || rank < root ? rank : rank - 1;
    const struct kn_chunk chunk = chunk_of(owner, root_owns ? c->ranks : c->ranks - 1, count, type);
    x->count = chunk.count;
    x->sources[0] = collective_calls_at(parts[root].in, chunk.first, type);
    for (unsigned i = 0; i < c->ranks; i++) {
        if (i == root && !root_owns) continue;
        x->targets[x->target_count++] = collective_calls_at(parts[i].out, chunk.first, type);
    }
}

/* ---- the calls ---- */

/* The same for all ranks, since a rank in a kernel by flags waits for kernels of the others. */
static bool fits_flags(const struct kn_collective *c, size_t count, enum kn_type type) {
    return c->has_flags && count <= c->flags_bytes / kn_type_bytes(type);
}

tol_status kn_all_reduce(struct kn_collective *c, const struct kn_collective_part *parts,
                         size_t count, enum kn_type type) {
    tol_status status = TOL_OK;
    struct kn_collective_part all[KN_COLLECTIVE_RANKS_MAX];
    const struct call call = {"kn_all_reduce", count, count, UINT32_MAX};
    TOL_TRY(collective_calls_check(c, &call, &parts, count, type, all));
    if (count == 0) return TOL_OK;
    if (c->way == KN_WAY_RING) return kn_ring_all_reduce(c, parts, count, type);
    if (fits_flags(c, count, type)) return kn_flags_all_reduce(c, parts, count, type);
    status = collective_calls_go_direct(c, parts, count, type, 0, fill_all_reduce);
out:
    return status;
}

tol_status kn_reduce_scatter(struct kn_collective *c, const struct kn_collective_part *parts,
                             size_t count, enum kn_type type) {
    tol_status status = TOL_OK;
    struct kn_collective_part all[KN_COLLECTIVE_RANKS_MAX];
    const struct call call = {"kn_reduce_scatter", all_of(c, count), count, UINT32_MAX};
    TOL_TRY(collective_calls_check(c, &call, &parts, count, type, all));
    if (count == 0) return TOL_OK;
    if (fits_flags(c, count, type)) return kn_flags_reduce_scatter(c, parts, count, type);
    status = collective_calls_go_direct(c, parts, count, type, 0, fill_reduce_scatter);
out:
    return status;
}

tol_status kn_all_gather(struct kn_collective *c, const struct kn_collective_part *parts,
                         size_t count, enum kn_type type) {
    tol_status status = TOL_OK;
    struct kn_collective_part all[KN_COLLECTIVE_RANKS_MAX];
    const struct call call = {"kn_all_gather", count, all_of(c, count), UINT32_MAX};
    TOL_TRY(collective_calls_check(c, &call, &parts, count, type, all));
    if (count == 0) return TOL_OK;
    if (c->way == KN_WAY_RING) return kn_ring_all_gather(c, parts, count, type);
    if (fits_flags(c, count, type)) return kn_flags_all_gather(c, parts, count, type);
    status = collective_calls_go_direct(c, parts, count, type, 0, fill_all_gather);
out:
    return status;
}

tol_status kn_broadcast(struct kn_collective *c, const struct kn_collective_part *parts,
                        unsigned root, size_t count, enum kn_type type) {
    tol_status status = TOL_OK;
    struct kn_collective_part all[KN_COLLECTIVE_RANKS_MAX];
    const struct call call = {"kn_broadcast", count, count, root};
    TOL_CHECK(c != NULL && root < c->ranks, TOL_INVALID_ARGUMENT, "kn_broadcast: no rank is %u",
              root);
    TOL_TRY(collective_calls_check(c, &call, &parts, count, type, all));
    if (count == 0) return TOL_OK;
    if (c->way == KN_WAY_RING) return kn_ring_broadcast(c, parts, root, count, type);
    if (fits_flags(c, count, type)) return kn_flags_broadcast(c, parts, root, count, type);
    status = collective_calls_go_direct(c, parts, count, type, root, fill_broadcast);
out:
    return status;
}
