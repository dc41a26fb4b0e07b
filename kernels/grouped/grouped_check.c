/*
 * Locates the operands in their buffers, and compares them with C; names and definitions of types
 * and activations.
 */
#include "grouped_check.h"

#include "boxes.h"
#include "core/check.h"
#include "operand.h"

#include <assert.h>
#include <math.h>

enum { DIMENSION_MAX = INT32_MAX - (1 << 12), GROUPS_MAX = 65535 };

_Static_assert((int)KN_GROUPED_F32 == (int)GROUPED_F32 && (int)KN_GROUPED_S8 == (int)GROUPED_S8 &&
                   (int)KN_GELU_TANH == (int)GROUPED_GELU_TANH,
               "the device knows them by the same numbers");

const char *kn_grouped_type_name(enum kn_grouped_type type) {
    static const char *const names[KN_GROUPED_TYPES] = {"f32", "f16", "bf16", "e4m3", "s8"};
    return (unsigned)type < KN_GROUPED_TYPES ? names[type] : "?";
}

size_t kn_grouped_type_bytes(enum kn_grouped_type type) {
    return type == KN_GROUPED_F32 ? 4 : type == KN_GROUPED_F16 || type == KN_GROUPED_BF16 ? 2 : 1;
}

const char *kn_activation_name(enum kn_activation activation) {
    static const char *const names[KN_ACTIVATIONS] = {"none", "silu", "gelu", "gelu_tanh"};
    return (unsigned)activation < KN_ACTIVATIONS ? names[activation] : "?";
}

double kn_activation_oracle(enum kn_activation activation, double v) {
    switch (activation) {
    case KN_SILU:
        return v / (1 + exp(-v));
    case KN_GELU:
        return 0.5 * v * (1 + erf(v / sqrt(2)));
    case KN_GELU_TANH:
        return 0.5 * v * (1 + tanh(sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v)));
    case KN_NO_ACTIVATION:
    case KN_ACTIVATIONS:
        break;
    }
    return v;
}

/* The layout and address of an operand. */
struct grouped_operand {
    const char *name;
    size_t matrices, rows, columns, leading, stride, element;
    CUdeviceptr begin, end; /* end is past the last element; both are equal if there is none */
};

static tol_status operand_find(const struct tol_buffer *buffer, size_t offset,
                               struct grouped_operand *s) {
    tol_status status = TOL_OK;
    size_t first = 0, extent = 0, last = offset;
    TOL_CHECK(s->leading >= s->columns || s->rows <= 1, TOL_INVALID_ARGUMENT,
              "%s has rows of %zu elements, and the next begins after %zu", s->name, s->columns,
              s->leading);
    if (s->matrices == 0 || s->rows == 0 || s->columns == 0) return TOL_OK;
    TOL_CHECK(buffer != NULL, TOL_INVALID_ARGUMENT, "%s has no buffer", s->name);
    const size_t bytes = tol_buffer_bytes(buffer);
    const bool fits =
        kn_add_product(&last, s->matrices - 1, s->stride) &&
        kn_add_product(&last, s->rows - 1, s->leading) && kn_add_product(&last, s->columns, 1) &&
        kn_add_product(&extent, last, s->element) && kn_add_product(&first, offset, s->element);
    TOL_CHECK(fits && extent <= bytes, TOL_OUT_OF_RANGE,
              "%s is %zu matrices of %zu x %zu elements of %zu bytes, rows %zu apart, matrices "
              "%zu, from element %zu on, and its buffer has %zu bytes",
              s->name, s->matrices, s->rows, s->columns, s->element, s->leading, s->stride, offset,
              bytes);
    status = kn_operand_locate(s->name, buffer, first, extent, s->element, &s->begin, &s->end);
out:
    return status;
}

static tol_status operand_find_matrix(const struct kn_matrix *matrix, struct grouped_operand *s) {
    s->leading = matrix->leading != 0 ? matrix->leading : s->columns;
    s->stride = matrix->batch_stride;
    return operand_find(matrix->buffer, matrix->offset, s);
}

/* Without a buffer it stays without an address. */
static tol_status operand_find_vector(const struct kn_vector *vector, struct grouped_operand *s) {
    s->leading = s->columns, s->rows = 1, s->element = 4;
    s->stride = vector->stride;
    return vector->buffer == NULL ? TOL_OK : operand_find(vector->buffer, vector->offset, s);
}

static bool operand_overlaps(const struct grouped_operand *a, const struct grouped_operand *b) {
    return a->begin < b->end && b->begin < a->end;
}

static bool operand_is_aligned(const struct grouped_operand *s) {
    return s->begin % 16 == 0 && s->leading * s->element % 16 == 0 &&
           (s->matrices <= 1 || s->stride * s->element % 16 == 0);
}

/* Whether four neighbours can be moved at once. */
static bool operand_is_whole(const struct grouped_operand *s) {
    return s->begin % (4 * s->element) == 0 && s->leading % 4 == 0 && s->columns % 4 == 0;
}

static tol_status grouped_check_kinds(const struct kn_grouped *g) {
    tol_status status = TOL_OK;
    TOL_CHECK(g != NULL, TOL_INVALID_ARGUMENT, "grouped needs a problem");
    TOL_CHECK(g->type == KN_GROUPED_F16 || g->type == KN_GROUPED_BF16 || g->type == KN_GROUPED_E4M3,
              TOL_INVALID_ARGUMENT, "a and b of type %s: they are f16, bf16 or e4m3",
              kn_grouped_type_name(g->type));
    TOL_CHECK((unsigned)g->c_type < KN_GROUPED_TYPES, TOL_INVALID_ARGUMENT,
              "type %d of c does not exist", (int)g->c_type);
    TOL_CHECK((unsigned)g->activation < KN_ACTIVATIONS, TOL_INVALID_ARGUMENT,
              "activation %d does not exist", (int)g->activation);
    TOL_CHECK(g->residual.buffer == NULL || (unsigned)g->residual_type <= KN_GROUPED_BF16,
              TOL_INVALID_ARGUMENT, "a residual of type %s: it is f32, f16 or bf16",
              kn_grouped_type_name(g->residual_type));
    TOL_CHECK(g->c_scale >= 0 && isfinite(g->c_scale), TOL_INVALID_ARGUMENT,
              "c_scale is %g: it is a number above 0, or 0 for 1", (double)g->c_scale);
    TOL_CHECK(g->m < DIMENSION_MAX && g->n < DIMENSION_MAX && g->k < DIMENSION_MAX &&
                  g->groups <= GROUPS_MAX,
              TOL_OVER_LIMIT, "%zu groups of %zu x %zu in all, and k = %zu", g->groups, g->m, g->n,
              g->k);
    TOL_CHECK(g->groups <= 1 || g->begins.buffer != NULL, TOL_INVALID_ARGUMENT,
              "%zu groups need the rows where they begin", g->groups);
out:
    return status;
}

/* C may overlap nothing, but be its own residual. */
static tol_status grouped_check_c(const struct grouped_operand *c,
                                  const struct grouped_operand *others, size_t count,
                                  const struct grouped_operand *residual) {
    tol_status status = TOL_OK;
    for (size_t i = 0; i < count; i++) {
        TOL_CHECK(!operand_overlaps(&others[i], c), TOL_INVALID_ARGUMENT, "c overlaps %s",
                  others[i].name);
    }
    const bool is_same = residual->begin == c->begin && residual->leading == c->leading &&
                         residual->element == c->element;
    TOL_CHECK(is_same || !operand_overlaps(residual, c), TOL_INVALID_ARGUMENT,
              "c overlaps residual and is another matrix");
out:
    return status;
}

tol_status grouped_check(struct kn_kernels *kernels, const struct kn_grouped *g,
                         struct grouped_problem *problem) {
    tol_status status = TOL_OK;
    TOL_TRY(grouped_check_kinds(g));
    const size_t groups = g->groups != 0 ? g->groups : 1, m = g->m, n = g->n;
    const size_t k = m == 0 || n == 0 ? 0 : g->k, element = kn_grouped_type_bytes(g->type);
    struct grouped_operand a = {
        .name = "a", .matrices = 1, .rows = m, .columns = k, .element = element};
    struct grouped_operand b = {
        .name = "b", .matrices = groups, .rows = k, .columns = n, .element = element};
    struct grouped_operand c = {.name = "c",
                                .matrices = 1,
                                .rows = m,
                                .columns = n,
                                .element = kn_grouped_type_bytes(g->c_type)};
    struct grouped_operand residual = {
        .name = "residual", .matrices = 1, .rows = m, .columns = n, .element = 4};
    struct grouped_operand bias = {.name = "bias", .matrices = groups, .columns = n};
    struct grouped_operand b_scale = {.name = "b_scale", .matrices = groups, .columns = n};
    struct grouped_operand a_scale = {.name = "a_scale", .matrices = 1, .columns = m};
    struct grouped_operand begins = {.name = "begins", .matrices = 1, .columns = groups + 1};
    if (g->transpose_b) b.rows = n, b.columns = k;
    TOL_TRY(operand_find_matrix(&g->a, &a));
    TOL_TRY(operand_find_matrix(&g->b, &b));
    TOL_TRY(operand_find_matrix(&g->c, &c));
    if (g->residual.buffer != NULL) {
        residual.element = kn_grouped_type_bytes(g->residual_type);
        TOL_TRY(operand_find_matrix(&g->residual, &residual));
    }
    TOL_TRY(operand_find_vector(&g->bias, &bias));
    TOL_TRY(operand_find_vector(&g->b_scale, &b_scale));
    TOL_TRY(operand_find_vector(&g->a_scale, &a_scale));
    TOL_TRY(operand_find_vector(&g->begins, &begins));
    const struct grouped_operand others[] = {a, b, bias, b_scale, a_scale, begins};
    TOL_TRY(grouped_check_c(&c, others, sizeof others / sizeof others[0], &residual));
    *problem =
        (struct grouped_problem){.grouped = g,
                                 .arguments = {.a = a.begin,
                                               .b = b.begin,
                                               .c = c.begin,
                                               .residual = residual.begin,
                                               .bias = bias.begin,
                                               .a_scale = a_scale.begin,
                                               .b_scale = b_scale.begin,
                                               .begins = begins.begin,
                                               .lda = (long long)a.leading,
                                               .ldb = (long long)b.leading,
                                               .ldc = (long long)c.leading,
                                               .ld_residual = (long long)residual.leading,
                                               .group_b = groups > 1 ? (long long)b.stride : 0,
                                               .group_bias = (long long)bias.stride,
                                               .group_scale = (long long)b_scale.stride,
                                               .m = (int)m,
                                               .n = (int)n,
                                               .k = (int)k,
                                               .groups = (int)groups,
                                               .transpose_b = g->transpose_b,
                                               .c_type = (int)g->c_type,
                                               .residual_type = (int)g->residual_type,
                                               .activation = (int)g->activation,
                                               .alpha = g->alpha,
                                               .c_inverse = g->c_scale != 0 ? 1 / g->c_scale : 1,
                                               .c_is_whole = operand_is_whole(&c),
                                               .residual_is_whole = operand_is_whole(&residual)},
                                 .is_aligned = operand_is_aligned(&a) && operand_is_aligned(&b),
                                 .has_maps = kn_tensor_map_has(kn_kernels_context(kernels)) &&
                                             kn_tensor_map_takes(KN_F16, (long long)a.leading) &&
                                             kn_tensor_map_takes(KN_F16, (long long)b.leading) &&
                                             kn_tensor_map_takes(KN_F16, (long long)b.stride)};
    assert(problem->arguments.groups >= 1 && problem->arguments.k >= 0);
out:
    return status;
}

struct kn_tuning_key grouped_key_of(const struct grouped_problem *problem) {
    const struct kn_grouped *g = problem->grouped;
    const struct grouped_arguments *x = &problem->arguments;
    return (struct kn_tuning_key){"grouped",
                                  {(int64_t)g->type, (int64_t)g->c_type, x->transpose_b, x->m, x->n,
                                   x->k, x->groups, problem->is_aligned, x->activation}};
}
