/*
 * One element of a product of matrices. Source: PTX ISA 9.0, sections 9.7.14.4 and 9.7.14.5.
 */
#include "oracle_product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct oracle_element {
    const char *name;
    char kind; /* as in struct table_type */
    unsigned bits;
    struct oracle_format format;
} elements[] = {
    {"f16", 'F', 16, {5, 10, false}},  {"bf16", 'F', 16, {8, 7, false}},
    {"tf32", 'F', 32, {8, 10, false}}, {"e4m3", 'F', 8, {4, 3, true}},
    {"e5m2", 'F', 8, {5, 2, false}},   {"f32", 'F', 32, {8, 23, false}},
    {"f64", 'F', 64, {11, 52, false}}, {"s8", 'S', 8, {0, 0, false}},
    {"u8", 'U', 8, {0, 0, false}},     {"s4", 'S', 4, {0, 0, false}},
    {"u4", 'U', 4, {0, 0, false}},     {"b1", 'B', 1, {0, 0, false}},
    {"s32", 'S', 32, {0, 0, false}},
};

static const struct oracle_element *product_find(const char *type) {
    size_t i = 0;
    while (strcmp(elements[i].name, type) != 0) i++;
    return &elements[i];
}

void oracle_product_begin(struct oracle_product *product) {
    for (int i = 0; i < 4; i++) product->element[i] = product_find(product->type[i]);
}

unsigned oracle_element_bits(const char *type) {
    return product_find(type)->bits;
}

static int64_t integer_of(const struct oracle_element *element, uint64_t bits) {
    int64_t value = (int64_t)bits, top = (int64_t)1 << (element->bits - 1);
    return element->kind == 'S' && value >= top ? value - 2 * top : value;
}

/* tf32 is the upper part of a single. */
static struct oracle_number product_number_of(const struct oracle_element *element, uint64_t bits) {
    unsigned used = 1 + element->format.exponent_bits + element->format.fraction_bits;
    return oracle_decode(element->format, bits >> (element->bits - used));
}

static struct oracle_answer whole_sum(const struct oracle_product *p, unsigned row,
                                      unsigned column) {
    int64_t sum = integer_of(p->element[3], p->c[row * p->n + column]); /* no sum has 64 bits */
    bool bits = p->element[1]->kind == 'B';
    for (unsigned k = 0; k < p->k; k++) {
        int64_t x = integer_of(p->element[1], p->a[row * p->k + k]);
        int64_t y = integer_of(p->element[2], p->b[k * p->n + column]);
        sum += !bits ? x * y : p->joins_by_and ? (x & y) : (x ^ y);
    }
    if (p->clamps) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    return (struct oracle_answer){.kind = ORACLE_BITS, .bits = (uint64_t)sum & 0xffffffff};
}

/* A chain of fma. What becomes of a NaN's bits is not said. */
static struct oracle_answer double_sum(const struct oracle_product *p, unsigned row,
                                       unsigned column) {
    struct oracle_format format = p->element[0]->format;
    uint64_t sum = p->c[row * p->n + column];
    for (unsigned k = 0; k < p->k; k++) {
        struct oracle_number x = oracle_decode(format, p->a[row * p->k + k]);
        struct oracle_number y = oracle_decode(format, p->b[k * p->n + column]);
        struct oracle_number product = oracle_multiply(x, y);
        sum = oracle_encode(format, oracle_add(product, oracle_decode(format, sum), p->rounding),
                            p->rounding);
    }
    bool nan = oracle_decode(format, sum).kind == ORACLE_NOT_A_NUMBER;
    return (struct oracle_answer){.kind = nan ? ORACLE_NAN : ORACLE_BITS, .bits = sum};
}

/* The size of a factor; a subnormal one counts as the least normal, whose exponent it has. */
static double factor_size(const struct oracle_element *element, struct oracle_number number) {
    double size = fabs(oracle_number_to_double(number));
    double least = ldexp(1, 2 - (1 << (element->format.exponent_bits - 1)));
    return size < least ? least : size;
}

/* Products of two numbers of eleven digits at most, and sums of a few: doubles make them exactly,
 * or nearly, and never overflow. */
static struct oracle_answer float_sum(const struct oracle_product *p, unsigned row,
                                      unsigned column) {
    struct oracle_number c = product_number_of(p->element[3], p->c[row * p->n + column]);
    double sum = oracle_number_to_double(c);
    double size = c.kind == ORACLE_FINITE ? factor_size(p->element[3], c) : 0;
    for (unsigned k = 0; k < p->k; k++) {
        struct oracle_number x = product_number_of(p->element[1], p->a[row * p->k + k]);
        struct oracle_number y = product_number_of(p->element[2], p->b[k * p->n + column]);
        sum += oracle_number_to_double(x) * oracle_number_to_double(y);
        if (x.kind != ORACLE_FINITE || y.kind != ORACLE_FINITE) continue;
        size += factor_size(p->element[1], x) * factor_size(p->element[2], y);
    }
    return (struct oracle_answer){.kind = ORACLE_NEAR, .value = {sum}, .size = {size}};
}

struct oracle_answer oracle_product_at(const struct oracle_product *product, unsigned row,
                                       unsigned column) {
    if (product->element[1]->kind != 'F') return whole_sum(product, row, column);
    bool is_double = product->element[1]->bits == 64;
    return is_double ? double_sum(product, row, column) : float_sum(product, row, column);
}
