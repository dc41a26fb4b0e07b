/*
 * The checks of gemm at the sizes of real programs: what they find is planted in the result, on the
 * host, where a product of that size is known without computing it.
 */
#include "gemm/gemm_exact.h"

#include "deviation.h"
#include "inputs.h"
#include "test/test_device.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A product of whole numbers in closed form: A[i][l] = x[i] y[l], B[l][j] = z[l] w[j], and so
 * C[i][j] = x[i] w[j] sum y[l] z[l]. The check does not know. */

/* Of tools that are slow, which run fewer trials, a smaller one (test_takes_trial). */
static size_t side(void) {
    return getenv("TOLLENS_TEST_ONE_IN") != NULL ? 512 : 4096;
}

struct product {
    struct kn_gemm gemm;
    enum kn_type type;
    float *x, *y, *z, *w; /* from 1 to 3 in magnitude, 0 in none */
    void *a, *b, *c;
    bool *right;
};

static void *room(size_t bytes) {
    void *p = malloc(bytes);
    cr_assert(p != NULL, "no memory for %zu bytes", bytes);
    return p;
}

static float *draw_whole(size_t count, uint64_t *state, int largest) {
    float *values = room(count * sizeof *values);
    kn_inputs_draw(KN_UNIFORM, state, 1, values, count);
    kn_gemm_whole_values((struct kn_gemm_whole){largest, 1}, values, count);
    return values;
}

/* rows x columns: left[i] * right[j] * factor. */
static void *outer(enum kn_type type, const float *left, size_t rows, const float *right,
                   size_t columns, double factor) {
    unsigned char *elements = room(rows * columns * kn_type_bytes(type));
    float *row = room(columns * sizeof *row);
    for (size_t i = 0; i < rows; i++) {
        const float scale = (float)(left[i] * factor);
        for (size_t j = 0; j < columns; j++) row[j] = scale * right[j];
        kn_numbers_store(type, row, columns, elements + i * columns * kn_type_bytes(type));
    }
    free(row);
    return elements;
}

/* sum of y[l] z[l] for steps from first on. */
static double inner(const struct product *p, size_t first, size_t count) {
    double sum = 0;
    for (size_t l = first; l < first + count; l++) sum += (double)p->y[l] * (double)p->z[l];
    return sum;
}

static struct product make(enum kn_gemm_precision precision, size_t m, size_t n, size_t k) {
    uint64_t state = 17 + (uint64_t)precision;
    struct product p = {.gemm = {.precision = precision, .m = m, .n = n, .k = k, .alpha = 1},
                        .type = kn_gemm_input_type(precision)};
    p.x = draw_whole(m, &state, 3), p.y = draw_whole(k, &state, 3);
    p.z = draw_whole(k, &state, 3), p.w = draw_whole(n, &state, 3);
    p.a = outer(p.type, p.x, m, p.y, k, 1);
    p.b = outer(p.type, p.z, k, p.w, n, 1);
    p.c = outer(KN_F32, p.x, m, p.w, n, inner(&p, 0, k));
    p.right = room(m * sizeof *p.right);
    return p;
}

static void destroy(struct product *p) {
    float *const vectors[] = {p->x, p->y, p->z, p->w};
    for (int i = 0; i < 4; i++) free(vectors[i]);
    free(p->a), free(p->b), free(p->c), free(p->right);
}

/* How many rows of C, or of another result, the check finds wrong; *row is the last. */
static size_t wrong_rows(struct product *p, const void *c, size_t *row) {
    const struct kn_gemm *g = &p->gemm;
    const struct kn_gemm_oracle_matrix a = {p->a, g->k, g->m * g->k}, b = {p->b, g->n, g->k * g->n},
                                       now = {c, g->n, g->m * g->n};
    size_t wrong = 0;
    cr_assert(kn_gemm_exact_rows(g, &a, &b, NULL, &now, 5, p->right));
    for (size_t i = 0; i < g->m; i++) {
        if (!p->right[i]) wrong++, *row = i;
    }
    return wrong;
}

/* Goal: one wrong element of 16 million is found, by the lowest bit or by 1, wherever it is. */
static void find_one_element(struct product *p) {
    static const size_t places[][2] = {{0, 0}, {234, 377}, {511, 500}};
    float *c = p->c;
    const size_t n = p->gemm.n, most = n - 512;
    size_t row = n;
    for (size_t i = 0; i < 3; i++) {
        const size_t at = places[i][0] + (i == 2 ? most : 0);
        float *element = &c[at * n + places[i][1] + most];
        const float right = *element;
        *element = i % 2 == 0 ? right + 1 : nextafterf(right, INFINITY);
        cr_assert(wrong_rows(p, c, &row) == 1 && row == at, "%zu", i);
        *element = right;
    }
}

static void find_faults(enum kn_gemm_precision precision) {
    const size_t n = side();
    struct product p = make(precision, n, n, n);
    const char *name = kn_gemm_precision_name(precision);
    size_t row = 0;
    cr_assert(wrong_rows(&p, p.c, &row) == 0, "%s: row %zu of a right product", name, row);
    find_one_element(&p);
    /* Products that lack one step, and nothing but zeros. */
    const double lost[] = {inner(&p, 0, n) - inner(&p, n / 2 + 1, 1), 0};
    for (int i = 0; i < 2; i++) {
        void *c = outer(KN_F32, p.x, n, p.w, n, lost[i]);
        cr_assert(wrong_rows(&p, c, &row) == n, "%s, fault %d", name, i);
        free(c);
    }
    destroy(&p);
}

Test(gemm_exact, one_wrong_element_and_one_lost_step_of_4096_cubed_are_found_in_f32) {
    find_faults(KN_GEMM_F32);
}

Test(gemm_exact, one_wrong_element_and_one_lost_step_of_4096_cubed_are_found_in_tf32) {
    find_faults(KN_GEMM_TF32);
}

Test(gemm_exact, one_wrong_element_and_one_lost_step_of_4096_cubed_are_found_in_f16) {
    find_faults(KN_GEMM_F16);
}

Test(gemm_exact, one_wrong_element_and_one_lost_step_of_4096_cubed_are_found_in_bf16) {
    find_faults(KN_GEMM_BF16);
}

/* Goal: any share of the steps that is missing at k = 65536 is found, as are zeros and NaN. */
Test(gemm_exact, a_lost_share_of_65536_steps_is_found_in_every_precision) {
    enum { STEPS = 65536, SHARE = STEPS / 64 };
    for (enum kn_gemm_precision precision = 0; precision < KN_GEMM_PRECISIONS; precision++) {
        struct product p = make(precision, 16, 16, STEPS);
        size_t row = 0;
        cr_assert(wrong_rows(&p, p.c, &row) == 0);
        for (size_t share = 0; share < 64; share += 9) {
            const double lost = inner(&p, share * SHARE, SHARE);
            void *c = outer(KN_F32, p.x, 16, p.w, 16, inner(&p, 0, STEPS) - lost);
            cr_assert(lost == 0 || wrong_rows(&p, c, &row) == 16, "share %zu", share);
            free(c);
        }
        memset(p.c, 0, 16 * 16 * sizeof(float));
        cr_assert(wrong_rows(&p, p.c, &row) == 16);
        memset(p.c, 0xff, 16 * 16 * sizeof(float));
        cr_assert(wrong_rows(&p, p.c, &row) == 16);
        destroy(&p);
    }
}

/* Goal: what the numbers promise: no sum can leave the range in which C is exact. */
Test(gemm_exact, whole_numbers_fit_the_accumulator_and_the_result) {
    static const size_t depths[] = {0, 1, 7, 64, 65, 512, 513, 4096, 65536, (size_t)1 << 22};
    for (unsigned i = 0; i < KN_GEMM_PRECISIONS * 2 * 10; i++) {
        const enum kn_gemm_precision precision = i % KN_GEMM_PRECISIONS;
        struct kn_gemm g = {.precision = precision, .k = depths[i / 8]};
        if (i / 4 % 2 == 1) g.c_type = kn_gemm_input_type(precision);
        const struct kn_gemm_whole whole = kn_gemm_whole_of(&g);
        const double limit = g.c_type == KN_F16 ? 2048 : g.c_type == KN_BF16 ? 256 : 0x1p24;
        const double terms = ceil((double)g.k / (double)whole.apart), q = whole.largest;
        cr_assert(q >= 1 && 2 * terms * q * q + 2 * q <= limit, "%u", i);
        const float one = (float)whole.largest;
        uint16_t half;
        kn_numbers_store(KN_F16, &one, 1, &half);
        cr_assert(precision != KN_GEMM_F16 || kn_f16_value(half) == one);
        kn_numbers_store(KN_BF16, &one, 1, &half);
        cr_assert(precision != KN_GEMM_BF16 || kn_bf16_value(half) == one);
        cr_assert(precision != KN_GEMM_TF32 || kn_tf32_of(one) == one);
    }
}
