/*
 * Cases of halves: weights of every format, rows for each number of groups that a thread has, and
 * keys and values of both caches.
 */
#include "core/check.h"
#include "decode/halves.h"
#include "inputs.h"
#include "sweep_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 2, COUNT = 256 * 33 };

struct parts {
    struct sweep_matrix x, out, scales;
    struct tol_buffer *some, *more;
    double *oracle;
};

static struct kn_place halves_sweep_place_of(const struct sweep_matrix *matrix) {
    const struct kn_guarded *guarded = &matrix->guarded;
    return (struct kn_place){tol_buffer_address(guarded->buffer) + guarded->offset, guarded->bytes};
}

static tol_status make_oracle(struct parts *p, size_t count) {
    tol_status status = TOL_OK;
    p->oracle = calloc(count, sizeof *p->oracle);
    TOL_CHECK(p->oracle != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu elements", count);
out:
    return status;
}

static void halves_sweep_finish(struct sweep *sweep, tol_status status,
                                const struct sweep_matrix *out, double absolute, struct parts *p) {
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    size_t touched = 0;
    if (status == TOL_OK) {
        status = sweep_matrix_judge(sweep, out, p->oracle, (struct kn_tolerance){absolute, 1e-3},
                                    &deviation, &touched);
    }
    sweep_judge(sweep, status, &deviation, touched);
    sweep_matrix_end(&p->x);
    sweep_matrix_end(&p->out);
    sweep_matrix_end(&p->scales);
    tol_buffer_destroy(p->some);
    tol_buffer_destroy(p->more);
    free(p->oracle);
}

/* Bytes that are weights of every format: as fp16, bf16 and fp32 they are from 0.5 to 2. */
static void halves_sweep_draw(struct sweep *sweep, enum kn_weight_format format, uint8_t *weights,
                              size_t bytes) {
    const bool is_wide = format == KN_WEIGHT_BF16 || format == KN_WEIGHT_F32;
    for (size_t i = 0; i < bytes; i += 2) {
        const uint16_t bits = (uint16_t)(kn_random(&sweep->random) & 0x3ff);
        const uint16_t half =
            is_wide ? (uint16_t)(0x3f80 | (bits & 0x7f)) : (uint16_t)(0x3c00 | bits);
        memcpy(weights + i, &half, 2);
    }
}

/* The halves of a matrix, or the largest of its weights. */
static void run_weights(struct sweep *sweep, enum kn_weight_format format, bool is_peak) {
    tol_status status = TOL_OK;
    struct parts p = {.oracle = NULL};
    const size_t bytes = kn_weight_row_bytes(format, COUNT);
    uint8_t *weights = malloc(bytes);
    float *values = malloc(COUNT * sizeof *values);
    if (!sweep_begin(sweep, "halves %s %s", is_peak ? "peak" : "weights", kn_weight_name(format))) {
        free(weights), free(values);
        return;
    }
    TOL_CHECK(weights != NULL && values != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", bytes);
    TOL_TRY(make_oracle(&p, COUNT));
    TOL_TRY(sweep_matrix_make(sweep, is_peak ? KN_F32 : KN_F16, 1, is_peak ? 1 : COUNT, 0, 0, 0,
                              &p.out));
    TOL_TRY(tol_buffer_create(kn_kernels_context(sweep->kernels), bytes, 1, &p.some));
    halves_sweep_draw(sweep, format, weights, bytes);
    kn_weight_values(format, weights, COUNT, values);
    TOL_TRY(tol_buffer_write(p.some, weights, bytes));
    for (size_t i = 0; i < COUNT; i++) {
        if (is_peak) {
            p.oracle[0] = fmax(p.oracle[0], fabs((double)values[i]));
        } else {
            p.oracle[i] = (double)values[i] / 64;
        }
    }
    const struct kn_halves_weights problem = {format, COUNT, kn_place_of(p.some, 0),
                                              halves_sweep_place_of(&p.out), -6};
    if (is_peak) {
        TOL_TRY(tol_buffer_fill_at(p.out.guarded.buffer, p.out.guarded.offset, 0, 4, 1));
        status = kn_halves_peak(sweep->kernels, sweep->stream, &problem);
    } else {
        status = kn_halves_weights(sweep->kernels, sweep->stream, &problem);
    }
out:
    halves_sweep_finish(sweep, status, &p.out, 1e-3, &p);
    free(weights), free(values);
}

/* Rows plus twice themselves; weights are 1. */
static void halves_sweep_run_norm(struct sweep *sweep, size_t columns) {
    enum { WEIGHT = 4 }; /* where ones begin, after a factor for each row */
    tol_status status = TOL_OK;
    struct parts p = {.oracle = NULL};
    struct tol_context *context = kn_kernels_context(sweep->kernels);
    if (!sweep_begin(sweep, "halves norm %d x %zu", ROWS, columns)) return;
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, ROWS, columns, 0, 0, 1, &p.x));
    TOL_TRY(sweep_matrix_make(sweep, KN_F16, ROWS, columns, 0, 0, 0, &p.out));
    TOL_TRY(make_oracle(&p, ROWS * columns));
    TOL_TRY(tol_buffer_create(context, ROWS * columns, sizeof(float), &p.some));
    TOL_TRY(tol_buffer_write(p.some, p.x.values, ROWS * columns * sizeof(float)));
    TOL_TRY(tol_buffer_create(context, WEIGHT + columns, sizeof(float), &p.more));
    TOL_TRY(tol_buffer_fill_at(p.more, 0, 0x40000000, 4, ROWS)); /* twos */
    TOL_TRY(tol_buffer_fill_at(p.more, WEIGHT * 4, 0x3f800000, 4, columns));
    for (size_t r = 0; r < ROWS; r++) {
        double squares = 0;
        for (size_t c = 0; c < columns; c++) {
            squares += pow(3 * (double)p.x.values[r * columns + c], 2);
        }
        for (size_t c = 0; c < columns; c++) {
            p.oracle[r * columns + c] = 2 * 3 * (double)p.x.values[r * columns + c] /
                                        sqrt(squares / (double)columns + 1e-5);
        }
    }
    status = kn_halves_norm(sweep->kernels, sweep->stream,
                            &(struct kn_halves_norm){.rows = ROWS,
                                                     .columns = columns,
                                                     .x = halves_sweep_place_of(&p.x),
                                                     .sums = kn_place_of(p.some, 0),
                                                     .scales = kn_place_of(p.more, 0),
                                                     .weight = kn_place_of(p.more, WEIGHT * 4),
                                                     .out = halves_sweep_place_of(&p.out),
                                                     .epsilon = 1e-5f,
                                                     .exponent = 1});
out:
    halves_sweep_finish(sweep, status, &p.out, 1e-3, &p);
}

/* The halves are compared, so the powers are found from the oracle. */
static void run_gated(struct sweep *sweep, size_t columns) {
    tol_status status = TOL_OK;
    struct parts p = {.oracle = NULL};
    if (!sweep_begin(sweep, "halves gated %d x %zu", ROWS, columns)) return;
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, ROWS, 2 * columns, 0, 0, 1, &p.x));
    TOL_TRY(sweep_matrix_make(sweep, KN_F16, ROWS, columns, 0, 0, 0, &p.out));
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, ROWS, 1, 0, 0, 0, &p.scales));
    TOL_TRY(make_oracle(&p, ROWS * columns));
    for (size_t r = 0; r < ROWS; r++) {
        double most = 0;
        for (size_t c = 0; c < columns; c++) {
            const double g = (double)p.x.values[2 * r * columns + c];
            const double u = (double)p.x.values[(2 * r + 1) * columns + c];
            p.oracle[r * columns + c] = g / (1 + exp(-g)) * u;
            most = fmax(most, fabs(p.oracle[r * columns + c]));
        }
        const double by = ldexp(1, kn_halves_exponent(most));
        for (size_t c = 0; c < columns; c++) p.oracle[r * columns + c] *= by;
    }
    status = kn_halves_gated(sweep->kernels, sweep->stream,
                             &(struct kn_halves_gated){ROWS, columns, halves_sweep_place_of(&p.x),
                                                       halves_sweep_place_of(&p.out),
                                                       halves_sweep_place_of(&p.scales)});
out:
    halves_sweep_finish(sweep, status, &p.out, 0.1, &p);
}

/* Rows plus themselves as a bias, of all columns but the last 24. */
static void halves_sweep_run_rows(struct sweep *sweep) {
    enum { COLUMNS = 1048, OWN = 1024 };
    tol_status status = TOL_OK;
    struct parts p = {.oracle = NULL};
    if (!sweep_begin(sweep, "halves rows %d x %d", ROWS, OWN)) return;
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, ROWS, COLUMNS, 0, 0, 1, &p.x));
    TOL_TRY(sweep_matrix_make(sweep, KN_F16, ROWS, OWN, 0, 0, 0, &p.out));
    TOL_TRY(make_oracle(&p, (size_t)ROWS * OWN));
    TOL_TRY(tol_buffer_create(kn_kernels_context(sweep->kernels), OWN, sizeof(float), &p.some));
    TOL_TRY(tol_buffer_write(p.some, p.x.values, OWN * sizeof(float)));
    for (size_t i = 0; i < (size_t)ROWS * OWN; i++) {
        p.oracle[i] = (double)(p.x.values[i / OWN * COLUMNS + i % OWN] + p.x.values[i % OWN]);
    }
    TOL_TRY(kn_halves_bias(sweep->kernels, sweep->stream,
                           &(struct kn_halves_bias){ROWS, OWN, COLUMNS, halves_sweep_place_of(&p.x),
                                                    kn_place_of(p.some, 0)}));
    status =
        kn_halves_rows(sweep->kernels, sweep->stream,
                       &(struct kn_halves_rows){ROWS, OWN, COLUMNS, halves_sweep_place_of(&p.x),
                                                halves_sweep_place_of(&p.out)});
out:
    halves_sweep_finish(sweep, status, &p.out, 1e-3, &p);
}

/* A page of one number: 1.5 as fp16, or a byte of 3 with a scale of a half. Values follow keys. */
static void run_cache(struct sweep *sweep, enum kn_cache cache) {
    enum { HEAD = 64, KV = 2, POSITIONS = 13, ALL = 2 * KV * POSITIONS * HEAD };
    tol_status status = TOL_OK;
    struct parts p = {.oracle = NULL};
    struct tol_buffer *table = NULL;
    const struct kn_paged_heads shape = {KV, KV, HEAD, cache};
    const size_t elements = (size_t)2 * KV * 16 * HEAD, bytes = kn_paged_layer_bytes(&shape);
    if (!sweep_begin(sweep, "halves cache %d", (int)cache)) return;
    struct tol_context *context = kn_kernels_context(sweep->kernels);
    TOL_TRY(sweep_matrix_make(sweep, KN_F16, 1, ALL, 0, 0, 0, &p.out));
    TOL_TRY(make_oracle(&p, ALL));
    for (size_t i = 0; i < ALL; i++) p.oracle[i] = 1.5;
    TOL_TRY(tol_buffer_create(context, bytes, 1, &p.some));
    if (cache == KN_CACHE_F16) {
        TOL_TRY(tol_buffer_fill_at(p.some, 0, 0x3e00, 2, elements));
    } else {
        TOL_TRY(tol_buffer_fill_at(p.some, 0, 3, 1, elements));
        TOL_TRY(tol_buffer_fill_at(p.some, elements, 0x3800, 2, (bytes - elements) / 2));
    }
    const int zeros[2] = {0, 0};
    const uint64_t address = tol_buffer_address(p.some);
    TOL_TRY(sweep_ints(sweep, zeros, 2, &p.more));
    TOL_TRY(tol_buffer_create(context, 1, sizeof address, &table));
    TOL_TRY(tol_buffer_write(table, &address, sizeof address));
    const struct kn_place out = halves_sweep_place_of(&p.out);
    const size_t half = ALL / 2 * sizeof(uint16_t);
    status = kn_halves_cache(
        sweep->kernels, sweep->stream,
        &(struct kn_halves_cache){.batch = {1, kn_place_of(p.more, 0), kn_place_of(p.more, 4),
                                            kn_place_of(table, 0), 1, 0},
                                  .shape = shape,
                                  .positions = POSITIONS,
                                  .keys = {out.address, half},
                                  .values = {out.address + half, half}});
out:
    halves_sweep_finish(sweep, status, &p.out, 0, &p);
    tol_buffer_destroy(table);
}

void sweep_halves(struct sweep *sweep) {
    static const size_t columns[] = {64, 4100, 16400};
    for (enum kn_weight_format format = 0; format < KN_WEIGHT_FORMATS; format++) {
        run_weights(sweep, format, false);
        run_weights(sweep, format, true);
    }
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        halves_sweep_run_norm(sweep, columns[i]);
        run_gated(sweep, columns[i]);
    }
    halves_sweep_run_rows(sweep);
    for (enum kn_cache cache = 0; cache < KN_CACHES; cache++) run_cache(sweep, cache);
}
