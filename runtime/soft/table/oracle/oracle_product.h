/*
 * A matrix product, element by element; oracle_tensor.c reads and writes the registers and memory.
 */
#ifndef SOFT_ORACLE_PRODUCT_H
#define SOFT_ORACLE_PRODUCT_H

#include "oracle_number.h"

enum { PRODUCT_M = 32, PRODUCT_N = 32, PRODUCT_K = 256, PRODUCT_ELEMENTS = 4096 };

struct oracle_element;

/* D = A B + C. Elements are bits, row by row. */
struct oracle_product {
    unsigned m, n, k;
    const char *type[4];                     /* of D, A, B and C, as the instruction spells them */
    const struct oracle_element *element[4]; /* what is known of these: oracle_product_begin */
    enum oracle_rounding rounding;
    bool clamps, joins_by_and;
    uint64_t a[PRODUCT_ELEMENTS], b[PRODUCT_ELEMENTS], c[PRODUCT_M * PRODUCT_N];
};

/* Looks up the types. */
void oracle_product_begin(struct oracle_product *product);

unsigned oracle_element_bits(const char *type);

/* An element of D. The manual leaves floating point sums of less than double precision open: such
 * answers are values, with the size of the summands. */
struct oracle_answer oracle_product_at(const struct oracle_product *product, unsigned row,
                                       unsigned column);

#endif
