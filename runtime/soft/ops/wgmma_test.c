/*
 * Products by a warpgroup: each type, layout and source of A is compared with an integer product
 * computed here, element by element; and mistakes in the use of a product are reported.
 */
#include "test/test_soft.h"

#include "ops/half.h"
#include "test/test_wgmma.h"

#include <stdlib.h>
#include <string.h>

static void begin(void) {
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    setenv("TOLLENS_SOFT_BUDGET", "20000000", 1);
    test_capture(stderr);
    test_soft_open();
}

TestSuite(wgmma, .init = begin, .fini = test_soft_close);

/* Small whole numbers, which all types have. */
static int number_of(char kind, unsigned seed) {
    unsigned hash = (seed + 7) * 2654435761u >> 16;
    if (kind == '1') return (int)(hash & 1);
    if (kind == 'u') return (int)(hash % 200);
    if (kind == 's') return (int)(hash % 255) - 127;
    return (int)(hash % 9) - 4;
}

static uint32_t bits_of(char kind, int number) {
    float x = (float)number;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    switch (kind) {
    case 'h':
        return f16_of_float(x);
    case 'b':
        return bits >> 16;
    case 't':
        return bits;
    case '4': { /* exact for numbers up to 16 */
        if (number == 0) return 0;
        uint32_t exponent = (bits >> 23 & 255) - 127 + 7;
        return bits >> 31 << 7 | exponent << 3 | (bits >> 20 & 7);
    }
    case '5':
        return (uint32_t)f16_of_float(x) >> 8;
    default:
        return (uint32_t)number & 0xff;
    }
}

static void store_element(uint8_t *shared, unsigned at, const struct wgmma_shape *s, unsigned k,
                          int number) {
    if (s->kind == '1') {
        shared[at] = (uint8_t)(shared[at] | (unsigned)number << k % 8);
        return;
    }
    uint32_t bits = bits_of(s->kind, number);
    memcpy(shared + at, &bits, s->bits / 8);
}

static int a_number(const struct wgmma_shape *s, unsigned row, unsigned k) {
    return number_of(s->kind, row * s->k + k);
}
static int b_number(const struct wgmma_shape *s, unsigned k, unsigned column) {
    return number_of(s->kind, 99991 + column * s->k + k);
}

/* A's registers: PTX ISA 9.0, figures of section 9.7.15.5.1.1: row by lane / 4, four lanes side by
 * side with 32 bits each; the second register eight rows below, the third half a row further. */
static void fill_a_registers(const struct wgmma_shape *s, struct wgmma_data *data) {
    unsigned per = 32 / s->bits;
    for (unsigned t = 0; t < THREADS; t++) {
        for (unsigned r = 0; r < 4; r++) {
            unsigned row = t / 32 * 16 + t % 32 / 4 + (r & 1) * 8;
            unsigned k = t % 4 * per + (r >> 1) * 4 * per;
            uint32_t word = 0;
            for (unsigned e = 0; e < per; e++) {
                int number = a_number(s, row, k + e);
                uint32_t bits = s->kind == '1' ? (uint32_t)number : bits_of(s->kind, number);
                word |= bits << (e * s->bits);
            }
            data->a[t][r] = word;
        }
    }
}

static void fill(const struct wgmma_shape *s, struct wgmma_layout la, struct wgmma_layout lb,
                 struct wgmma_data *data) {
    memset(data, 0, sizeof *data);
    for (unsigned k = 0; k < s->k; k++) {
        for (unsigned row = 0; row < 64; row++) {
            store_element(data->shared, wgmma_byte_of(la, A_AT, 64, s->bits, row, k), s, k,
                          a_number(s, row, k));
        }
        for (unsigned column = 0; column < s->n; column++) {
            store_element(data->shared, wgmma_byte_of(lb, B_AT, s->n, s->bits, column, k), s, k,
                          b_number(s, k, column));
        }
    }
    fill_a_registers(s, data);
}

/* The accumulator before. */
static int c_number(unsigned row, unsigned column) {
    return (int)((row * 5 + column * 3) % 17) - 8;
}

static void fill_d(const struct wgmma_shape *s, struct wgmma_data *data) {
    for (unsigned t = 0; t < THREADS; t++) {
        for (unsigned e = 0; e < s->n / 2; e++) {
            unsigned row, column;
            wgmma_place_of_d(t, e, &row, &column);
            float x = (float)c_number(row, column);
            if (s->half_sums) {
                data->d[t][e / 2] |= (uint32_t)f16_of_float(x) << (e % 2 * 16);
            } else if (s->kind == 's' || s->kind == 'u' || s->kind == '1') {
                data->d[t][e] = (uint32_t)c_number(row, column);
            } else {
                memcpy(&data->d[t][e], &x, sizeof x);
            }
        }
    }
}

static double d_value(const struct wgmma_shape *s, const struct wgmma_data *data, unsigned t,
                      unsigned e) {
    if (s->half_sums) {
        return (double)float_of_f16((data->d[t][e / 2] >> (e % 2 * 16)) & 0xffff);
    }
    if (s->kind == 's' || s->kind == 'u' || s->kind == '1') return (int32_t)data->d[t][e];
    float x;
    memcpy(&x, &data->d[t][e], sizeof x);
    return (double)x;
}

static void check(const struct wgmma_shape *s, const struct wgmma_signs *signs,
                  const struct wgmma_data *data, const char *what) {
    for (unsigned t = 0; t < THREADS; t++) {
        for (unsigned e = 0; e < s->n / 2; e++) {
            unsigned row, column;
            wgmma_place_of_d(t, e, &row, &column);
            double wanted = 0;
            for (unsigned k = 0; k < s->k; k++) {
                wanted += (double)(a_number(s, row, k) * b_number(s, k, column));
            }
            wanted *= signs->a * signs->b;
            if (signs->accumulates) wanted += c_number(row, column);
            double got = d_value(s, data, t, e);
            cr_assert(!(got < wanted) && !(got > wanted), "%s: row %u, column %u: %g, not %g", what,
                      row, column, got, wanted);
        }
    }
}

static void try_product(const struct wgmma_shape *s, bool a_in_registers, struct wgmma_layout la,
                        struct wgmma_layout lb, struct wgmma_signs signs) {
    static struct wgmma_text text;
    static struct wgmma_data data;
    char what[120];
    unsigned registers = s->half_sums ? s->n / 4 : s->n / 2;
    bool whole = s->kind == 's' || s->kind == 'u' || s->kind == '1';
    snprintf(what, sizeof what, "%s n %u, A %s %u %d, B %u %d", s->types, s->n,
             a_in_registers ? "in registers" : "shared", la.swizzle, la.mn_major, lb.swizzle,
             lb.mn_major);
    wgmma_put_head(&text, registers, !whole && !s->half_sums);
    wgmma_put_descriptors(&text, s, la, lb, signs.accumulates);
    wgmma_put(&text, "wgmma.fence.sync.aligned;\n");
    wgmma_put_product(&text, s, a_in_registers, la, lb, &signs);
    wgmma_put(&text, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    wgmma_put_tail(&text, registers);
    fill(s, la, lb, &data);
    fill_d(s, &data);
    CUresult result = test_run(text.bytes, 1, THREADS, &data, sizeof data);
    cr_assert_eq(result, CUDA_SUCCESS, "%s: %d: %s", what, (int)result, test_log());
    check(s, &signs, &data, what);
    cr_assert_str_eq(test_captured(stderr), "", "%s: %s", what, test_captured(stderr));
}

static const struct wgmma_shape shapes[] = {
    {".f32.f16.f16", 16, 64, 16, 'h', false},
    {".f16.f16.f16", 16, 128, 16, 'h', true},
    {".f32.bf16.bf16", 16, 256, 16, 'b', false},
    {".f32.tf32.tf32", 32, 64, 8, 't', false},
    {".f32.e4m3.e4m3", 8, 64, 32, '4', false},
    {".f16.e5m2.e5m2", 8, 64, 32, '5', true},
    {".f32.e5m2.e5m2", 8, 8, 32, '5', false},
    {".s32.s8.s8", 8, 96, 32, 's', false},
    {".s32.u8.u8", 8, 64, 32, 'u', false},
    {".satfinite.s32.s8.s8", 8, 64, 32, 's', false},
    {".s32.b1.b1.and.popc", 1, 64, 256, '1', false},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

Test(wgmma, every_type_is_multiplied) {
    static const struct wgmma_layout plain = {0, false};
    for (unsigned i = 0; i < SHAPES; i++) {
        try_product(&shapes[i], false, plain, plain, (struct wgmma_signs){1, 1, true});
        try_product(&shapes[i], true, plain, plain, (struct wgmma_signs){1, 1, false});
    }
}

Test(wgmma, every_layout_of_shared_memory_is_read) {
    static const unsigned swizzles[] = {0, 32, 64, 128};
    for (unsigned i = 0; i < SHAPES; i++) {
        for (unsigned a = 0; a < 4; a++) {
            struct wgmma_layout la = {swizzles[a], false}, lb = {swizzles[3 - a], false};
            try_product(&shapes[i], false, la, lb, (struct wgmma_signs){1, 1, true});
            if (shapes[i].bits != 16) continue;
            la.mn_major = true;
            try_product(&shapes[i], false, la, lb, (struct wgmma_signs){1, 1, true});
            lb.mn_major = true;
            try_product(&shapes[i], false, la, lb, (struct wgmma_signs){1, 1, true});
            try_product(&shapes[i], true, la, lb, (struct wgmma_signs){1, 1, true});
        }
    }
}

Test(wgmma, every_width_is_multiplied) {
    struct wgmma_shape s = shapes[0];
    for (s.n = 8; s.n <= 256; s.n += 8) {
        try_product(&s, false, (struct wgmma_layout){128, false}, (struct wgmma_layout){64, false},
                    (struct wgmma_signs){1, 1, true});
    }
}

Test(wgmma, factors_are_negated) {
    static const struct wgmma_layout plain = {32, false};
    for (unsigned i = 0; i < 7; i++) {
        try_product(&shapes[i], false, plain, plain, (struct wgmma_signs){-1, 1, true});
        try_product(&shapes[i], true, plain, plain, (struct wgmma_signs){1, -1, true});
        try_product(&shapes[i], false, plain, plain, (struct wgmma_signs){-1, -1, false});
    }
}

/* ---- what is wrong ---- */

static const struct wgmma_layout swizzled = {128, false};

/* Runs a product with lines around it; what stderr says. */
static const char *said_of(const char *before, const char *between, const char *after,
                           bool registers, CUresult wanted) {
    static struct wgmma_text text;
    static struct wgmma_data data;
    const struct wgmma_shape *s = &shapes[0];
    struct wgmma_signs signs = {1, 1, true};
    wgmma_put_head(&text, 32, true);
    wgmma_put_descriptors(&text, s, swizzled, swizzled, true);
    wgmma_put(&text, "%s", before);
    wgmma_put_product(&text, s, registers, swizzled, swizzled, &signs);
    wgmma_put(&text, "%s", between);
    wgmma_put(&text, "%s", after);
    wgmma_put_tail(&text, 32);
    fill(s, swizzled, swizzled, &data);
    fill_d(s, &data);
    CUresult result = test_run(text.bytes, 1, THREADS, &data, sizeof data);
    cr_assert_eq(result, wanted, "%d: %s%s", (int)result, test_log(), text.bytes);
    return result == CUDA_SUCCESS ? test_captured(stderr) : test_log();
}

#define FENCE "wgmma.fence.sync.aligned;\n"
#define WAIT "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"

static void says(const char *text, const char *wanted) {
    cr_assert(strstr(text, wanted) != NULL, "'%s' is not in '%s'", wanted, text);
}

Test(wgmma, a_missing_fence_is_reported) {
    says(said_of("", WAIT, "", false, CUDA_SUCCESS), "without a wgmma.fence");
}

Test(wgmma, a_fence_before_registers_are_written_does_not_count) {
    says(said_of(FENCE "add.f32 %d3, %d3, %d3;\n", WAIT, "", false, CUDA_SUCCESS),
         "has written registers");
    says(said_of(FENCE "add.u32 %a2, %a2, %a1;\n", WAIT, "", true, CUDA_SUCCESS),
         "has written registers");
}

Test(wgmma, a_missing_wait_is_reported_and_shows) {
    says(said_of(FENCE, "", "", false, CUDA_SUCCESS), "reads a register");
}

Test(wgmma, a_wait_for_older_groups_is_none) {
    says(said_of(FENCE, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n", "",
                 false, CUDA_SUCCESS),
         "product not waited for");
}

Test(wgmma, descriptors_are_those_of_all_lanes) {
    const char *said = said_of(FENCE "setp.eq.u32 %p1, %r1, 33;\n@%p1 add.u64 %rd5, %rd5, 2;\n",
                               WAIT, "", false, CUDA_ERROR_ILLEGAL_INSTRUCTION);
    unsigned long long own = 0, first = 0;
    const char *words = strstr(said, "lane 1 has another descriptor than lane 0: ");
    cr_assert(words != NULL, "%s", said);
    cr_assert_eq(
        sscanf(words, "lane 1 has another descriptor than lane 0: %llx and %llx", &own, &first), 2);
    cr_assert_eq(own, first + 2);
}

Test(wgmma, factors_in_registers_must_stay) {
    says(said_of(FENCE, "mov.u32 %a1, %r1;\n" WAIT, "", true, CUDA_SUCCESS), "writes a register");
}

Test(wgmma, shared_memory_must_stay) {
    says(said_of(FENCE, "st.shared.u32 [%r3+16], %r1;\n" WAIT, "", false, CUDA_SUCCESS),
         "overwritten factor");
}

Test(wgmma, a_chain_of_products_needs_no_second_fence) {
    static struct wgmma_text text;
    static struct wgmma_data data;
    const struct wgmma_shape *s = &shapes[0];
    struct wgmma_signs signs = {1, 1, true};
    wgmma_put_head(&text, 32, true);
    wgmma_put_descriptors(&text, s, swizzled, swizzled, true);
    wgmma_put(&text, FENCE);
    wgmma_put_product(&text, s, false, swizzled, swizzled, &signs);
    signs.b = -1;
    wgmma_put_product(&text, s, false, swizzled, swizzled, &signs);
    wgmma_put(&text, WAIT);
    wgmma_put_tail(&text, 32);
    fill(s, swizzled, swizzled, &data);
    fill_d(s, &data);
    struct wgmma_data before = data;
    cr_assert_eq(test_run(text.bytes, 1, THREADS, &data, sizeof data), CUDA_SUCCESS, "%s",
                 test_log());
    cr_assert_eq(memcmp(before.d, data.d, sizeof data.d), 0);
    cr_assert_str_eq(test_captured(stderr), "");
}

Test(wgmma, a_warpgroup_executes_the_same) {
    says(said_of(FENCE "setp.gt.u32 %p4, %r1, 95; @%p4 bra END;\n", WAIT "END:\n", "", false,
                 CUDA_ERROR_ILLEGAL_INSTRUCTION),
         "of its warpgroup");
}

Test(wgmma, warps_of_a_warpgroup_have_one_descriptor) {
    says(said_of(FENCE "setp.gt.u32 %p4, %r1, 95; @%p4 add.u64 %rd6, %rd6, 2;\n", WAIT, "", false,
                 CUDA_ERROR_ILLEGAL_INSTRUCTION),
         "other descriptors");
}

Test(wgmma, factors_outside_shared_memory_are_reported) {
    says(said_of(FENCE "add.u64 %rd6, %rd6, 2048;\n", WAIT, "", false, CUDA_ERROR_ILLEGAL_ADDRESS),
         "outside the 40960 bytes");
}
