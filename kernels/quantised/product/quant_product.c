/*
 * The product of blocks of Q4_K, Q6_K or Q8_0 in a chosen arithmetic, as a struct kn_product.
 */
#include "quantised/product/quant_product.h"

#include "boxes.h"
#include "core/check.h"
#include "quantised/product/product.h"
#include "quantised/product/product_launch.h"
#include "quantised/product/product_split.h"
#include "quantised/product/product_table.h"

#include <assert.h>

static const enum kn_weight_format formats[KN_QUANTS] = {
    [KN_Q4_K] = KN_WEIGHT_Q4_K, [KN_Q6_K] = KN_WEIGHT_Q6_K, [KN_Q8_0] = KN_WEIGHT_Q8_0};

_Static_assert((int)KN_QUANT_F32 == (int)KN_PRODUCT_F32 &&
                   (int)KN_QUANT_F16 == (int)KN_PRODUCT_F16 &&
                   (int)KN_QUANT_Q8_1 == (int)KN_PRODUCT_Q8_1,
               "an arithmetic is a way");

const struct kn_variants *kn_quant_product_variants(enum kn_quant quant,
                                                    enum kn_quant_arithmetic arithmetic) {
    return kn_product_rows((enum kn_product_way)arithmetic, formats[quant]);
}

const char *kn_quant_arithmetic_name(enum kn_quant_arithmetic arithmetic) {
    static const char *const names[KN_QUANT_ARITHMETICS] = {"f32", "f16", "q8_1"};
    return (unsigned)arithmetic < KN_QUANT_ARITHMETICS ? names[arithmetic] : "?";
}

/* KN_QUANT_Q8_1: k bytes per column of x; from a multiple of 16 on one scale and one sum, of
 * "columns", per 32 of them. "columns" has all of them in another order. */
size_t kn_quant_product_workspace(enum kn_quant_arithmetic arithmetic, size_t columns, size_t k) {
    if (arithmetic == KN_QUANT_F16) return kn_quant_split_workspace(columns, k);
    if (arithmetic != KN_QUANT_Q8_1) return 0;
    return kn_product_scales_at(columns, k) + columns * (k / 32) * 2 * sizeof(float);
}

/* What a kernel may use of the workspace, which KN_QUANT_Q8_1 must have. */
static size_t usable_workspace(const struct kn_quant_product *p) {
    const size_t useful = kn_quant_product_workspace(p->arithmetic, p->columns, p->k);
    if (p->arithmetic != KN_QUANT_F16 || p->workspace.bytes >= useful) return useful;
    const size_t halves = kn_quant_wgmma_workspace(p->columns, p->k);
    return p->workspace.bytes >= halves ? halves : 0;
}

static struct kn_product quant_product_product_of(const struct kn_quant_product *p) {
    return (struct kn_product){.operation = "quant product",
                               .way = (enum kn_product_way)p->arithmetic,
                               .format = formats[p->quant],
                               .rows = p->rows,
                               .columns = p->columns,
                               .k = p->k,
                               .weights = p->weights,
                               .x = p->x,
                               .y = p->y,
                               .x_stride = p->x_stride > 0 ? p->x_stride : p->k,
                               .y_stride = p->y_stride > 0 ? p->y_stride : p->rows,
                               .workspace = p->workspace,
                               .workspace_bytes = usable_workspace(p),
                               .variant = p->variant,
                               .variants = p->variants};
}

tol_status kn_quant_product(struct kn_kernels *kernels, struct tol_stream *stream,
                            const struct kn_quant_product *problem) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && problem != NULL, TOL_INVALID_ARGUMENT,
              "quant product needs kernels, a stream and a problem");
    TOL_CHECK((unsigned)problem->quant < KN_QUANTS &&
                  (unsigned)problem->arithmetic < KN_QUANT_ARITHMETICS,
              TOL_INVALID_ARGUMENT, "quant product: there is no quantisation %d or arithmetic %d",
              (int)problem->quant, (int)problem->arithmetic);
    if (problem->rows == 0 || problem->columns == 0) return TOL_OK;
    struct kn_product p = quant_product_product_of(problem);
    p.has_maps = kn_tensor_map_has(kn_kernels_context(kernels));
    assert(p.x_stride >= p.k || problem->x_stride > 0);
    status = kn_product(kernels, stream, &p);
out:
    return status;
}
