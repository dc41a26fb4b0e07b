/*
 * Products by a warpgroup: each type, layout and source of A beside a product of whole numbers
 * that is made here, element by element; and what is wrong with a product is reported.
 */
#include "test/test_soft.h"

#include "ops/half.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void begin(void) {
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    setenv("TOLLENS_SOFT_BUDGET", "20000000", 1);
    test_capture(stderr);
    test_soft_open();
}

TestSuite(wgmma, .init = begin, .fini = test_soft_close);

enum { THREADS = 128, SHARED = 40960, A_AT = 0, B_AT = 8192, D_MAX = 128 };

/* What a kernel is given and gives back. */
struct data {
    uint8_t shared[SHARED];     /* copied to shared memory first */
    uint32_t a[THREADS][4];     /* A's registers */
    uint32_t d[THREADS][D_MAX]; /* the accumulator, and the result */
};

struct shape {
    const char *types; /* ".f32.f16.f16", or behind the shape ".s32.b1.b1.and.popc" */
    unsigned bits;     /* of an element */
    unsigned n, k;
    char kind; /* h halves, b bf16, t tf32, 4 e4m3, 5 e5m2, s s8, u u8, 1 bits */
    bool half_sums;
};

struct layout {
    unsigned swizzle; /* bytes, 0 for none */
    bool mn_major;
};

/* The text of a kernel; body comes between the loads and the stores of the accumulator. */
struct text {
    char bytes[1 << 16];
    size_t length;
};

static void put(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length =
        vsnprintf(text->bytes + text->length, sizeof text->bytes - text->length, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
    cr_assert_lt(text->length, sizeof text->bytes);
}

static void put_list(struct text *text, const char *name, unsigned count) {
    for (unsigned i = 0; i < count; i++) put(text, "%s%%%s%u", i == 0 ? "{" : ",", name, i);
    put(text, "}");
}

static void put_head(struct text *text, unsigned registers, bool single) {
    text->length = 0;
    put(text,
        ".version 8.0\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 out)\n{\n.shared .align 1024 .b8 s[%d];\n"
        ".reg .pred %%p<9>; .reg .b32 %%r<20>; .reg .b32 %%a<4>; .reg .b64 %%rd<20>; .reg .%s "
        "%%d<%d>;\nld.param.u64 %%rd1, [out]; mov.u32 %%r1, %%tid.x; mul.lo.u32 %%r2, %%r1, 16;\n"
        "mov.u32 %%r3, s;\n"
        "COPY: cvt.u64.u32 %%rd2, %%r2; add.u64 %%rd2, %%rd2, %%rd1;\n"
        "ld.global.v4.u32 {%%r10,%%r11,%%r12,%%r13}, [%%rd2]; add.u32 %%r4, %%r3, %%r2;\n"
        "st.shared.v4.u32 [%%r4], {%%r10,%%r11,%%r12,%%r13}; add.u32 %%r2, %%r2, 2048;\n"
        "setp.lt.u32 %%p1, %%r2, %d; @%%p1 bra COPY;\n"
        "fence.proxy.async; bar.sync 0; setp.eq.u32 %%p2, 0, 0;\n"
        "mad.wide.u32 %%rd3, %%r1, 16, %%rd1; mad.wide.u32 %%rd4, %%r1, %d, %%rd1;\n"
        "ld.global.v4.b32 {%%a0,%%a1,%%a2,%%a3}, [%%rd3+%d];\n",
        SHARED, single ? "f32" : "b32", D_MAX, SHARED, (int)sizeof(uint32_t) * D_MAX,
        (int)offsetof(struct data, a));
    for (unsigned i = 0; i < registers; i++) {
        put(text, "ld.global.b32 %%d%u, [%%rd4+%u];\n", i,
            (unsigned)offsetof(struct data, d) + i * 4);
    }
}

static void put_tail(struct text *text, unsigned registers) {
    for (unsigned i = 0; i < registers; i++) {
        put(text, "st.global.b32 [%%rd4+%u], %%d%u;\n", (unsigned)offsetof(struct data, d) + i * 4,
            i);
    }
    put(text, "ret;\n}\n");
}

/* The descriptor of a factor of rows x k elements that stands by itself. Atoms of eight rows
 * (K-major) or eight k (else), as wide as the swizzle, follow each other. */
static uint64_t descriptor_of(struct layout l, unsigned at, unsigned rows) {
    static const unsigned modes[] = {0, 3, 2, 1}; /* by swizzle / 32, 128 apart */
    uint64_t mode = l.swizzle == 128 ? 1 : l.swizzle == 64 ? 2 : modes[l.swizzle / 32];
    uint64_t leading, stride;
    if (!l.mn_major) {
        leading = l.swizzle == 0 ? rows * 16 : 16;
        stride = l.swizzle == 0 ? 128 : 8 * l.swizzle;
    } else if (l.swizzle == 0) {
        stride = 128;
        leading = rows / 8 * 128;
    } else {
        stride = 8 * l.swizzle; /* from eight k to the next eight */
        leading = 16 * l.swizzle;
    }
    return (at >> 4) | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62;
}

/* The byte where an element begins; of single bits, the byte it is in. Written down from the
 * pictures of the layouts, without descriptors. */
static unsigned byte_of(struct layout l, unsigned at, unsigned rows, unsigned bits, unsigned row,
                        unsigned k) {
    unsigned width = l.swizzle, place;
    if (!l.mn_major) {
        unsigned byte = k * bits / 8; /* in the row of 32 bytes */
        if (width == 0) return at + byte / 16 * (rows * 16) + row * 16 + byte % 16;
        place = row * width + byte;
    } else {
        unsigned byte = row * bits / 8; /* along M or N */
        if (width == 0) {
            return at + k / 8 * (rows / 8 * 128) + byte / 16 * 128 + k % 8 * 16 + byte % 16;
        }
        place = byte / width * (16 * width) + k * width + byte % width;
    }
    unsigned line = (at + place) / 128 % (width / 16);
    return at + (place ^ line * 16);
}

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

static void store_element(uint8_t *shared, unsigned at, const struct shape *s, unsigned k,
                          int number) {
    if (s->kind == '1') {
        shared[at] = (uint8_t)(shared[at] | (unsigned)number << k % 8);
        return;
    }
    uint32_t bits = bits_of(s->kind, number);
    memcpy(shared + at, &bits, s->bits / 8);
}

static int a_number(const struct shape *s, unsigned row, unsigned k) {
    return number_of(s->kind, row * s->k + k);
}
static int b_number(const struct shape *s, unsigned k, unsigned column) {
    return number_of(s->kind, 99991 + column * s->k + k);
}

/* A's registers: PTX ISA 9.0, figures of section 9.7.15.5.1.1: row by lane / 4, four lanes side by
 * side with 32 bits each; the second register eight rows below, the third half a row further. */
static void fill_a_registers(const struct shape *s, struct data *data) {
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

static void fill(const struct shape *s, struct layout la, struct layout lb, struct data *data) {
    memset(data, 0, sizeof *data);
    for (unsigned k = 0; k < s->k; k++) {
        for (unsigned row = 0; row < 64; row++) {
            store_element(data->shared, byte_of(la, A_AT, 64, s->bits, row, k), s, k,
                          a_number(s, row, k));
        }
        for (unsigned column = 0; column < s->n; column++) {
            store_element(data->shared, byte_of(lb, B_AT, s->n, s->bits, column, k), s, k,
                          b_number(s, k, column));
        }
    }
    fill_a_registers(s, data);
}

/* The accumulator before. */
static int c_number(unsigned row, unsigned column) {
    return (int)((row * 5 + column * 3) % 17) - 8;
}

static void place_of_d(unsigned thread, unsigned element, unsigned *row, unsigned *column) {
    *row = thread / 32 * 16 + thread % 32 / 4 + (element / 2 % 2) * 8;
    *column = thread % 4 * 2 + element % 2 + element / 4 * 8;
}

static void fill_d(const struct shape *s, struct data *data) {
    for (unsigned t = 0; t < THREADS; t++) {
        for (unsigned e = 0; e < s->n / 2; e++) {
            unsigned row, column;
            place_of_d(t, e, &row, &column);
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

static double d_value(const struct shape *s, const struct data *data, unsigned t, unsigned e) {
    if (s->half_sums) {
        return (double)float_of_f16((data->d[t][e / 2] >> (e % 2 * 16)) & 0xffff);
    }
    if (s->kind == 's' || s->kind == 'u' || s->kind == '1') return (int32_t)data->d[t][e];
    float x;
    memcpy(&x, &data->d[t][e], sizeof x);
    return (double)x;
}

/* How A, B and the old accumulator count. */
struct signs {
    int a, b;
    bool accumulates;
};

static void check(const struct shape *s, const struct signs *signs, const struct data *data,
                  const char *what) {
    for (unsigned t = 0; t < THREADS; t++) {
        for (unsigned e = 0; e < s->n / 2; e++) {
            unsigned row, column;
            place_of_d(t, e, &row, &column);
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

static void put_product(struct text *text, const struct shape *s, bool a_in_registers,
                        struct layout la, struct layout lb, const struct signs *signs) {
    unsigned registers = s->half_sums ? s->n / 4 : s->n / 2;
    bool whole = s->kind == 's' || s->kind == 'u' || s->kind == '1', half = s->bits == 16;
    put(text, "wgmma.mma_async.sync.aligned.m64n%uk%u%s ", s->n, s->k, s->types);
    put_list(text, "d", registers);
    if (a_in_registers) {
        put(text, ", {%%a0,%%a1,%%a2,%%a3}, ");
    } else {
        put(text, ", %%rd5, ");
    }
    put(text, "%%rd6, %%p3");
    if (!whole) put(text, ", %d, %d", signs->a, signs->b);
    if (half && !a_in_registers) put(text, ", %d", la.mn_major);
    if (half) put(text, ", %d", lb.mn_major);
    put(text, ";\n");
}

/* s is at the beginning of shared memory. */
static void put_descriptors(struct text *text, const struct shape *s, struct layout la,
                            struct layout lb, bool accumulates) {
    put(text, "mov.u64 %%rd5, 0x%llx; mov.u64 %%rd6, 0x%llx; setp.ne.u32 %%p3, %d, 0;\n",
        (unsigned long long)descriptor_of(la, A_AT, 64),
        (unsigned long long)descriptor_of(lb, B_AT, s->n), accumulates);
}

static void try_product(const struct shape *s, bool a_in_registers, struct layout la,
                        struct layout lb, struct signs signs) {
    static struct text text;
    static struct data data;
    char what[120];
    unsigned registers = s->half_sums ? s->n / 4 : s->n / 2;
    bool whole = s->kind == 's' || s->kind == 'u' || s->kind == '1';
    snprintf(what, sizeof what, "%s n %u, A %s %u %d, B %u %d", s->types, s->n,
             a_in_registers ? "in registers" : "shared", la.swizzle, la.mn_major, lb.swizzle,
             lb.mn_major);
    put_head(&text, registers, !whole && !s->half_sums);
    put_descriptors(&text, s, la, lb, signs.accumulates);
    put(&text, "wgmma.fence.sync.aligned;\n");
    put_product(&text, s, a_in_registers, la, lb, &signs);
    put(&text, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    put_tail(&text, registers);
    fill(s, la, lb, &data);
    fill_d(s, &data);
    CUresult result = test_run(text.bytes, 1, THREADS, &data, sizeof data);
    cr_assert_eq(result, CUDA_SUCCESS, "%s: %d: %s", what, (int)result, test_log());
    check(s, &signs, &data, what);
    cr_assert_str_eq(test_captured(stderr), "", "%s: %s", what, test_captured(stderr));
}

static const struct shape shapes[] = {
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
    static const struct layout plain = {0, false};
    for (unsigned i = 0; i < SHAPES; i++) {
        try_product(&shapes[i], false, plain, plain, (struct signs){1, 1, true});
        try_product(&shapes[i], true, plain, plain, (struct signs){1, 1, false});
    }
}

Test(wgmma, every_layout_of_shared_memory_is_read) {
    static const unsigned swizzles[] = {0, 32, 64, 128};
    for (unsigned i = 0; i < SHAPES; i++) {
        for (unsigned a = 0; a < 4; a++) {
            struct layout la = {swizzles[a], false}, lb = {swizzles[3 - a], false};
            try_product(&shapes[i], false, la, lb, (struct signs){1, 1, true});
            if (shapes[i].bits != 16) continue;
            la.mn_major = true;
            try_product(&shapes[i], false, la, lb, (struct signs){1, 1, true});
            lb.mn_major = true;
            try_product(&shapes[i], false, la, lb, (struct signs){1, 1, true});
            try_product(&shapes[i], true, la, lb, (struct signs){1, 1, true});
        }
    }
}

Test(wgmma, every_width_is_multiplied) {
    struct shape s = shapes[0];
    for (s.n = 8; s.n <= 256; s.n += 8) {
        try_product(&s, false, (struct layout){128, false}, (struct layout){64, false},
                    (struct signs){1, 1, true});
    }
}

Test(wgmma, factors_are_negated) {
    static const struct layout plain = {32, false};
    for (unsigned i = 0; i < 7; i++) {
        try_product(&shapes[i], false, plain, plain, (struct signs){-1, 1, true});
        try_product(&shapes[i], true, plain, plain, (struct signs){1, -1, true});
        try_product(&shapes[i], false, plain, plain, (struct signs){-1, -1, false});
    }
}

/* ---- what is wrong ---- */

static const struct layout swizzled = {128, false};

/* Runs a product with lines around it; what stderr says. */
static const char *said_of(const char *before, const char *between, const char *after,
                           bool registers, CUresult wanted) {
    static struct text text;
    static struct data data;
    const struct shape *s = &shapes[0];
    struct signs signs = {1, 1, true};
    put_head(&text, 32, true);
    put_descriptors(&text, s, swizzled, swizzled, true);
    put(&text, "%s", before);
    put_product(&text, s, registers, swizzled, swizzled, &signs);
    put(&text, "%s", between);
    put(&text, "%s", after);
    put_tail(&text, 32);
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

Test(wgmma, factors_in_registers_must_stay) {
    says(said_of(FENCE, "mov.u32 %a1, %r1;\n" WAIT, "", true, CUDA_SUCCESS), "writes a register");
}

Test(wgmma, shared_memory_must_stay) {
    says(said_of(FENCE, "st.shared.u32 [%r3+16], %r1;\n" WAIT, "", false, CUDA_SUCCESS),
         "overwritten factor");
}

Test(wgmma, a_chain_of_products_needs_no_second_fence) {
    static struct text text;
    static struct data data;
    const struct shape *s = &shapes[0];
    struct signs signs = {1, 1, true};
    put_head(&text, 32, true);
    put_descriptors(&text, s, swizzled, swizzled, true);
    put(&text, FENCE);
    put_product(&text, s, false, swizzled, swizzled, &signs);
    signs.b = -1;
    put_product(&text, s, false, swizzled, swizzled, &signs);
    put(&text, WAIT);
    put_tail(&text, 32);
    fill(s, swizzled, swizzled, &data);
    fill_d(s, &data);
    struct data before = data;
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
