/*
 * rope: both pairings against the definition and against numbers worked out by hand.
 */
#include "row/rope.h"
#include "row/row_stage_test.h"

#include <math.h>
#include <stdlib.h>

TestSuite(rope, .fini = test_end);

static struct tol_buffer *positions_of(const int *positions, size_t count) {
    struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(test_context(), count, sizeof(int), &buffer));
    MUST(tol_buffer_write(buffer, positions, count * sizeof(int)));
    return buffer;
}

/* The angle is a float of up to 4096, so off by 2^-12 of a turn's radian at most. */
static void run(struct row_stage *stage, enum kn_type type, enum kn_rope_pairs pairs, size_t heads,
                size_t head_size, size_t rotated, bool in_place) {
    enum { ROWS = 5 };
    static const int positions[ROWS] = {0, 1, 17, 1000, 4095};
    const size_t columns = heads * head_size;
    struct row_matrix in = row_matrix_make(type, ROWS, columns, 3, 1);
    struct row_matrix out = row_matrix_make(type, ROWS, columns, 1, 2);
    tol_auto_buffer struct tol_buffer *buffer = positions_of(positions, ROWS);
    double *oracle = malloc(ROWS * columns * sizeof *oracle);
    cr_assert(oracle != NULL);
    row_draw(stage, &in, KN_NORMAL, 1);
    const struct kn_rope rope = {.type = type,
                                 .pairs = pairs,
                                 .rows = ROWS,
                                 .heads = heads,
                                 .head_size = head_size,
                                 .rotated = rotated,
                                 .in = row_matrix_rows(&in),
                                 .out = row_matrix_rows(in_place ? &in : &out),
                                 .positions = {buffer, 0, 0},
                                 .base = heads == 2 ? 500000.0f : 0};
    MUST(kn_rope(stage->kernels, stage->stream, &rope));
    for (size_t r = 0; r < ROWS; r++) {
        kn_rope_oracle(&rope, in.values + r * columns, positions[r], oracle + r * columns);
    }
    const struct kn_tolerance tolerance = {5 * 4096 * 0x1p-23, kn_type_roundoff(type)};
    const struct kn_deviation deviation =
        row_compare(stage, in_place ? &in : &out, oracle, tolerance, NULL);
    char text[400];
    cr_assert(deviation.failed == 0, "%s, %zu heads of %zu, %zu rotated: %s", kn_type_name(type),
              heads, head_size, rotated, kn_deviation_text(&deviation, text, sizeof text));
    row_matrix_end(&in);
    row_matrix_end(&out);
    free(oracle);
}

Test(rope, both_pairings_are_the_definition) {
    struct row_stage stage = row_stage_begin(1);
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (enum kn_rope_pairs pairs = 0; pairs <= KN_ROPE_HALVES; pairs++) {
            run(&stage, type, pairs, 3, 64, 0, false);
            run(&stage, type, pairs, 2, 80, 20, false);
            run(&stage, type, pairs, 1, 2, 2, true);
            run(&stage, type, pairs, 5, 7, 4, true);
        }
    }
    row_stage_end(&stage);
}

/* Position 1 turns the first pair by one radian: (1, 0) becomes (cos 1, sin 1). */
Test(rope, the_first_pair_turns_by_a_radian_a_position) {
    static const float values[8] = {1, 0, 0, 0, 0, 0, 0, 0};
    const int position = 1;
    float got[8];
    struct row_stage stage = row_stage_begin(2);
    tol_auto_buffer struct tol_buffer *buffer = positions_of(&position, 1);
    for (int halves = 0; halves <= 1; halves++) {
        struct row_matrix in = row_matrix_make(KN_F32, 1, 8, 0, 0);
        row_fill(&in, values);
        MUST(kn_rope(stage.kernels, stage.stream,
                     &(struct kn_rope){.pairs = halves ? KN_ROPE_HALVES : KN_ROPE_NEIGHBOURS,
                                       .rows = 1,
                                       .heads = 1,
                                       .head_size = 8,
                                       .in = row_matrix_rows(&in),
                                       .out = row_matrix_rows(&in),
                                       .positions = {buffer, 0, 0}}));
        MUST(tol_stream_synchronize(stage.stream));
        MUST(kn_guarded_read(&in.guarded, got));
        for (int i = 0; i < 8; i++) {
            const double expected = i == 0 ? 0.5403023 : i == (halves ? 4 : 1) ? 0.8414710 : 0;
            cr_assert(!(fabs((double)got[i] - expected) > 1e-6), "element %d is %g", i,
                      (double)got[i]);
        }
        row_matrix_end(&in);
    }
    row_stage_end(&stage);
}

Test(rope, what_cannot_be_is_refused) {
    struct row_stage stage = row_stage_begin(3);
    tol_auto_buffer struct tol_buffer *buffer = NULL, *other = NULL, *positions = NULL;
    MUST(tol_buffer_create(test_context(), 128, 4, &buffer));
    MUST(tol_buffer_create(test_context(), 128, 4, &other));
    positions = positions_of((int[]){1, 2}, 2);
    const struct kn_rope good = {.rows = 2,
                                 .heads = 1,
                                 .head_size = 64,
                                 .in = {buffer, 0, 0},
                                 .out = {other, 0, 0},
                                 .positions = {positions, 0, 0}};
    struct kn_rope bad = good;
#define REFUSED(expected, text)                                                                    \
    do {                                                                                           \
        MUST_FAIL(kn_rope(stage.kernels, stage.stream, &bad), expected, text);                     \
        bad = good;                                                                                \
    } while (0)
    MUST(tol_buffer_fill_at(buffer, 0, 0, 4, 128));
    MUST(kn_rope(stage.kernels, stage.stream, &good));
    bad.rotated = 5;
    REFUSED(TOL_INVALID_ARGUMENT, "5 elements of a head of 64");
    bad.rotated = 66;
    REFUSED(TOL_INVALID_ARGUMENT, "66 elements");
    bad.head_size = 65;
    REFUSED(TOL_INVALID_ARGUMENT, "65 elements");
    bad.positions.buffer = NULL;
    REFUSED(TOL_INVALID_ARGUMENT, "positions has no buffer");
    bad.positions.offset = 1;
    REFUSED(TOL_OUT_OF_RANGE, "positions");
    bad.base = -1;
    REFUSED(TOL_INVALID_ARGUMENT, "base of -1");
    bad.pairs = (enum kn_rope_pairs)2;
    REFUSED(TOL_INVALID_ARGUMENT, "pairing 2");
    bad.heads = 2;
    REFUSED(TOL_OUT_OF_RANGE, "512 bytes");
    bad.heads = SIZE_MAX / 64;
    REFUSED(TOL_OVER_LIMIT, "heads");
    row_stage_end(&stage);
}
