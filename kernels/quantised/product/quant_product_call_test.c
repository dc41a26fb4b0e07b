/*
 * What a call of the product refuses, and what it does with nothing.
 */
#include "kernel_scene.h"
#include "quantised/product/product_problem.h"
#include "quantised/product/quant_product.h"

#include "test/test_device.h"

TestSuite(quant_product_call, .fini = kernel_scene_end);

/* One that would do: 5 rows, 3 columns; at addresses that nobody reads. */
static struct kn_quant_product good(void) {
    return (struct kn_quant_product){.quant = KN_Q4_K,
                                     .arithmetic = KN_QUANT_Q8_1,
                                     .rows = 5,
                                     .columns = 3,
                                     .k = 512,
                                     .weights = {0x10000, 5 * 288},
                                     .x = {0x20000, 3 * 2048},
                                     .y = {0x30000, 60},
                                     .workspace = {0x40000, 3 * (512 + 128)}};
}

#define REFUSED(change, status, text)                                                              \
    do {                                                                                           \
        struct kn_quant_product p = good();                                                        \
        change;                                                                                    \
        MUST_FAIL(kn_quant_product(kernels, stream, &p), status, text);                            \
    } while (0)

Test(quant_product_call, what_makes_no_sense_is_refused) {
    kernel_scene_begin();
    REFUSED(p.quant = KN_QUANTS, TOL_INVALID_ARGUMENT, "no quantisation 3");
    REFUSED(p.arithmetic = KN_QUANT_ARITHMETICS, TOL_INVALID_ARGUMENT, "arithmetic 3");
    REFUSED(p.k = 500, TOL_INVALID_ARGUMENT, "500 elements, no multiple of 256");
    REFUSED((p.quant = KN_Q8_0, p.k = 500), TOL_INVALID_ARGUMENT,
            "500 elements, no multiple of 32");
    REFUSED(p.x_stride = 511, TOL_INVALID_ARGUMENT, "rows of x have 512 elements");
    REFUSED(p.y_stride = 4, TOL_INVALID_ARGUMENT, "rows of y have 5 elements");
    REFUSED(p.rows = (size_t)1 << 31, TOL_OVER_LIMIT, "2147483648 rows");
    REFUSED(p.columns = SIZE_MAX, TOL_OVER_LIMIT, "below 2^31");
    REFUSED(p.k = (size_t)1 << 31, TOL_OVER_LIMIT, "below 2^31");
    REFUSED(p.variant = "fast", TOL_NOT_FOUND, "there are columns, bulk_early");
    REFUSED((p.quant = KN_Q6_K, p.weights.bytes *= 2, p.variant = "early_1"), TOL_NOT_FOUND,
            "there are integers");
    REFUSED(p.variant = "staged_1", TOL_UNSUPPORTED, "there are several columns");
    REFUSED((p.variant = "staged_1", p.columns = 1, p.rows = 1, p.k = 39424,
             p.weights.bytes = 22176, p.x = (struct kn_place){0x100000, 157696},
             p.workspace = (struct kn_place){0x200000, 49280}),
            TOL_UNSUPPORTED, "x as bytes does not fit");
    REFUSED((p.variant = "bulk_early", p.columns = 1, p.rows = 1, p.k = 37888,
             p.weights.bytes = 21312, p.x = (struct kn_place){0x100000, 151552},
             p.workspace = (struct kn_place){0x200000, 47360}),
            TOL_UNSUPPORTED, "x as bytes does not fit");
    REFUSED((p.variant = "columns", p.columns = 1), TOL_UNSUPPORTED, "there is one column");
    REFUSED((p.variant = "columns", p.columns = 9, p.x.bytes *= 3, p.y.bytes *= 3,
             p.y.address = 0x50000, p.workspace.bytes *= 3),
            TOL_UNSUPPORTED, "there are more than 8 columns");
    REFUSED((p.variant = "columns", p.weights.address += 8), TOL_UNSUPPORTED,
            "the weights are not aligned to 16 bytes");
    REFUSED((p.arithmetic = KN_QUANT_F16, p.variant = "wgmma"), TOL_UNSUPPORTED,
            "the workspace is too small");
    REFUSED((p.arithmetic = KN_QUANT_F16, p.variant = "wgmma", p.workspace.bytes = 3072,
             p.weights.address += 2),
            TOL_UNSUPPORTED, "a row of weights does not begin at a multiple of 16 bytes");
    REFUSED((p.arithmetic = KN_QUANT_F16, p.variant = "wgmma", p.quant = KN_Q6_K,
             p.weights.bytes = 2100),
            TOL_UNSUPPORTED, "a row of weights does not begin at a multiple of 16 bytes");
    REFUSED((p.arithmetic = KN_QUANT_F16, p.variant = "wgmma", p.quant = KN_Q8_0, p.k = 480,
             p.weights.bytes = 2550),
            TOL_UNSUPPORTED, "no multiple of 256");
    /* Halves of x, 512 tickets, and sums of 132 blocks of 128 rows and 32 columns. */
    const size_t split = 3072 + 2048 + (size_t)132 * 128 * 32 * 4;
    cr_assert_eq(kn_quant_product_workspace(KN_QUANT_F16, 3, 512), split);
    REFUSED((p.arithmetic = KN_QUANT_F16, p.variant = "wgmma_split", p.workspace.bytes = split - 1),
            TOL_UNSUPPORTED, "the workspace is too small");
    REFUSED((p.arithmetic = KN_QUANT_F16, p.workspace.bytes = split,
             p.y.address = p.workspace.address + split - 4),
            TOL_INVALID_ARGUMENT, "overlaps");
    REFUSED((p.arithmetic = KN_QUANT_F16, p.workspace.bytes = 3072, p.workspace.address += 8),
            TOL_INVALID_ARGUMENT, "the workspace at 0x40008");
    REFUSED((p.arithmetic = KN_QUANT_F16, p.workspace.bytes = 3072,
             p.y.address = p.workspace.address + 3068),
            TOL_INVALID_ARGUMENT, "overlaps");
    struct kn_quant_product p = good();
    MUST_FAIL(kn_quant_product(NULL, stream, &p), TOL_INVALID_ARGUMENT, "needs kernels");
    MUST_FAIL(kn_quant_product(kernels, NULL, &p), TOL_INVALID_ARGUMENT, "needs kernels");
    MUST_FAIL(kn_quant_product(kernels, stream, NULL), TOL_INVALID_ARGUMENT, "needs kernels");
}

Test(quant_product_call, short_and_misaligned_places_are_refused) {
    kernel_scene_begin();
    REFUSED(p.weights.bytes--, TOL_OUT_OF_RANGE, "the matrix needs 1440 bytes, and there are 1439");
    REFUSED(p.x.bytes--, TOL_OUT_OF_RANGE, "3 rows of x of 512 elements");
    REFUSED(p.x_stride = 513, TOL_OUT_OF_RANGE, "513 apart, do not fit 6144 bytes");
    REFUSED(p.x_stride = SIZE_MAX, TOL_OUT_OF_RANGE, "rows of x");
    REFUSED(p.y.bytes--, TOL_OUT_OF_RANGE, "3 rows of y of 5 elements");
    REFUSED(p.workspace.bytes--, TOL_OUT_OF_RANGE, "the workspace needs 1920 bytes");
    REFUSED(p.weights.address = 0, TOL_INVALID_ARGUMENT, "the matrix at 0");
    REFUSED(p.x.address = 0, TOL_INVALID_ARGUMENT, "x at 0 is NULL");
    REFUSED(p.y.address = 0, TOL_INVALID_ARGUMENT, "y at 0 is NULL");
    REFUSED(p.workspace.address = 0, TOL_INVALID_ARGUMENT, "the workspace at 0");
    REFUSED(p.weights.address++, TOL_INVALID_ARGUMENT, "not aligned to 2 bytes");
    REFUSED(p.x.address++, TOL_INVALID_ARGUMENT, "not aligned to 4 bytes");
    REFUSED(p.y.address += 2, TOL_INVALID_ARGUMENT, "not aligned to 4 bytes");
    REFUSED(p.workspace.address += 8, TOL_INVALID_ARGUMENT, "not aligned to 16 bytes");
    REFUSED(p.weights.address += 2, TOL_UNSUPPORTED, "the weights are not aligned to 16 bytes");
    REFUSED((p.arithmetic = KN_QUANT_F16, p.x.address += 4, p.x.bytes += 4), TOL_UNSUPPORTED,
            "not aligned to 16 bytes");
    REFUSED((p.arithmetic = KN_QUANT_F32, p.variant = "rows", p.weights.address += 2),
            TOL_UNSUPPORTED, "not aligned to 16 bytes");
    REFUSED(p.y.address = p.x.address + 6140, TOL_INVALID_ARGUMENT, "overlaps");
    REFUSED(p.y.address = p.weights.address, TOL_INVALID_ARGUMENT, "overlaps");
    REFUSED(p.y.address = p.workspace.address + 1916, TOL_INVALID_ARGUMENT, "overlaps");
    REFUSED(p.workspace.address = p.x.address + 16, TOL_INVALID_ARGUMENT, "overlaps");
}

/* No rows or columns: nothing is done, and no place is looked at. No k: y becomes 0. */
Test(quant_product_call, nothing_is_a_product_as_well) {
    tol_auto_buffer struct tol_buffer *y = NULL;
    float values[15];
    kernel_scene_begin();
    MUST(kn_quant_product(kernels, stream, &(struct kn_quant_product){.rows = 0, .columns = 9}));
    MUST(kn_quant_product(kernels, stream, &(struct kn_quant_product){.rows = 9, .columns = 0}));
    MUST(tol_buffer_create(test_context(), 15, sizeof(float), &y));
    const bool has_columns = tol_context_device(test_context())->compute_capability >= 90;
    for (enum kn_quant quant = 0; quant < KN_QUANTS; quant++) {
        const int more = quant == KN_Q4_K && has_columns ? 1 : 0; /* "columns" */
        for (int i = 0; i < KN_QUANT_ARITHMETICS + more; i++) {
            const bool is_columns = i == KN_QUANT_ARITHMETICS;
            const enum kn_quant_arithmetic a =
                is_columns ? KN_QUANT_Q8_1 : (enum kn_quant_arithmetic)i;
            MUST(tol_buffer_fill_at(y, 0, 0xff, 1, sizeof values));
            MUST(kn_quant_product(
                kernels, stream,
                &(struct kn_quant_product){.quant = quant,
                                           .arithmetic = a,
                                           .rows = 5,
                                           .columns = 3,
                                           .y = kn_place_of(y, 0),
                                           .variant = is_columns ? "columns" : NULL}));
            MUST(tol_stream_synchronize(stream));
            MUST(tol_buffer_read(y, values, sizeof values));
            for (int e = 0; e < 15; e++) cr_assert(values[e] == 0, "element %d", e);
        }
    }
}

/* Goal: 2 to 8 columns of 2^24 weights or more go by tensor cores where the device has compute
 * capability 9.0; the others by dp4a or, for one column, by the kernel for that. */
Test(quant_product_call, the_kernel_of_bytes_goes_by_columns_and_weights) {
    static const struct {
        size_t rows, columns, k;
        int capability;
        const char *chosen;
    } cases[] = {{4096, 1, 4096, 90, "bulk_early"}, {4096, 2, 4096, 90, "columns"},
                 {4096, 8, 4096, 90, "columns"},    {4096, 8, 4096, 89, "integers"},
                 {4096, 9, 4096, 90, "integers"},   {4095, 8, 4096, 90, "integers"},
                 {256, 8, 65536, 90, "columns"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tol_device device = {.compute_capability = cases[i].capability,
                                          .shared_bytes_per_block_optin = 227 << 10};
        const struct kn_product problem = {.way = KN_PRODUCT_Q8_1,
                                           .format = KN_WEIGHT_Q4_K,
                                           .rows = cases[i].rows,
                                           .columns = cases[i].columns,
                                           .k = cases[i].k};
        const struct kn_variant *variant = NULL;
        MUST(kn_variant_pick(kn_quant_product_variants(KN_Q4_K, KN_QUANT_Q8_1), &device, NULL,
                             &problem, &variant));
        cr_assert_str_eq(variant->name, cases[i].chosen, "%zu x %zu, k %zu, %d: %s", cases[i].rows,
                         cases[i].columns, cases[i].k, cases[i].capability, variant->name);
    }
}
