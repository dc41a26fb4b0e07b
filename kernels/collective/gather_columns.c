/*
 * The host's side of gathering columns.
 */
#include "collective/gather_columns.h"

#include "collective/collective_state.h"
#include "core/check.h"

enum { LINES_MAX = KN_COLLECTIVE_FLAGS_BYTES / COLLECTIVE_LINE_BYTES };

static tol_status gather_columns_check_bytes(const char *which, unsigned rank,
                                             struct kn_place place, size_t rows, size_t stride,
                                             size_t row) {
    tol_status status = TOL_OK;
    TOL_CHECK(place.address != 0 && place.address % COLLECTIVE_LINE_BYTES == 0 &&
                  stride % COLLECTIVE_LINE_BYTES == 0 && stride >= row,
              TOL_INVALID_ARGUMENT,
              "gather columns: %s of rank %u is at %#llx, with rows of %zu bytes and %zu from row "
              "to row",
              which, rank, (unsigned long long)place.address, row, stride);
    TOL_CHECK(row <= place.bytes && (rows - 1) <= (place.bytes - row) / stride, TOL_OUT_OF_RANGE,
              "gather columns: %s of rank %u has %zu bytes, and %zu rows of %zu are needed", which,
              rank, place.bytes, rows, stride);
out:
    return status;
}

static tol_status gather_columns_check_part(const struct kn_collective *c, unsigned rank,
                                            const struct kn_columns_part *part,
                                            const struct kn_columns *x) {
    tol_status status = TOL_OK;
    const size_t own = rank * x->part_bytes;
    TOL_CHECK(part->stream != NULL, TOL_INVALID_ARGUMENT, "gather columns: rank %u has no stream",
              rank);
    TOL_CHECK(tol_stream_context(part->stream) == c->rank[rank].context, TOL_WRONG_CONTEXT,
              "gather columns: the stream of rank %u is of another context", rank);
    TOL_TRY(
        gather_columns_check_bytes("in", rank, part->in, x->rows, part->in_stride, x->part_bytes));
    TOL_TRY(gather_columns_check_bytes("out", rank, part->out, x->rows, x->stride,
                                       c->ranks * x->part_bytes));
    const bool in_place =
        part->in.address == part->out.address + own && part->in_stride == x->stride;
    TOL_CHECK(in_place ||
                  !kn_place_overlap(part->in, (x->rows - 1) * part->in_stride + x->part_bytes,
                                    part->out, x->rows * x->stride),
              TOL_INVALID_ARGUMENT, "gather columns: in and out of rank %u overlap", rank);
    TOL_CHECK(!c->is_captured || part->number.address != 0, TOL_INVALID_ARGUMENT,
              "gather columns: rank %u has no number in a capture", rank);
out:
    return status;
}

static tol_status gather_columns_check(struct kn_collective *c, const struct kn_columns_part *parts,
                                       const struct kn_columns *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(c != NULL && parts != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "gather columns: an argument is NULL");
    TOL_CHECK(c->link == NULL, TOL_UNSUPPORTED,
              "gather columns: the ranks are processes, and must be devices of one");
    TOL_CHECK(!c->is_broken, TOL_POISONED,
              "gather columns: the collective failed before: destroy it and create another");
    if (x->rows == 0 || x->part_bytes == 0) return TOL_OK;
    TOL_CHECK(x->part_bytes % COLLECTIVE_LINE_BYTES == 0 && x->part_bytes <= SIZE_MAX / 16 &&
                  x->rows <= SIZE_MAX / 16 / x->part_bytes,
              TOL_INVALID_ARGUMENT,
              "gather columns: %zu rows of %zu bytes per rank; in multiples of 8", x->rows,
              x->part_bytes);
    for (unsigned i = 0; i < c->ranks; i++) TOL_TRY(gather_columns_check_part(c, i, &parts[i], x));
    for (unsigned i = 0; i < c->ranks; i++) c->rank[i].stream = parts[i].stream;
out:
    return status;
}

static struct collective_columns gather_columns_arguments_of(const struct kn_collective *c,
                                                             unsigned rank,
                                                             const struct kn_columns_part *part,
                                                             const struct kn_columns *x) {
    return (struct collective_columns){.in = part->in.address,
                                       .in_stride = part->in_stride,
                                       .out_stride = x->stride,
                                       .part_bytes = x->part_bytes,
                                       .rank = rank,
                                       .ranks = c->ranks};
}

static tol_status gather_columns_launch(const struct kn_collective_rank *r,
                                        const struct tol_kernel *kernel, uint64_t threads,
                                        struct collective_columns *x) {
    const struct tol_launch_shape shape = tol_launch_linear(threads, COLLECTIVE_THREADS);
    const struct tol_arguments arguments = {1, (void *[]){x}, (const unsigned[]){sizeof *x}};
    return kernel == r->columns[2] ? tol_launch_programmatic(r->stream, kernel, shape, arguments)
                                   : tol_launch(r->stream, kernel, shape, arguments);
}

static tol_status gather_columns_go_direct(struct kn_collective *c,
                                           const struct kn_columns_part *parts,
                                           const struct kn_columns *columns) {
    tol_status status = TOL_OK;
    TOL_TRY(kn_collective_meet(c, 0));
    for (unsigned rank = 0; rank < c->ranks; rank++) {
        const struct kn_collective_rank *r = &c->rank[rank];
        struct collective_columns x = gather_columns_arguments_of(c, rank, &parts[rank], columns);
        CUdeviceptr bits = x.in | x.in_stride | x.out_stride | x.part_bytes;
        for (unsigned i = 0; i < c->ranks; i++) {
            x.out[i] = parts[i].out.address + rank * columns->part_bytes;
            bits |= x.out[i];
        }
        x.is_wide = bits % 16 == 0;
        x.row = columns->part_bytes / (x.is_wide != 0 ? 16 : 8);
        x.count = columns->rows * x.row;
        const uint64_t most = (uint64_t)r->blocks * COLLECTIVE_THREADS;
        TOL_TRY(gather_columns_launch(r, r->columns[0], x.count < most ? x.count : most, &x));
    }
    TOL_TRY(kn_collective_meet(c, 1));
out:
    return status;
}

static tol_status gather_columns_next_number(struct kn_collective *c, unsigned *number) {
    tol_status status = TOL_OK;
    if (c->is_captured) {
        *number = c->captured++;
    } else {
        status = kn_columns_take(c, 1, number);
    }
    return status;
}

static tol_status gather_columns_go_by_flags(struct kn_collective *c,
                                             const struct kn_columns_part *parts,
                                             const struct kn_columns *columns) {
    tol_status status = TOL_OK;
    const size_t row = columns->part_bytes / COLLECTIVE_LINE_BYTES, lines = columns->rows * row;
    for (size_t first = 0; first < lines; first += LINES_MAX) {
        unsigned number = 0;
        TOL_TRY(gather_columns_next_number(c, &number));
        for (unsigned rank = 0; rank < c->ranks; rank++) {
            const struct kn_collective_rank *r = &c->rank[rank];
            struct collective_columns x =
                gather_columns_arguments_of(c, rank, &parts[rank], columns);
            x.out[0] = parts[rank].out.address;
            x.inboxes = tol_buffer_address(r->inbox);
            for (unsigned i = 0; i < c->ranks; i++) {
                x.outboxes[i] =
                    tol_buffer_address(c->rank[i].inbox) + rank * kn_collective_slot_bytes(c);
            }
            x.status = (CUdeviceptr)(uintptr_t)r->status;
            x.epoch_at = c->is_captured ? parts[rank].number.address : 0;
            x.epoch = number;
            x.first = first;
            x.count = lines - first < LINES_MAX ? lines - first : LINES_MAX;
            x.row = row;
            x.slot_bytes = kn_collective_slot_bytes(c);
            x.patience_ns = (uint64_t)c->patience_ms * 1000000u;
            TOL_TRY(
                gather_columns_launch(r, r->columns[r->columns[2] != NULL ? 2 : 1], x.count, &x));
        }
    }
out:
    return status;
}

tol_status kn_gather_columns(struct kn_collective *c, const struct kn_columns_part *parts,
                             const struct kn_columns *x) {
    tol_status status = TOL_OK;
    TOL_TRY(gather_columns_check(c, parts, x));
    if (x->rows == 0 || x->part_bytes == 0) return TOL_OK;
    const bool are_few = x->rows <= KN_COLLECTIVE_FLAGS_BYTES / x->part_bytes;
    const bool flags = c->has_flags && (c->is_captured || are_few);
    status =
        flags ? gather_columns_go_by_flags(c, parts, x) : gather_columns_go_direct(c, parts, x);
out:
    return status;
}

/* ---- numbers ---- */

bool kn_columns_can_capture(const struct kn_collective *c) {
    return c->has_flags;
}

tol_status kn_columns_capture_begin(struct kn_collective *c) {
    tol_status status = TOL_OK;
    TOL_CHECK(c->has_flags, TOL_UNSUPPORTED, "gathers of a collective without flags in a capture");
    c->is_captured = true;
    c->captured = 0;
out:
    return status;
}

unsigned kn_columns_capture_end(struct kn_collective *c) {
    c->is_captured = false;
    return c->captured;
}

/* An inbox could still have a line of 2^32 calls ago, with the number that comes again. */
static tol_status begin_again(struct kn_collective *c) {
    tol_status status = TOL_OK;
    TOL_TRY(kn_collective_wait(c, TOL_DEADLINE_MS));
    for (unsigned i = 0; i < c->ranks; i++) {
        struct tol_buffer *inbox = c->rank[i].inbox;
        TOL_TRY(tol_buffer_fill_at(inbox, 0, 0, 1, tol_buffer_bytes(inbox)));
    }
    c->epoch = 0;
out:
    return status;
}

tol_status kn_columns_take(struct kn_collective *c, unsigned numbers, unsigned *first) {
    tol_status status = TOL_OK;
    if (UINT32_MAX - c->epoch < numbers) TOL_TRY(begin_again(c));
    *first = c->epoch + 1;
    c->epoch += numbers;
out:
    return status;
}
