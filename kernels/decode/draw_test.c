/*
 * draw: the device's token is the host's for every row; weights are powers of two as a double has
 * them; what is refused.
 */
#include "decode/draw.h"
#include "guarded.h"
#include "inputs.h"
#include "kernel_scene.h"

#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(draw, .fini = kernel_scene_end);

enum { ROWS = 12, LONG = 20011 };

static struct draw_device_row by[ROWS];
static float logits[ROWS * LONG];

static double unit(uint64_t *state) {
    return (double)(kn_random(state) >> 11) * 0x1p-53;
}

/* Parameters of any kind; greedy ones too. */
static void make_row(uint64_t *state, size_t columns, struct draw_device_row *r) {
    const uint64_t kind = kn_random(state);
    *r = (struct draw_device_row){.row = {.scale = 0x1p32 / (log(2) * (0.05 + 1.95 * unit(state))),
                                          .random = kn_random(state),
                                          .penalty = (float)(0.8 + unit(state))}};
    if (kind % 61 == 0) r->row.scale = NAN;
    if (kind & 1) r->row.top_k = 1 + (uint32_t)(kn_random(state) % (kind & 2 ? 40 : columns + 9));
    if (kind & 4) r->row.share = (uint64_t)(unit(state) * 0x1p64);
    if (kind & 8) r->row.least = (uint64_t)(unit(state) * unit(state) * 0x1p40);
    if (kind & 16) r->row.penalised = (uint32_t)(kn_random(state) % (DRAW_TOKENS + 1));
    if (r->row.penalised > columns) r->row.penalised = (uint32_t)columns;
    const uint64_t first = kn_random(state) % columns;
    for (uint32_t i = 0; i < r->row.penalised; i++) { /* different ones, and one outside */
        r->tokens[i] = (uint32_t)((first + i * 7919) % columns);
        if (columns % 7919 == 0 || i % 100 == 99) r->tokens[i] = (uint32_t)(columns + i);
    }
}

/* Logits of row r: as a model's, of few values, all alike, or hardly one that can be drawn. */
static void make_logits(uint64_t *state, size_t r, size_t columns, float *row) {
    for (size_t i = 0; i < columns; i++) {
        const double gauss = unit(state) + unit(state) + unit(state) + unit(state) - 2;
        row[i] = (float)(gauss * 12);
        if (r % 4 == 1) row[i] = (float)(kn_random(state) % 5) - 2;
        if (r % 4 == 2) row[i] = i % 2 == 0 ? 0.0f : -0.0f;
        if (r % 4 == 3 && i % 3 != 0) row[i] = i % 3 == 1 ? -INFINITY : (float)(gauss * 1e3);
    }
}

/* Draws all rows on the device, and compares with the host's. */
static void try_rows(size_t columns, const char *variant) {
    struct kn_guarded out = {0};
    size_t changed = 1;
    int got[ROWS];
    void *memory = malloc(kn_draw_host_bytes(columns));
    tol_auto_buffer struct tol_buffer *in = NULL, *rows = NULL, *work = NULL;
    cr_assert(memory != NULL);
    MUST(tol_buffer_create(test_context(), ROWS * columns, sizeof(float), &in));
    MUST(tol_buffer_create(test_context(), ROWS, sizeof *by, &rows));
    MUST(tol_buffer_create(test_context(), kn_draw_workspace(ROWS), 1, &work));
    MUST(kn_guarded_create(test_context(), sizeof got, 4, &out));
    MUST(tol_buffer_write(in, logits, ROWS * columns * sizeof(float)));
    MUST(tol_buffer_write(rows, by, sizeof by));
    MUST(kn_draw(kernels, stream,
                 &(struct kn_draw){.rows = ROWS,
                                   .columns = columns,
                                   .in = kn_place_of(in, 0),
                                   .in_stride = columns,
                                   .by = kn_place_of(rows, 0),
                                   .out = {tol_buffer_address(out.buffer) + out.offset, out.bytes},
                                   .workspace = kn_place_of(work, 0),
                                   .variant = variant}));
    MUST(tol_stream_synchronize(stream));
    MUST(kn_guarded_read(&out, got));
    MUST(kn_guarded_check(&out, &changed));
    cr_assert(changed == 0);
    for (size_t r = 0; r < ROWS; r++) {
        const int expected =
            kn_draw_on_host(&by[r].row, by[r].tokens, logits + r * columns, columns, memory);
        cr_assert(got[r] == expected,
                  "row %zu of %zu, top-k %u, share %g, least %g, %u penalised: %d, on the host %d",
                  r, columns, by[r].row.top_k, (double)by[r].row.share * 0x1p-64,
                  (double)by[r].row.least * 0x1p-40, by[r].row.penalised, got[r], expected);
    }
    kn_guarded_destroy(&out);
    free(memory);
}

Test(draw, the_device_draws_what_the_host_draws) {
    static const size_t lengths[] = {1, 2, 33, 1024, 1025, 5000, LONG};
    kernel_scene_begin();
    const bool has_early = tol_context_device(test_context())->compute_capability >= 90;
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
        const size_t n = lengths[l];
        uint64_t state = n;
        const int rounds = test_on_gpu() || n < 2000 ? 6 : 1;
        for (int round = 0; round < rounds; round++) {
            for (size_t r = 0; r < ROWS; r++) {
                make_row(&state, n, &by[r]);
                make_logits(&state, r, n, logits + r * n);
            }
            try_rows(n, has_early && round % 2 == 0 ? "early" : "parts");
        }
    }
}

/* More tokens of one bin than the list has: 3000 that differ in their last bits, and all alike. */
Test(draw, a_bin_of_many_tokens_is_searched_too) {
    enum { MANY = 3000 };
    uint64_t state = 5;
    kernel_scene_begin();
    for (size_t r = 0; r < ROWS; r++) {
        make_row(&state, MANY, &by[r]);
        by[r].row.top_k = r % 3 == 0 ? 0 : 2300 + (uint32_t)r;
        by[r].row.share = r % 3 == 1 ? 0 : (uint64_t)(unit(&state) * 0x1p64);
        for (size_t i = 0; i < MANY; i++) {
            const uint64_t step = r < 6 ? kn_random(&state) % 4000 : 0;
            logits[r * MANY + i] = 3 - (float)step * 0x1p-21f;
        }
    }
    try_rows(MANY, "parts");
}

/* Parts of a row add to the same bins. */
Test(draw, no_part_is_lost_in_any_order) {
    enum { COLUMNS = 5000 };
    uint64_t state = 11;
    kernel_scene_reorder();
    kernel_scene_begin();
    for (size_t r = 0; r < ROWS; r++) {
        make_row(&state, COLUMNS, &by[r]);
        by[r].row.top_k = 1000 + (uint32_t)r;
        make_logits(&state, r, COLUMNS, logits + r * COLUMNS);
    }
    try_rows(COLUMNS, "parts");
}

Test(draw, logits_without_a_token_are_told_apart) {
    enum { COLUMNS = 2000 };
    uint64_t state = 9;
    int expected[ROWS];
    void *memory = malloc(kn_draw_host_bytes(COLUMNS));
    kernel_scene_begin();
    for (size_t r = 0; r < ROWS; r++) {
        float *row = logits + r * COLUMNS;
        make_row(&state, COLUMNS, &by[r]);
        by[r].row.penalised = 0;
        make_logits(&state, 0, COLUMNS, row);
        if (r % 4 == 1) row[1500] = row[1900] = INFINITY, expected[r] = DRAW_BAD - 1500;
        if (r % 4 == 2) row[100] = INFINITY, row[1300] = row[1999] = NAN;
        if (r % 4 == 2) expected[r] = DRAW_BAD - 1300;
        for (size_t i = 0; r % 4 == 3 && i < COLUMNS; i++) row[i] = -INFINITY;
        if (r % 4 == 3) expected[r] = DRAW_NONE;
        if (r % 4 == 0) continue;
        cr_assert(kn_draw_on_host(&by[r].row, by[r].tokens, row, COLUMNS, memory) == expected[r]);
    }
    try_rows(COLUMNS, "parts");
    free(memory);
}

Test(draw, weights_are_powers_of_two_in_40_bits) {
    cr_assert(draw_weight(0) == DRAW_ONE);
    cr_assert(draw_weight((uint64_t)DRAW_OCTAVES << 32) == 1);
    for (uint64_t distance = 0; distance <= (uint64_t)DRAW_OCTAVES << 32; distance += 12345677) {
        const double exact = exp2(40 - (double)distance * 0x1p-32);
        const double got = (double)draw_weight(distance);
        cr_assert(got <= exact + 0.2 && got > exact - 1.2, "%llu: %g, not %g",
                  (unsigned long long)distance, got, exact);
    }
    cr_assert(draw_distance(1, 1, 1e300) == 0);
    cr_assert(draw_distance(-INFINITY, 1, 1) == DRAW_FAR && draw_distance(0, 1, 1e300) == DRAW_FAR);
    cr_assert(draw_distance(-3, 1, 0x1p32) == (uint64_t)4 << 32);
    cr_assert(draw_distance(-40, 0, 0x1p32) == (uint64_t)40 << 32);
    cr_assert(draw_distance(-41, 0, 0x1p32) == DRAW_FAR);
}

/* A model of what draw.h says, in loops that sort nothing: counts decide which tokens are kept. */
static int draw_slowly(const struct draw_row *row, const float *values, size_t n) {
    static uint64_t weight[64], before[64];
    size_t ahead[64];
    uint64_t total = 0, kept = 0, sum = 0;
    float largest = values[0];
    for (size_t i = 1; i < n; i++) largest = values[i] > largest ? values[i] : largest;
    for (size_t i = 0; i < n; i++) {
        const uint64_t distance = draw_distance(values[i], largest, row->scale);
        weight[i] = distance == DRAW_FAR ? 0 : draw_weight(distance);
    }
    for (size_t i = 0; i < n; i++) {
        ahead[i] = before[i] = 0;
        for (size_t j = 0; j < n; j++) {
            if (values[j] < values[i] || (values[j] == values[i] && j >= i)) continue;
            ahead[i]++;
            before[i] += weight[j];
        }
        if (row->top_k > 0 && ahead[i] >= row->top_k) weight[i] = 0;
        total += weight[i];
    }
    for (size_t i = 0; i < n; i++) {
        if (row->share > 0 && before[i] >= draw_share(total, row->share)) weight[i] = 0;
        if (weight[i] < row->least) weight[i] = 0;
        kept += weight[i];
    }
    for (size_t i = 0; i < n; i++) {
        sum += weight[i];
        if (sum > draw_high(row->random, kept)) return (int)i;
    }
    return -1;
}

Test(draw, the_host_draws_what_the_header_says) {
    enum { FEW = 60 };
    uint64_t state = 77;
    void *memory = malloc(kn_draw_host_bytes(FEW));
    struct draw_device_row r;
    float row[FEW];
    for (int turn = 0; turn < 4000; turn++) {
        make_row(&state, FEW, &r);
        r.row.penalised = 0;
        make_logits(&state, (size_t)turn, FEW, row);
        if (isnan(r.row.scale)) continue; /* nothing has a weight */
        const int got = kn_draw_on_host(&r.row, NULL, row, FEW, memory);
        cr_assert(got == draw_slowly(&r.row, row, FEW), "turn %d: %d", turn, got);
    }
    free(memory);
}

#define REFUSED(change, status, text)                                                              \
    do {                                                                                           \
        struct kn_draw p = good;                                                                   \
        change;                                                                                    \
        MUST_FAIL(kn_draw(kernels, stream, &p), status, text);                                     \
    } while (0)

Test(draw, what_makes_no_sense_is_refused) {
    const struct kn_draw good = {.rows = 2,
                                 .columns = 5,
                                 .in = {0x10000, 40},
                                 .in_stride = 5,
                                 .by = {0x40000, 2 * sizeof(struct draw_device_row)},
                                 .out = {0x20000, 8},
                                 .workspace = {0x30000, 1 << 20}};
    kernel_scene_begin();
    MUST_FAIL(kn_draw(kernels, NULL, &good), TOL_INVALID_ARGUMENT, "a stream");
    REFUSED(p.columns = 0, TOL_INVALID_ARGUMENT, "no elements");
    REFUSED(p.columns = DRAW_COLUMNS + 1, TOL_OVER_LIMIT, "8388609 elements");
    REFUSED(p.in_stride = 4, TOL_INVALID_ARGUMENT, "rows of in");
    REFUSED(p.by.bytes -= 1, TOL_OUT_OF_RANGE, "by needs");
    REFUSED(p.by.address += 4, TOL_INVALID_ARGUMENT, "by at");
    REFUSED(p.out.bytes = 7, TOL_OUT_OF_RANGE, "out needs 8 bytes");
    REFUSED(p.workspace.bytes = 9, TOL_OUT_OF_RANGE, "the workspace needs");
    REFUSED(p.variant = "best", TOL_NOT_FOUND, "early");
    MUST(kn_draw(kernels, stream, &(struct kn_draw){.rows = 0}));
}
