/*
 * The PTX builder: the kernels that it writes compute what they should.
 */
#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(ptx_builder, .fini = test_end);

enum { LANES = 32 };

static int capability(void) {
    return tol_context_device(test_context())->compute_capability;
}

static struct tol_ptx *builder(void) {
    struct tol_ptx *p = NULL;
    MUST(tol_ptx_create(capability(), &p));
    return p;
}

/* For ptxas, which judges them too where a toolkit is: ci/check --ptx. */
static void keep(const char *name, const char *text) {
    const char *folder = getenv("TOLLENS_TEST_PTX");
    char path[500];
    if (folder == NULL) return;
    snprintf(path, sizeof path, "%s/%s.ptx", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, "writing %s", path);
}

/* Loads the module that is built, runs its kernel over data, and destroys both. */
static void run(struct tol_ptx *p, const char *name, unsigned blocks, unsigned threads, void *data,
                size_t bytes) {
    const char *text = NULL;
    size_t length = 0;
    struct tol_module *module = NULL;
    struct tol_kernel *kernel = NULL;
    struct tol_buffer *buffer = NULL;
    struct tol_stream *stream = NULL;
    MUST(tol_ptx_finish(p, &text, &length));
    cr_assert_eq(strlen(text), length);
    keep(name, text);
    cr_assert_eq(tol_module_load(test_context(), text, length, NULL, &module), TOL_OK, "%s\n%s",
                 tol_message(), text);
    MUST(tol_module_kernel(module, name, &kernel));
    MUST(tol_buffer_create(test_context(), bytes, 1, &buffer));
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_write(buffer, data, bytes));
    MUST(tol_launch(stream, kernel, (struct tol_launch_shape){blocks, 1, 1, threads, 1, 1, 0},
                    TOL_ARGUMENTS(tol_buffer_address(buffer))));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(buffer, data, bytes));
    tol_stream_destroy(stream);
    tol_buffer_destroy(buffer);
    tol_module_destroy(module);
    tol_ptx_destroy(p);
}

/* The address of the thread's place in an array of elements of some bytes. */
static tol_ptx_value place(struct tol_ptx *p, tol_ptx_value array, uint32_t bytes) {
    tol_ptx_value thread =
        tol_ptx_fma(p, tol_ptx_special(p, TOL_PTX_CTAID_X), tol_ptx_special(p, TOL_PTX_NTID_X),
                    tol_ptx_special(p, TOL_PTX_TID_X));
    return tol_ptx_add(p, array, tol_ptx_mul_wide(p, thread, tol_ptx_u32(p, bytes)));
}

Test(ptx_builder, a_kernel_does_what_it_says) {
    enum { COUNT = 100 };
    float data[COUNT];
    for (int i = 0; i < COUNT; i++) data[i] = 0.5f * (float)i - 7;
    struct tol_ptx *p = builder();
    tol_ptx_kernel(p, "twice", COUNT / 2);
    tol_ptx_value at = place(p, tol_ptx_parameter(p, TOL_PTX_U64), sizeof data[0]);
    tol_ptx_value x = tol_ptx_load(p, TOL_PTX_GLOBAL, TOL_PTX_F32, at, 0);
    tol_ptx_store(p, TOL_PTX_GLOBAL, at, 0, tol_ptx_add(p, x, x));
    tol_ptx_end(p);
    run(p, "twice", 2, COUNT / 2, data, sizeof data);
    for (int i = 0; i < COUNT; i++) cr_assert_eq(data[i], (float)i - 14, "%d: %g", i, data[i]);
}

/* A block may have 1024 threads, and no more (ptx_mistakes). */
Test(ptx_builder, a_kernel_of_the_largest_block_runs) {
    enum { COUNT = 1024 };
    static uint32_t data[COUNT];
    struct tol_ptx *p = builder();
    tol_ptx_kernel(p, "largest", COUNT);
    tol_ptx_value at = place(p, tol_ptx_parameter(p, TOL_PTX_U64), sizeof data[0]);
    tol_ptx_store(p, TOL_PTX_GLOBAL, at, 0, tol_ptx_special(p, TOL_PTX_TID_X));
    tol_ptx_end(p);
    run(p, "largest", 1, COUNT, data, sizeof data);
    for (unsigned i = 0; i < COUNT; i++) cr_assert_eq(data[i], i, "%u: %u", i, data[i]);
}

/* Every form of every operation: the driver takes it. What they compute is the next tests'. */
Test(ptx_builder, every_form_is_valid) {
    unsigned forms = 0;
    static double data[4];
    struct tol_ptx *p = builder();
    tol_ptx_kernel(p, "all", 0);
    tol_ptx_value address = tol_ptx_parameter(p, TOL_PTX_U64);
    for (int type = 0; type < TOL_PTX_TYPE_COUNT; type++) {
        tol_ptx_value x = {0, 0};
        if (type == TOL_PTX_PRED) {
            x = tol_ptx_compare(p, TOL_PTX_EQ, tol_ptx_u32(p, 1), tol_ptx_u32(p, 1));
        } else {
            x = tol_ptx_load(p, TOL_PTX_GLOBAL, (tol_ptx_type)type, address, 0);
        }
        for (int op = 0; op < TOL_PTX_OP_COUNT; op++) {
            if (op == TOL_PTX_OP_div || op == TOL_PTX_OP_rem) continue;
            struct tol_ptx *alone = NULL;
            MUST(tol_ptx_create(capability(), &alone));
            tol_ptx_kernel(alone, "k", 0);
            tol_ptx_value y = tol_ptx_parameter(alone, TOL_PTX_U64);
            y = type == TOL_PTX_PRED
                    ? tol_ptx_compare(alone, TOL_PTX_EQ, y, y)
                    : tol_ptx_load(alone, TOL_PTX_GLOBAL, (tol_ptx_type)type, y, 0);
            tol_ptx_value z = tol_ptx_op_at(alone, TOL_PTX_HERE, (tol_ptx_op)op, y, y, y);
            bool is_form = z.id != 0;
            tol_ptx_destroy(alone);
            if (!is_form) continue;
            forms++;
            (void)tol_ptx_op_at(p, TOL_PTX_HERE, (tol_ptx_op)op, x, x, x);
        }
    }
    tol_ptx_end(p);
    cr_assert_geq(forms, capability() >= 90 ? 102u : 60u, "%u forms", forms);
    run(p, "all", 1, 1, data, sizeof data);
}

Test(ptx_builder, whole_numbers_are_computed) {
    struct tol_ptx *p = builder();
    tol_ptx_kernel(p, "whole", 1);
    tol_ptx_value at = tol_ptx_parameter(p, TOL_PTX_U64);
    tol_ptx_value a = tol_ptx_load(p, TOL_PTX_GLOBAL, TOL_PTX_S32, at, 0);
    tol_ptx_value b = tol_ptx_load(p, TOL_PTX_GLOBAL, TOL_PTX_S32, at, 4);
    const tol_ptx_value results[] = {
        tol_ptx_add(p, a, b),
        tol_ptx_sub(p, a, b),
        tol_ptx_mul(p, a, b),
        tol_ptx_div(p, a, b),
        tol_ptx_rem(p, a, b),
        tol_ptx_fma(p, a, b, tol_ptx_s32(p, -5)),
        tol_ptx_min(p, a, b),
        tol_ptx_max(p, a, b),
        tol_ptx_neg(p, b),
        tol_ptx_abs(p, a),
        tol_ptx_and(p, a, b),
        tol_ptx_or(p, a, b),
        tol_ptx_xor(p, a, b),
        tol_ptx_not(p, a),
        tol_ptx_shift_left(p, a, tol_ptx_u32(p, 3)),
        tol_ptx_shift_right(p, a, tol_ptx_u32(p, 3)),
        tol_ptx_as(p, TOL_PTX_S32,
                   tol_ptx_shift_right(p, tol_ptx_as(p, TOL_PTX_U32, a), tol_ptx_u32(p, 28))),
        tol_ptx_convert(p, TOL_PTX_S32, tol_ptx_mul_wide(p, a, b)),
        tol_ptx_select(p, tol_ptx_compare(p, TOL_PTX_LT, a, b), tol_ptx_s32(p, 1),
                       tol_ptx_s32(p, 0)),
        tol_ptx_convert(p, TOL_PTX_S32, tol_ptx_convert(p, TOL_PTX_S16, tol_ptx_s32(p, 70000))),
    };
    enum { COUNT = sizeof results / sizeof results[0] };
    for (int i = 0; i < COUNT; i++) tol_ptx_store(p, TOL_PTX_GLOBAL, at, 4 * i, results[i]);
    tol_ptx_end(p);
    int32_t data[COUNT] = {-1234, 77};
    const int32_t x = -1234, y = 77;
    const int32_t right[COUNT] = {x + y,     x - y, x * y, x / y, x % y, x * y - 5,    x,
                                  y,         -y,    -x,    x & y, x | y, x ^ y,        ~x,
                                  -1234 * 8, -155,  15,    x * y, 1,     70000 - 65536};
    run(p, "whole", 1, 1, data, sizeof data);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(data[i], right[i], "result %d: %d, not %d", i, data[i], right[i]);
    }
}

Test(ptx_builder, floating_point_is_computed) {
    struct tol_ptx *p = builder();
    tol_ptx_kernel(p, "real", 1);
    tol_ptx_value at = tol_ptx_parameter(p, TOL_PTX_U64);
    tol_ptx_value a = tol_ptx_load(p, TOL_PTX_GLOBAL, TOL_PTX_F32, at, 0);
    tol_ptx_value b = tol_ptx_load(p, TOL_PTX_GLOBAL, TOL_PTX_F32, at, 4);
    tol_ptx_value nan = tol_ptx_load(p, TOL_PTX_GLOBAL, TOL_PTX_F32, at, 8);
    tol_ptx_value one = tol_ptx_f32(p, 1), zero = tol_ptx_f32(p, 0);
    tol_ptx_value wide = tol_ptx_div(p, tol_ptx_convert(p, TOL_PTX_F64, a), tol_ptx_f64(p, 3));
    const tol_ptx_value results[] = {
        tol_ptx_add(p, a, b),
        tol_ptx_sub(p, a, b),
        tol_ptx_mul(p, a, b),
        tol_ptx_div(p, a, b),
        tol_ptx_fma(p, a, b, a),
        tol_ptx_sqrt(p, b),
        tol_ptx_rcp(p, b),
        tol_ptx_neg(p, a),
        tol_ptx_abs(p, a),
        tol_ptx_min(p, a, b),
        tol_ptx_max(p, a, nan),
        tol_ptx_convert(p, TOL_PTX_F32, wide),
        tol_ptx_convert(p, TOL_PTX_F32, tol_ptx_convert(p, TOL_PTX_F16, a)),
        tol_ptx_convert(p, TOL_PTX_F32, tol_ptx_convert(p, TOL_PTX_S32, a)),
        tol_ptx_select(p, tol_ptx_compare(p, TOL_PTX_NE, nan, nan), one, zero),
        tol_ptx_select(p, tol_ptx_compare(p, TOL_PTX_EQ, nan, nan), one, zero),
        tol_ptx_select(p, tol_ptx_compare(p, TOL_PTX_GE, b, a), one, zero),
    };
    enum { EXACT = sizeof results / sizeof results[0], NEAR = 3, COUNT = EXACT + NEAR };
    const tol_ptx_value near[NEAR] = {tol_ptx_ex2(p, a), tol_ptx_lg2(p, b), tol_ptx_rsqrt(p, b)};
    for (int i = 0; i < EXACT; i++) tol_ptx_store(p, TOL_PTX_GLOBAL, at, 4 * i, results[i]);
    for (int i = 0; i < NEAR; i++) tol_ptx_store(p, TOL_PTX_GLOBAL, at, 4 * (EXACT + i), near[i]);
    tol_ptx_end(p);
    const float x = -2.6f, y = 3.7f;
    float data[COUNT] = {x, y, NAN};
    const float right[COUNT] = {x + y,
                                x - y,
                                x * y,
                                x / y,
                                fmaf(x, y, x),
                                sqrtf(y),
                                1 / y,
                                2.6f,
                                2.6f,
                                x,
                                x,
                                (float)(-2.6f / 3.0),
                                -2.599609375f,
                                -2,
                                1,
                                0,
                                1,
                                exp2f(x),
                                log2f(y),
                                1 / sqrtf(y)};
    run(p, "real", 1, 1, data, sizeof data);
    for (int i = 0; i < COUNT; i++) {
        float off = i < EXACT ? 0 : 1e-6f * fabsf(right[i]);
        cr_assert(fabsf(data[i] - right[i]) <= off, "result %d: %.9g, not %.9g", i, (double)data[i],
                  (double)right[i]);
    }
}

/* Collatz: how many steps from each thread's number to 1, with a branch in a loop. */
Test(ptx_builder, loops_and_branches_part_and_meet) {
    uint32_t data[2 * LANES];
    struct tol_ptx *p = builder();
    tol_ptx_kernel(p, "steps", 2 * LANES);
    tol_ptx_value at = place(p, tol_ptx_parameter(p, TOL_PTX_U64), 4);
    tol_ptx_value one = tol_ptx_u32(p, 1);
    tol_ptx_value n = tol_ptx_variable(p, tol_ptx_load(p, TOL_PTX_GLOBAL, TOL_PTX_U32, at, 0));
    tol_ptx_value steps = tol_ptx_variable(p, tol_ptx_u32(p, 0));
    tol_ptx_loop(p);
    tol_ptx_break_if(p, tol_ptx_compare(p, TOL_PTX_EQ, n, one));
    tol_ptx_value odd = tol_ptx_compare(p, TOL_PTX_EQ, tol_ptx_and(p, n, one), one);
    tol_ptx_if(p, odd);
    tol_ptx_set(p, n, tol_ptx_fma(p, n, tol_ptx_u32(p, 3), one));
    tol_ptx_else(p);
    tol_ptx_set(p, n, tol_ptx_shift_right(p, n, one));
    tol_ptx_end(p);
    tol_ptx_set(p, steps, tol_ptx_add(p, steps, one));
    tol_ptx_end(p);
    tol_ptx_store(p, TOL_PTX_GLOBAL, at, 0, steps);
    tol_ptx_end(p);
    for (uint32_t i = 0; i < 2 * LANES; i++) data[i] = i + 1;
    run(p, "steps", 1, 2 * LANES, data, sizeof data);
    for (uint32_t i = 0; i < 2 * LANES; i++) {
        uint32_t count = 0;
        for (uint32_t k = i + 1; k != 1; k = k % 2 ? 3 * k + 1 : k / 2) count++;
        cr_assert_eq(data[i], count, "from %u: %u steps, not %u", i + 1, data[i], count);
    }
}

/* Each block reverses its part through shared memory, in vectors, and adds it to a sum. */
Test(ptx_builder, threads_share_memory) {
    enum { THREADS = 64, BLOCKS = 3, COUNT = 4 * THREADS * BLOCKS };
    uint32_t data[COUNT + 4];
    struct tol_ptx *p = builder();
    tol_ptx_kernel(p, "turn", THREADS);
    tol_ptx_value array = tol_ptx_parameter(p, TOL_PTX_U64);
    tol_ptx_value unused = tol_ptx_shared(p, 20), shared = tol_ptx_shared(p, 16 * THREADS);
    (void)unused;
    tol_ptx_value at = place(p, array, 16), thread = tol_ptx_special(p, TOL_PTX_TID_X);
    tol_ptx_value own = tol_ptx_fma(p, thread, tol_ptx_u32(p, 16), shared);
    tol_ptx_value mirror = tol_ptx_fma(p, tol_ptx_sub(p, tol_ptx_u32(p, THREADS - 1), thread),
                                       tol_ptx_u32(p, 16), shared);
    tol_ptx_value four[4], back[4], sum = {0, 0};
    tol_ptx_load_vector(p, TOL_PTX_GLOBAL, TOL_PTX_U32, 4, at, 0, four);
    tol_ptx_store_vector(p, TOL_PTX_SHARED, 4, own, 0, four);
    tol_ptx_barrier(p);
    tol_ptx_load_vector(p, TOL_PTX_SHARED, TOL_PTX_U32, 2, mirror, 8, &back[0]);
    back[2] = tol_ptx_load(p, TOL_PTX_SHARED, TOL_PTX_U32, mirror, 4);
    back[3] = tol_ptx_load(p, TOL_PTX_SHARED, TOL_PTX_U32, mirror, 0);
    const tol_ptx_value turned[4] = {back[1], back[0], back[2], back[3]};
    tol_ptx_store_vector(p, TOL_PTX_GLOBAL, 4, at, 0, turned);
    for (int i = 0; i < 4; i++) sum = i == 0 ? four[0] : tol_ptx_add(p, sum, four[i]);
    for (unsigned lanes = 16; lanes > 0; lanes /= 2) {
        sum = tol_ptx_add(p, sum, tol_ptx_shuffle_xor(p, sum, lanes));
    }
    tol_ptx_value first = tol_ptx_special(p, TOL_PTX_LANEID);
    tol_ptx_if(p, tol_ptx_compare(p, TOL_PTX_EQ, first, tol_ptx_u32(p, 0)));
    tol_ptx_add_to_memory(p, TOL_PTX_GLOBAL, array, 4 * COUNT, sum);
    tol_ptx_end(p);
    tol_ptx_end(p);
    uint32_t right = 0;
    memset(data, 0, sizeof data);
    for (uint32_t i = 0; i < COUNT; i++) right += data[i] = 7 * i + 3;
    run(p, "turn", BLOCKS, THREADS, data, sizeof data);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t part = 4 * THREADS, from = i / part * part + part - 1 - i % part;
        cr_assert_eq(data[i], 7 * from + 3, "element %u: %u", i, data[i]);
    }
    cr_assert_eq(data[COUNT], right, "the sum: %u, not %u", data[COUNT], right);
}

/* Whole numbers, so that sums are exact in any order. Fragments: PTX ISA 9.0, 9.7.14.5.8. */
Test(ptx_builder, a_warp_multiplies_a_tile) {
    if (capability() < 80) cr_skip("the device has no mma of this shape");
    float data[16 * 8 + 16 * 16 + 16 * 8];
    float *a = data, *b = data + 16 * 16, *c = b + 16 * 8;
    struct tol_ptx *p = builder();
    tol_ptx_kernel(p, "tile", LANES);
    tol_ptx_value array = tol_ptx_parameter(p, TOL_PTX_U64);
    tol_ptx_value lane = tol_ptx_special(p, TOL_PTX_LANEID), two = tol_ptx_u32(p, 2);
    tol_ptx_value group = tol_ptx_shift_right(p, lane, two);
    tol_ptx_value pair =
        tol_ptx_shift_left(p, tol_ptx_and(p, lane, tol_ptx_u32(p, 3)), tol_ptx_u32(p, 1));
    tol_ptx_value left[4], right[2], zero[4], sums[4];
    for (uint32_t i = 0; i < 4; i++) {
        tol_ptx_value row = tol_ptx_add(p, group, tol_ptx_u32(p, i % 2 * 8));
        tol_ptx_value k = tol_ptx_add(p, pair, tol_ptx_u32(p, i / 2 * 8)), halves[2];
        tol_ptx_value element = tol_ptx_fma(p, row, tol_ptx_u32(p, 16), k);
        tol_ptx_value at = tol_ptx_add(p, array, tol_ptx_mul_wide(p, element, tol_ptx_u32(p, 4)));
        for (int h = 0; h < 2; h++) {
            halves[h] = tol_ptx_convert(p, TOL_PTX_BF16,
                                        tol_ptx_load(p, TOL_PTX_GLOBAL, TOL_PTX_F32, at, 4 * h));
        }
        left[i] = tol_ptx_join(p, TOL_PTX_BF16X2, halves[0], halves[1]);
        zero[i] = tol_ptx_f32(p, 0);
    }
    for (uint32_t i = 0; i < 2; i++) {
        tol_ptx_value k = tol_ptx_add(p, pair, tol_ptx_u32(p, i * 8)), halves[2];
        tol_ptx_value element = tol_ptx_fma(p, k, tol_ptx_u32(p, 8), group);
        tol_ptx_value at = tol_ptx_add(p, array, tol_ptx_mul_wide(p, element, tol_ptx_u32(p, 4)));
        for (int h = 0; h < 2; h++) {
            halves[h] = tol_ptx_convert(p, TOL_PTX_BF16,
                                        tol_ptx_load(p, TOL_PTX_GLOBAL, TOL_PTX_F32, at,
                                                     (int32_t)sizeof(float) * (16 * 16 + 8 * h)));
        }
        right[i] = tol_ptx_join(p, TOL_PTX_BF16X2, halves[0], halves[1]);
    }
    tol_ptx_mma(p, left, right, zero, sums);
    tol_ptx_mma(p, left, right, sums, sums); /* twice the product */
    for (uint32_t i = 0; i < 4; i++) {
        tol_ptx_value row = tol_ptx_add(p, group, tol_ptx_u32(p, i / 2 * 8));
        tol_ptx_value column = tol_ptx_add(p, pair, tol_ptx_u32(p, i % 2));
        tol_ptx_value element = tol_ptx_fma(p, row, tol_ptx_u32(p, 8), column);
        tol_ptx_value at = tol_ptx_add(p, array, tol_ptx_mul_wide(p, element, tol_ptx_u32(p, 4)));
        tol_ptx_store(p, TOL_PTX_GLOBAL, at, (int32_t)sizeof(float) * (16 * 16 + 16 * 8), sums[i]);
    }
    tol_ptx_end(p);
    for (int i = 0; i < 16 * 16; i++) a[i] = (float)(i * 7 % 13 - 6);
    for (int i = 0; i < 16 * 8; i++) b[i] = (float)(i * 5 % 11 - 5), c[i] = NAN;
    run(p, "tile", 1, LANES, data, sizeof data);
    for (int i = 0; i < 16; i++) {
        for (int j = 0; j < 8; j++) {
            float right_sum = 0;
            for (int k = 0; k < 16; k++) right_sum += a[16 * i + k] * b[8 * k + j];
            cr_assert_eq(c[8 * i + j], 2 * right_sum, "%d %d: %g, not %g", i, j,
                         (double)c[8 * i + j], 2 * (double)right_sum);
        }
    }
}

Test(ptx_builder, the_target_is_the_least_that_has_it_all) {
    static const struct {
        tol_ptx_op op;
        tol_ptx_type type;
        const char *target;
    } cases[] = {
        {TOL_PTX_OP_add, TOL_PTX_F32, ".version 6.0\n.target sm_70\n"},
        {TOL_PTX_OP_abs, TOL_PTX_F16, ".version 6.5\n.target sm_70\n"},
        {TOL_PTX_OP_tanh, TOL_PTX_F32, ".version 7.0\n.target sm_75\n"},
        {TOL_PTX_OP_fma, TOL_PTX_BF16X2, ".version 7.0\n.target sm_80\n"},
        {TOL_PTX_OP_add, TOL_PTX_BF16, ".version 7.8\n.target sm_90\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tol_ptx *p = NULL;
        const char *text = NULL;
        MUST(tol_ptx_create(90, &p));
        tol_ptx_kernel(p, "k", 0);
        tol_ptx_value x =
            tol_ptx_load(p, TOL_PTX_GLOBAL, cases[i].type, tol_ptx_parameter(p, TOL_PTX_U64), 0);
        (void)tol_ptx_op_at(p, TOL_PTX_HERE, cases[i].op, x, x, x);
        tol_ptx_end(p);
        MUST(tol_ptx_finish(p, &text, NULL));
        cr_assert_eq(strncmp(text, cases[i].target, strlen(cases[i].target)), 0, "%.60s", text);
        tol_ptx_destroy(p);
    }
}

/* The macros evaluate each argument once: nothing else is computed. */
Test(ptx_builder, each_instruction_is_written_once) {
    struct tol_ptx *p = NULL;
    const char *text = NULL;
    unsigned lines = 0;
    MUST(tol_ptx_create(70, &p));
    tol_ptx_kernel(p, "k", 0);
    tol_ptx_value x = tol_ptx_parameter(p, TOL_PTX_U64);
    tol_ptx_store(p, TOL_PTX_GLOBAL, tol_ptx_add(p, x, tol_ptx_mul(p, x, tol_ptx_not(p, x))), 0,
                  tol_ptx_fma(p, x, tol_ptx_not(p, x), x));
    tol_ptx_end(p);
    MUST(tol_ptx_finish(p, &text, NULL));
    for (const char *at = text; (at = strstr(at, ";\n\t")) != NULL; at++) lines++;
    cr_assert_eq(lines, 8, "a declaration, a parameter, six instructions and ret: %s", text);
    tol_ptx_destroy(p);
}
