/*
 * Test wgmma: kernels around one product by a warpgroup, and the places of their inputs.
 */
#ifndef SOFT_TEST_WGMMA_H
#define SOFT_TEST_WGMMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { THREADS = 128, SHARED = 40960, A_AT = 0, B_AT = 8192, D_MAX = 128 };

/* A kernel's inputs and results. */
struct wgmma_data {
    uint8_t shared[SHARED];     /* copied to shared memory first */
    uint32_t a[THREADS][4];     /* A's registers */
    uint32_t d[THREADS][D_MAX]; /* the accumulator, and the result */
};

struct wgmma_shape {
    const char *types; /* ".f32.f16.f16", or after the shape ".s32.b1.b1.and.popc" */
    unsigned bits;     /* of an element */
    unsigned n, k;
    char kind; /* h halves, b bf16, t tf32, 4 e4m3, 5 e5m2, s s8, u u8, 1 bits */
    bool half_sums;
};

struct wgmma_layout {
    unsigned swizzle; /* bytes, 0 for none */
    bool mn_major;
};

/* The text of a kernel; body comes between the loads and the stores of the accumulator. */
struct wgmma_text {
    char bytes[1 << 16];
    size_t length;
};

/* The signs of A, B and the old accumulator. */
struct wgmma_signs {
    int a, b;
    bool accumulates;
};

/* Appends to a text; fails the test if it does not fit. */
void wgmma_put(struct wgmma_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The beginning of a kernel with this many accumulator registers, singles or not; and its end.
 */
void wgmma_put_head(struct wgmma_text *text, unsigned registers, bool single);
void wgmma_put_tail(struct wgmma_text *text, unsigned registers);

/* A's and B's descriptors, at the beginning of shared memory, and whether D counts; the product. */
void wgmma_put_descriptors(struct wgmma_text *text, const struct wgmma_shape *s,
                           struct wgmma_layout la, struct wgmma_layout lb, bool accumulates);
void wgmma_put_product(struct wgmma_text *text, const struct wgmma_shape *s, bool a_in_registers,
                       struct wgmma_layout la, struct wgmma_layout lb,
                       const struct wgmma_signs *signs);

/* The byte of shared memory where a factor's element is; the row and the column of a thread's
 * element of D. */
unsigned wgmma_byte_of(struct wgmma_layout l, unsigned at, unsigned rows, unsigned bits,
                       unsigned row, unsigned k);
void wgmma_place_of_d(unsigned thread, unsigned element, unsigned *row, unsigned *column);

#endif
