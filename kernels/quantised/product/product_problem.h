/*
 * Product problem: a product of quantised weights as kn_quant_product and kn_linear describe it to
 * what checks it, chooses a kernel and launches that.
 * Internal to the operations: not installed.
 */
#ifndef KN_PRODUCT_PROBLEM_H
#define KN_PRODUCT_PROBLEM_H

#include "choose/kernel_set.h"
#include "place.h"
#include "quantised/formats/weight_format.h"

/* The arithmetic of a product, by which its kernels are listed. The first three are those of
 * enum kn_quant_arithmetic, the others those of kn_linear without and with a gate. */
enum kn_product_way {
    KN_PRODUCT_F32,
    KN_PRODUCT_F16,
    KN_PRODUCT_Q8_1,
    KN_PRODUCT_LINEAR,
    KN_PRODUCT_GATED,
    KN_PRODUCT_WAYS
};

struct kn_product {
    const char *operation; /* "linear": for messages */
    enum kn_product_way way;
    enum kn_weight_format format;
    size_t rows, columns, k; /* rows and columns are at least 1; k may be 0 but for kn_linear */
    struct kn_place weights, gate, bias, x, y; /* gate, bias: address 0 for none */
    size_t x_stride, y_stride;                 /* from column to column, in elements */
    struct kn_place workspace;                 /* address 0: none */
    size_t workspace_bytes;                    /* what kernels may use of it */
    struct kn_place rounded, tickets;          /* as of struct kn_linear */
    bool adds, is_rounded;                     /* so too */
    bool has_maps;                             /* the driver makes tensor maps */
    const char *variant;                       /* NULL: the best */
    const struct kn_variants *variants;        /* NULL: the operation's own */
};

static inline bool kn_product_is_linear(const struct kn_product *p) {
    return p->way >= KN_PRODUCT_LINEAR;
}

/* The bytes from the first element of x to the last, or of y. No overflow in a checked problem. */
static inline size_t kn_product_x_bytes(const struct kn_product *p) {
    return p->is_rounded ? 0 : ((p->columns - 1) * p->x_stride + p->k) * sizeof(float);
}
static inline size_t kn_product_y_bytes(const struct kn_product *p) {
    return ((p->columns - 1) * p->y_stride + p->rows) * sizeof(float);
}

#endif
