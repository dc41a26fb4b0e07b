/*
 * Gathered columns: every byte of every rank's, and none beside; by both ways; and in graphs.
 */
#include "collective/collective_scene.h"
#include "collective/gather_columns.h"

#include <stdlib.h>
#include <string.h>

TestSuite(gather_columns, .timeout = 60);

enum { FILLED = 0x5a };

struct shape {
    size_t rows, part, in_stride, gap; /* gap: of a row of out, after the columns */
    bool in_place;
};

/* A byte that tells its call, rank, row and column. */
static unsigned char byte_of(unsigned call, unsigned rank, size_t row, size_t at) {
    return (unsigned char)(call * 59 + rank * 101 + row * 31 + at * 7 + (at >> 8) * 13);
}

static size_t stride_of(const struct collective_stage *stage, const struct shape *s) {
    return stage->ranks * s->part + s->gap;
}

static void write_columns(struct collective_stage *stage, const struct shape *s, unsigned call,
                          struct kn_columns_part *parts) {
    unsigned char *row = malloc(s->part);
    cr_assert(row != NULL);
    for (unsigned r = 0; r < stage->ranks; r++) {
        const size_t stride = stride_of(stage, s), own = r * s->part;
        const struct tol_buffer *in = s->in_place ? stage->out[r] : stage->in[r];
        const size_t from = s->in_place ? own : 0, step = s->in_place ? stride : s->in_stride;
        MUST(tol_buffer_fill_at(stage->out[r], 0, FILLED, 1, s->rows * stride + 64));
        for (size_t i = 0; i < s->rows; i++) {
            for (size_t at = 0; at < s->part; at++) row[at] = byte_of(call, r, i, at);
            MUST(tol_buffer_write_at((struct tol_buffer *)(uintptr_t)in, from + i * step, row,
                                     s->part));
        }
        parts[r] = (struct kn_columns_part){.in = kn_place_of(in, from),
                                            .in_stride = step,
                                            .out = kn_place_of(stage->out[r], 0),
                                            .stream = stage->streams[r]};
    }
    free(row);
}

static void check_columns(const struct collective_stage *stage, const struct shape *s,
                          unsigned call) {
    const size_t stride = stride_of(stage, s), bytes = s->rows * stride + 64;
    unsigned char *found = malloc(bytes);
    cr_assert(found != NULL);
    for (unsigned r = 0; r < stage->ranks; r++) {
        MUST(tol_buffer_read_at(stage->out[r], 0, found, bytes));
        for (size_t i = 0; i < bytes; i++) {
            const size_t row = i / stride, column = i % stride;
            const bool is_gap = row >= s->rows || column >= stage->ranks * s->part;
            const unsigned char right =
                is_gap ? FILLED
                       : byte_of(call, (unsigned)(column / s->part), row, column % s->part);
            cr_assert(found[i] == right, "rank %u: row %zu, byte %zu is %#x, expected %#x", r, row,
                      column, found[i], right);
        }
    }
    free(found);
}

static void gather(struct collective_stage *stage, const struct shape *s, unsigned call) {
    struct kn_columns_part parts[KN_COLLECTIVE_RANKS_MAX];
    write_columns(stage, s, call, parts);
    MUST(kn_gather_columns(stage->collective, parts,
                           &(struct kn_columns){s->rows, s->part, stride_of(stage, s)}));
    MUST(kn_collective_wait(stage->collective, 20000));
    check_columns(stage, s, call);
}

static const struct shape shapes[] = {
    {1, 8, 8, 0, true},     {1, 16, 16, 0, false},  {3, 24, 40, 8, false},
    {5, 4096, 0, 16, true}, {7, 520, 520, 0, true}, {40, 1040, 1056, 32, false},
};

static void gather_directly(unsigned ranks) {
    struct collective_stage stage;
    stage_begin(&stage, ranks, &(struct kn_collective_options){.way = KN_WAY_DIRECT});
    for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++) gather(&stage, &shapes[i], i);
    stage_end(&stage);
}

Test(gather_columns, directly_two_ranks_have_all_columns) {
    gather_directly(2);
}

Test(gather_columns, directly_five_ranks_have_all_columns) {
    gather_directly(5);
}

/* The last shape takes several launches. */
Test(gather_columns, by_flags_all_ranks_have_all_columns) {
    static const struct shape large = {3, 131072, 0, 8, true};
    struct collective_stage stage;
    setenv("TOLLENS_SOFT_WORKERS", "4", 1);
    stage_begin(&stage, 2, &(struct kn_collective_options){.way = KN_WAY_FLAGS});
    for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++) gather(&stage, &shapes[i], i);
    gather(&stage, &large, 77);
    stage_end(&stage);
}

Test(gather_columns, refuses_what_it_cannot_do) {
    static const struct shape s = {2, 16, 16, 0, false};
    const struct kn_columns columns = {2, 16, 32};
    struct kn_columns_part parts[KN_COLLECTIVE_RANKS_MAX];
    struct collective_stage stage;
    stage_begin(&stage, 2, &(struct kn_collective_options){.way = KN_WAY_DIRECT});
    write_columns(&stage, &s, 1, parts);
    struct kn_collective *c = stage.collective;
    MUST_FAIL(kn_gather_columns(c, parts, &(struct kn_columns){2, 12, 32}), TOL_INVALID_ARGUMENT,
              "in multiples of 8");
    MUST_FAIL(kn_gather_columns(c, parts, &(struct kn_columns){2, 16, 24}), TOL_INVALID_ARGUMENT,
              "out of rank 0");
    parts[1].in.bytes = 31;
    MUST_FAIL(kn_gather_columns(c, parts, &columns), TOL_OUT_OF_RANGE, "in of rank 1");
    parts[1].in.bytes = 32;
    parts[1].in.address = parts[1].out.address;
    MUST_FAIL(kn_gather_columns(c, parts, &columns), TOL_INVALID_ARGUMENT, "overlap");
    parts[1].stream = parts[0].stream;
    MUST_FAIL(kn_gather_columns(c, parts, &columns), TOL_WRONG_CONTEXT, "rank 1");
    MUST_FAIL(kn_columns_capture_begin(c), TOL_UNSUPPORTED, "without flags");
    MUST(kn_gather_columns(c, parts, &(struct kn_columns){0, 16, 32}));
    stage_end(&stage);
}
