/*
 * Locates three matrices in their buffers, and compares them with each other.
 */
#include "gemm_check.h"

#include "core/check.h"
#include "operand.h"

#include <assert.h>

enum { DIMENSION_MAX = INT32_MAX - (1 << 12) }; /* tiles round up in an int */

enum kn_type kn_gemm_input_type(enum kn_gemm_precision precision) {
    return precision == KN_GEMM_F16 ? KN_F16 : precision == KN_GEMM_BF16 ? KN_BF16 : KN_F32;
}

const char *kn_gemm_precision_name(enum kn_gemm_precision precision) {
    static const char *const names[KN_GEMM_PRECISIONS] = {"f32", "tf32", "f16", "bf16",
                                                          "f32_tensor"};
    return (unsigned)precision < KN_GEMM_PRECISIONS ? names[precision] : "?";
}

/* The layout and address of a matrix. */
struct gemm_stored {
    const char *name;
    size_t rows, columns, leading, stride, batch;
    enum kn_type type;
    CUdeviceptr begin, end; /* end is past the last element; both are equal if there is none */
};

static tol_status stored_locate(const struct kn_matrix *matrix, struct gemm_stored *stored) {
    tol_status status = TOL_OK;
    const size_t element = kn_type_bytes(stored->type);
    size_t first = 0, extent = 0, last = matrix->offset;
    stored->leading = matrix->leading != 0 ? matrix->leading : stored->columns;
    stored->stride = matrix->batch_stride;
    TOL_CHECK(stored->leading >= stored->columns || stored->rows <= 1, TOL_INVALID_ARGUMENT,
              "%s has rows of %zu elements, and the next begins after %zu", stored->name,
              stored->columns, stored->leading);
    if (stored->rows == 0 || stored->columns == 0) return TOL_OK;
    TOL_CHECK(matrix->buffer != NULL, TOL_INVALID_ARGUMENT, "%s has no buffer", stored->name);
    const size_t bytes = tol_buffer_bytes(matrix->buffer);
    bool fits = kn_add_product(&last, stored->batch - 1, stored->stride) &&
                kn_add_product(&last, stored->rows - 1, stored->leading) &&
                kn_add_product(&last, stored->columns, 1) &&
                kn_add_product(&extent, last, element) &&
                kn_add_product(&first, matrix->offset, element);
    TOL_CHECK(fits && extent <= bytes, TOL_OUT_OF_RANGE,
              "%s is %zu matrices of %zu x %zu elements of %zu bytes, rows %zu apart, matrices "
              "%zu, from element %zu on, and its buffer has %zu bytes",
              stored->name, stored->batch, stored->rows, stored->columns, element, stored->leading,
              stored->stride, matrix->offset, bytes);
    status = kn_operand_locate(stored->name, matrix->buffer, first, extent, element, &stored->begin,
                               &stored->end);
    assert(status != TOL_OK || stored->end - stored->begin == extent - first);
out:
    return status;
}

static bool stored_overlap(const struct gemm_stored *a, const struct gemm_stored *b) {
    return a->begin < b->end && b->begin < a->end;
}

/* Whether no element is written twice: matrices one after the other, or side by side in the gaps
 * between rows. */
static bool stored_is_written_once(const struct gemm_stored *c) {
    if (c->batch <= 1 || c->begin == c->end) return true;
    const size_t matrix = (c->rows - 1) * c->leading + c->columns;
    const size_t abreast = (c->batch - 1) * c->stride + c->columns;
    return c->stride >= matrix || (c->stride >= c->columns && abreast <= c->leading);
}

static bool stored_is_aligned(const struct gemm_stored *stored) {
    const size_t element = kn_type_bytes(stored->type);
    return stored->begin % 16 == 0 && stored->leading * element % 16 == 0 &&
           (stored->batch <= 1 || stored->stride * element % 16 == 0);
}

tol_status gemm_check(const struct kn_gemm *gemm, struct gemm_problem *problem) {
    tol_status status = TOL_OK;
    TOL_CHECK(gemm != NULL, TOL_INVALID_ARGUMENT, "gemm needs a problem");
    TOL_CHECK((unsigned)gemm->precision < KN_GEMM_PRECISIONS, TOL_INVALID_ARGUMENT,
              "precision %d does not exist", (int)gemm->precision);
    const enum kn_type type = kn_gemm_input_type(gemm->precision);
    const size_t batch = gemm->batch != 0 ? gemm->batch : 1;
    TOL_CHECK(gemm->c_type == KN_F32 || gemm->c_type == type, TOL_INVALID_ARGUMENT,
              "c of type %s does not go with the precision %s", kn_type_name(gemm->c_type),
              kn_gemm_precision_name(gemm->precision));
    TOL_CHECK(gemm->m < DIMENSION_MAX && gemm->n < DIMENSION_MAX && gemm->k < DIMENSION_MAX &&
                  batch <= INT32_MAX,
              TOL_OVER_LIMIT, "%zu matrices of %zu x %zu, and k = %zu", batch, gemm->m, gemm->n,
              gemm->k);
    /* Without a product A and B are not looked at. */
    const size_t k = gemm->alpha == 0 || gemm->m == 0 || gemm->n == 0 ? 0 : gemm->k;
    const size_t m = gemm->m, n = gemm->n;
    struct gemm_stored a = {"a", m, k, 0, 0, batch, type, 0, 0};
    struct gemm_stored b = {"b", k, n, 0, 0, batch, type, 0, 0};
    struct gemm_stored c = {"c", m, n, 0, 0, batch, gemm->c_type, 0, 0};
    if (gemm->transpose_a) a.rows = k, a.columns = m;
    if (gemm->transpose_b) b.rows = n, b.columns = k;
    TOL_TRY(stored_locate(&gemm->a, &a));
    TOL_TRY(stored_locate(&gemm->b, &b));
    TOL_TRY(stored_locate(&gemm->c, &c));
    TOL_CHECK(stored_is_written_once(&c), TOL_INVALID_ARGUMENT,
              "matrices of c, %zu elements apart, overlap", c.stride);
    TOL_CHECK(!stored_overlap(&a, &c), TOL_INVALID_ARGUMENT, "c overlaps a");
    TOL_CHECK(!stored_overlap(&b, &c), TOL_INVALID_ARGUMENT, "c overlaps b");
    if (gemm->workspace != NULL) {
        struct gemm_stored workspace = {.name = "workspace",
                                        .begin = tol_buffer_address(gemm->workspace)};
        workspace.end = workspace.begin + tol_buffer_bytes(gemm->workspace);
        TOL_CHECK(workspace.begin % 16 == 0, TOL_INVALID_ARGUMENT,
                  "workspace begins at %#llx, which is no multiple of 16 bytes",
                  (unsigned long long)workspace.begin);
        const struct gemm_stored *const others[] = {&a, &b, &c};
        for (int i = 0; i < 3; i++) {
            TOL_CHECK(!stored_overlap(&workspace, others[i]), TOL_INVALID_ARGUMENT,
                      "workspace overlaps %s", others[i]->name);
        }
    }
    *problem = (struct gemm_problem){
        .gemm = gemm,
        .arguments = {.a = a.begin,
                      .b = b.begin,
                      .c = c.begin,
                      .lda = (long long)a.leading,
                      .ldb = (long long)b.leading,
                      .ldc = (long long)c.leading,
                      .batch_a = (long long)a.stride,
                      .batch_b = (long long)b.stride,
                      .batch_c = (long long)c.stride,
                      .m = (int)m,
                      .n = (int)n,
                      .k = (int)k,
                      .batch = (int)batch,
                      .splits = 1,
                      .span = (int)k,
                      .transpose_a = gemm->transpose_a,
                      .transpose_b = gemm->transpose_b,
                      .c_type = gemm->c_type == KN_F32 ? GEMM_C_F32 : GEMM_C_F32 + 1,
                      .alpha = k != 0 ? gemm->alpha : 0, /* an infinite one would make NaNs */
                      .beta = gemm->beta},
        .a_is_aligned = stored_is_aligned(&a),
        .b_is_aligned = stored_is_aligned(&b),
        .c_is_aligned = stored_is_aligned(&c)};
    assert(problem->arguments.batch >= 1 && problem->arguments.k >= 0);
out:
    return status;
}

struct kn_tuning_key gemm_key_of(const struct gemm_problem *problem) {
    const struct kn_gemm *g = problem->gemm;
    const struct gemm_arguments *x = &problem->arguments;
    const bool has_workspace = problem->is_planned || g->workspace != NULL;
    return (struct kn_tuning_key){
        "gemm",
        {(int64_t)g->precision, (int64_t)g->c_type, x->transpose_a, x->transpose_b, x->m, x->n,
         x->k, x->batch,
         problem->a_is_aligned + 2 * problem->b_is_aligned + 4 * problem->c_is_aligned,
         x->beta != 0, has_workspace}};
}
