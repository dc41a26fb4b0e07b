/*
 * Whole numbers, and Freivalds' check.
 */
#include "gemm_exact.h"

#include "inputs.h"

#include <math.h>
#include <stdlib.h>

/* ---- the numbers ----------------------------------------------------------------------------- */

/* The type holds all whole numbers up to this, and so does its product with float's range. */
static double whole_limit(enum kn_type type) {
    return type == KN_F16 ? 0x1p11 : type == KN_BF16 ? 0x1p8 : 0x1p24;
}

/* A quarter of what C holds is for the sum of products, as alpha is up to 2, and so is beta. */
struct kn_gemm_whole kn_gemm_whole_of(const struct kn_gemm *gemm) {
    const double budget = whole_limit(gemm->c_type) / 4, k = gemm->k > 0 ? (double)gemm->k : 1;
    const double most =
        gemm->precision == KN_GEMM_BF16 ? whole_limit(KN_BF16) : whole_limit(KN_F16);
    struct kn_gemm_whole whole = {.largest = 1, .apart = 1};
    if (k > budget) {
        whole.apart = (size_t)ceil(k / budget);
    } else {
        whole.largest = (int)fmin(most, floor(sqrt(budget / k)));
    }
    return whole;
}

void kn_gemm_whole_values(struct kn_gemm_whole whole, float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const int size = 1 + (int)(fabsf(values[i]) * (float)whole.largest);
        values[i] = copysignf((float)(size < whole.largest ? size : whole.largest), values[i]);
    }
}

/* ---- the check ------------------------------------------------------------------------------- */

static const int64_t PRIME = INT64_C(0x7fffffff);

/* Products with a number below PRIME are below 2^55: this many are added, then reduced. */
enum { AT_ONCE = 128 };

static int64_t gemm_exact_reduced(int64_t x) {
    x %= PRIME;
    return x < 0 ? x + PRIME : x;
}

/* One row of a stored matrix as whole numbers. false: one of them is not, or is above 2^24. */
static bool gemm_exact_load_row(enum kn_type type, const void *elements, size_t at, size_t count,
                                float *floats, int64_t *row) {
    bool is_whole = true;
    kn_numbers_load(type, (const char *)elements + at * kn_type_bytes(type), count, floats);
    for (size_t i = 0; i < count; i++) {
        const bool is_small = fabsf(floats[i]) <= 0x1p24f; /* false for a NaN */
        row[i] = is_small ? (int64_t)floats[i] : 0;
        is_whole = is_whole && is_small && (float)row[i] == floats[i];
    }
    return is_whole;
}

/* A row times x, modulo PRIME. */
static int64_t row_times(const int64_t *row, const int64_t *x, size_t count) {
    int64_t all = 0;
    for (size_t first = 0; first < count; first += AT_ONCE) {
        int64_t sum = 0;
        for (size_t i = first; i < count && i < first + AT_ONCE; i++) sum += row[i] * x[i];
        all = gemm_exact_reduced(all + gemm_exact_reduced(sum));
    }
    return all;
}

struct room {
    float *floats;
    int64_t *row, *r, *right, *left; /* a row; r; op(B) r; op(A) (op(B) r) */
};

/* out = op(matrix) x, of `lines` stored rows. */
static void matrix_times(enum kn_type type, const struct kn_gemm_oracle_matrix *matrix,
                         size_t index, size_t lines, size_t columns, bool transpose,
                         const int64_t *x, const struct room *room, int64_t *out) {
    for (size_t i = 0; transpose && i < columns; i++) out[i] = 0;
    for (size_t line = 0; line < lines; line++) {
        gemm_exact_load_row(type, matrix->elements,
                            index * matrix->batch_stride + line * matrix->leading, columns,
                            room->floats, room->row);
        if (!transpose) {
            out[line] = row_times(room->row, x, columns);
            continue;
        }
        for (size_t i = 0; i < columns; i++) out[i] += room->row[i] * x[line];
        if (line % AT_ONCE != AT_ONCE - 1 && line + 1 < lines) continue;
        for (size_t i = 0; i < columns; i++) out[i] = gemm_exact_reduced(out[i]);
    }
}

static void
check_matrix(const struct kn_gemm *g, size_t index, const struct kn_gemm_oracle_matrix *a,
             const struct kn_gemm_oracle_matrix *b, const struct kn_gemm_oracle_matrix *old,
             const struct kn_gemm_oracle_matrix *c, const struct room *room, bool *right) {
    const enum kn_type type = kn_gemm_input_type(g->precision);
    const int64_t alpha = (int64_t)g->alpha, beta = (int64_t)g->beta;
    matrix_times(type, b, index, g->transpose_b ? g->n : g->k, g->transpose_b ? g->k : g->n,
                 g->transpose_b, room->r, room, room->right);
    matrix_times(type, a, index, g->transpose_a ? g->k : g->m, g->transpose_a ? g->m : g->k,
                 g->transpose_a, room->right, room, room->left);
    for (size_t i = 0; i < g->m; i++) {
        int64_t expected = alpha * room->left[i];
        if (beta != 0) {
            gemm_exact_load_row(g->c_type, old->elements,
                                index * old->batch_stride + i * old->leading, g->n, room->floats,
                                room->row);
            expected += beta * row_times(room->row, room->r, g->n);
        }
        right[i] =
            gemm_exact_load_row(g->c_type, c->elements, index * c->batch_stride + i * c->leading,
                                g->n, room->floats, room->row) &&
            row_times(room->row, room->r, g->n) == gemm_exact_reduced(expected);
    }
}

bool kn_gemm_exact_rows(const struct kn_gemm *gemm, const struct kn_gemm_oracle_matrix *a,
                        const struct kn_gemm_oracle_matrix *b,
                        const struct kn_gemm_oracle_matrix *old,
                        const struct kn_gemm_oracle_matrix *c, uint64_t seed, bool *right) {
    const size_t m = gemm->m, n = gemm->n, k = gemm->k, batch = gemm->batch != 0 ? gemm->batch : 1;
    const size_t longest = m > n ? (m > k ? m : k) : n > k ? n : k;
    struct room room = {.floats = malloc((longest + 1) * sizeof *room.floats),
                        .row = malloc((longest + n + k + m + 4) * sizeof *room.row)};
    const bool has_room = room.floats != NULL && room.row != NULL;
    if (has_room) {
        room.r = room.row + longest + 1, room.right = room.r + n + 1;
        room.left = room.right + k + 1;
        for (size_t j = 0; j < n; j++) room.r[j] = (int64_t)(kn_random(&seed) % (uint64_t)PRIME);
        for (size_t i = 0; i < batch; i++) {
            check_matrix(gemm, i, a, b, old, c, &room, right + i * m);
        }
    }
    free(room.row);
    free(room.floats);
    return has_room;
}
