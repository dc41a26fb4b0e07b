/*
 * Mistakes in the use of the PTX builder: each is reported with its line.
 */
#include "test/test_device.h"

#include <stdio.h>
#include <string.h>

TestSuite(ptx_mistakes);

static void expect(struct tol_ptx *p, int line, tol_status status, const char *words) {
    const char *text = "";
    char place_text[60];
    snprintf(place_text, sizeof place_text, "ptx_mistakes_test.c:%d: ", line);
    MUST_FAIL(tol_ptx_finish(p, &text, NULL), status, words);
    cr_assert(strstr(tol_message(), place_text) != NULL, "not at line %d: %s", line, tol_message());
    cr_assert_null(text);
    tol_ptx_destroy(p);
}

/* A builder with an open kernel, x a float, n a whole number, at an address. */
struct scene {
    struct tol_ptx *p;
    tol_ptx_value at, x, n;
};

static struct scene scene(int for_capability) {
    struct scene s = {0};
    MUST(tol_ptx_create(for_capability, &s.p));
    tol_ptx_kernel(s.p, "k", 0);
    s.at = tol_ptx_parameter(s.p, TOL_PTX_U64);
    s.x = tol_ptx_load(s.p, TOL_PTX_GLOBAL, TOL_PTX_F32, s.at, 0);
    s.n = tol_ptx_load(s.p, TOL_PTX_GLOBAL, TOL_PTX_U32, s.at, 4);
    return s;
}

#define MISTAKE(call, status, words)                                                               \
    do {                                                                                           \
        struct scene s = scene(75);                                                                \
        call;                                                                                      \
        tol_ptx_end(s.p);                                                                          \
        expect(s.p, __LINE__, status, words);                                                      \
    } while (0)
#define WRONG(call, words) MISTAKE(call, TOL_INVALID_ARGUMENT, words)

Test(ptx_mistakes, capabilities_have_a_range) {
    struct tol_ptx *p = NULL;
    static const int wrong[] = {69, 1000, 0, -75};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        MUST_FAIL(tol_ptx_create(wrong[i], &p), TOL_INVALID_ARGUMENT, "not a compute capability");
        cr_assert_null(p);
    }
    MUST(tol_ptx_create(70, &p));
    tol_ptx_destroy(p);
    MUST(tol_ptx_create(999, &p));
    tol_ptx_destroy(p);
}

Test(ptx_mistakes, operands_of_wrong_types_are_named) {
    WRONG(tol_ptx_add(s.p, s.x, s.n), "add: the second operand is a .u32 and must be a .f32");
    WRONG(tol_ptx_fma(s.p, s.x, s.x, s.at), "fma: the third operand is a .u64 and must be a .f32");
    WRONG(tol_ptx_rsqrt(s.p, s.n), "rsqrt: there is no form for .u32");
    WRONG(tol_ptx_and(s.p, s.x, s.x), "and: there is no form for .f32");
    WRONG(tol_ptx_op_at(s.p, TOL_PTX_HERE, (tol_ptx_op)99, s.x, s.x, s.x), "an unknown operation");
    WRONG(tol_ptx_mul_wide(s.p, s.at, s.at), "mul_wide: there is no form for .u64");
    WRONG(tol_ptx_mul_wide(s.p, s.n, s.x), "mul_wide: the second operand is a .f32");
    WRONG(tol_ptx_shift_left(s.p, s.x, s.n), "shift_left: there is no form for .f32");
    WRONG(tol_ptx_shift_right(s.p, s.n, s.at), "shift_right: the second operand is a .u64");
    WRONG(tol_ptx_compare(s.p, TOL_PTX_LT, s.x, s.n), "compare: the second operand is a .u32");
    WRONG(tol_ptx_compare(s.p, (tol_ptx_comparison)7, s.x, s.x),
          "compare: there is no form for .f32");
    WRONG(tol_ptx_select(s.p, s.n, s.x, s.x), "select: the condition is a .u32");
    WRONG(tol_ptx_convert(s.p, TOL_PTX_BF16, s.n),
          "convert: there is no conversion from .u32 to .bf16");
    WRONG(tol_ptx_convert(s.p, TOL_PTX_F32, s.x),
          "convert: there is no conversion from .f32 to .f32");
    WRONG(tol_ptx_as(s.p, TOL_PTX_U64, s.x), "as: a .u64 and a .f32 differ in size");
    WRONG(tol_ptx_join(s.p, TOL_PTX_B32, s.x, s.x), "join: a .f32 is not half of a .b32");
    WRONG(tol_ptx_join(s.p, TOL_PTX_B64, s.x, s.n), "join: the upper half is a .u32");
    WRONG(tol_ptx_shuffle_xor(s.p, s.at, 1), "shuffle_xor: there is no form for .u64 with 1");
    WRONG(tol_ptx_shuffle_xor(s.p, s.x, 32), "shuffle_xor: there is no form for .f32 with 32");
    WRONG(tol_ptx_if(s.p, s.x), "if: the condition is a .f32 and must be a .pred");
    WRONG(tol_ptx_special(s.p, TOL_PTX_REGISTER_COUNT), "special: there is no such register");
    WRONG(tol_ptx_set(s.p, s.x, s.x), "set: the value is not a variable");
    WRONG(tol_ptx_set(s.p, tol_ptx_variable(s.p, s.x), s.n), "set: the value is a .u32");
}

Test(ptx_mistakes, wrong_places_are_named) {
    WRONG(tol_ptx_load(s.p, TOL_PTX_GLOBAL, TOL_PTX_F32, s.n, 0),
          "load: the address is a .u32 and must be a .u64");
    WRONG(tol_ptx_load(s.p, TOL_PTX_SHARED, TOL_PTX_F32, s.at, 0),
          "load: the address is a .u64 and must be a .u32");
    WRONG(tol_ptx_load(s.p, TOL_PTX_GLOBAL, TOL_PTX_F32, s.at, 6),
          "load: the offset 6 is not a multiple of the 4 bytes accessed");
    WRONG(tol_ptx_load(s.p, TOL_PTX_GLOBAL, TOL_PTX_PRED, s.at, 0), "a .pred is not kept");
    WRONG(tol_ptx_load(s.p, TOL_PTX_SPACE_COUNT, TOL_PTX_F32, s.at, 0), "there is no such space");
    WRONG(tol_ptx_store_vector(s.p, TOL_PTX_GLOBAL, 4, s.at, 0,
                               ((tol_ptx_value[]){s.at, s.at, s.at, s.at})),
          "store: there are no vectors of 4 .u64");
    WRONG(tol_ptx_store_vector(s.p, TOL_PTX_GLOBAL, 2, s.at, 0, ((tol_ptx_value[]){s.x, s.n})),
          "store: a value is a .u32 and must be a .f32");
    WRONG(tol_ptx_add_to_memory(s.p, TOL_PTX_GLOBAL, s.at, 0, tol_ptx_f64(s.p, 1)),
          "add_to_memory: there is no form for .f64");
    WRONG(tol_ptx_shared(s.p, 50000), "shared: 50000 bytes, where a kernel has at most 49152");
    WRONG(tol_ptx_parameter(s.p, TOL_PTX_U32), "parameters come before");
}

/* Of parameters alone: nothing else has to be made first. */
Test(ptx_mistakes, a_store_is_an_instruction) {
    struct scene s = {0};
    MUST(tol_ptx_create(75, &s.p));
    tol_ptx_kernel(s.p, "k", 0);
    s.at = tol_ptx_parameter(s.p, TOL_PTX_U64);
    s.n = tol_ptx_parameter(s.p, TOL_PTX_U32);
    tol_ptx_store(s.p, TOL_PTX_GLOBAL, s.at, 0, s.n);
    const int line = __LINE__ + 1;
    (void)tol_ptx_parameter(s.p, TOL_PTX_U32);
    tol_ptx_end(s.p);
    expect(s.p, line, TOL_INVALID_ARGUMENT, "parameters come before");
}

Test(ptx_mistakes, what_the_device_lacks_is_named) {
    MISTAKE(tol_ptx_convert(s.p, TOL_PTX_BF16, s.x), TOL_UNSUPPORTED,
            "cvt.rn.bf16.f32: it needs compute capability 8.0, and the module is for 7.5");
    MISTAKE(tol_ptx_min(s.p, tol_ptx_convert(s.p, TOL_PTX_F16, s.x),
                        tol_ptx_convert(s.p, TOL_PTX_F16, s.x)),
            TOL_UNSUPPORTED, "min.f16: it needs compute capability 8.0");
}

Test(ptx_mistakes, values_end_with_their_block) {
    struct scene s = scene(75), other = scene(75);
    tol_ptx_value zero = tol_ptx_u32(s.p, 0);
    tol_ptx_if(s.p, tol_ptx_compare(s.p, TOL_PTX_EQ, s.n, zero));
    tol_ptx_value inside = tol_ptx_add(s.p, s.n, s.n);
    tol_ptx_else(s.p);
    (void)tol_ptx_add(s.p, inside, s.n); /* the other branch */
    tol_ptx_end(s.p);
    tol_ptx_end(s.p);
    expect(s.p, __LINE__ - 3, TOL_INVALID_ARGUMENT,
           "add: the first operand was made in a block that is closed");

    s = scene(75);
    tol_ptx_end(s.p);
    tol_ptx_kernel(s.p, "second", 0);
    (void)tol_ptx_neg(s.p, s.x); /* another kernel's */
    tol_ptx_end(s.p);
    expect(s.p, __LINE__ - 2, TOL_INVALID_ARGUMENT, "made in a block that is closed");

    s = scene(75);
    (void)tol_ptx_add(s.p, s.x, other.x); /* another builder's */
    expect(s.p, __LINE__ - 1, TOL_INVALID_ARGUMENT, "not a value of this builder");
    tol_ptx_destroy(other.p);
}

Test(ptx_mistakes, blocks_that_do_not_match_are_named) {
    WRONG(tol_ptx_else(s.p), "else: the innermost block is not an if");
    WRONG((tol_ptx_loop(s.p), tol_ptx_end(s.p)), "loop: there is no break_if");
    WRONG(tol_ptx_break_if(s.p, tol_ptx_compare(s.p, TOL_PTX_EQ, s.n, s.n)),
          "break_if: no loop is open");
    WRONG(tol_ptx_kernel(s.p, "again", 0), "kernel: the kernel k is open");
    struct scene s = scene(75);
    tol_ptx_loop(s.p); /* stays open */
    tol_ptx_break_if(s.p, tol_ptx_compare(s.p, TOL_PTX_EQ, s.n, s.n));
    expect(s.p, __LINE__ - 2, TOL_INVALID_ARGUMENT, "what this line opened is not closed");
    s = scene(75);
    for (int i = 0; i < 70; i++) tol_ptx_loop(s.p);
    expect(s.p, __LINE__ - 1, TOL_INVALID_ARGUMENT, "more than 64 nested blocks");
}

Test(ptx_mistakes, wrong_modules_are_refused) {
    struct tol_ptx *p = NULL;
    const char *text = NULL;
    MUST_FAIL(tol_ptx_create(61, &p), TOL_INVALID_ARGUMENT,
              "61 is not a compute capability from 70");
    MUST_FAIL(tol_ptx_create(80, NULL), TOL_INVALID_ARGUMENT, "the result is NULL");
    MUST(tol_ptx_create(80, &p));
    MUST_FAIL(tol_ptx_finish(p, &text, NULL), TOL_INVALID_ARGUMENT, "the module has no kernel");
    MUST_FAIL(tol_ptx_finish(p, NULL, NULL), TOL_INVALID_ARGUMENT, "an argument is NULL");
    static const char *const names[] = {"", "1a", "a-b", "\xc3\xa4", "a b", NULL};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct tol_ptx *named = NULL;
        MUST(tol_ptx_create(80, &named));
        tol_ptx_kernel(named, names[i], 0);
        expect(named, __LINE__ - 1, TOL_INVALID_ARGUMENT, "is not a valid name");
    }
    tol_ptx_end(p);
    expect(p, __LINE__ - 1, TOL_INVALID_ARGUMENT, "end: no kernel is open");
    MUST(tol_ptx_create(80, &p));
    for (int i = 0; i < 2; i++) tol_ptx_kernel(p, "twice", 32), tol_ptx_end(p);
    expect(p, __LINE__ - 1, TOL_INVALID_ARGUMENT, "there is a kernel twice");
    MUST(tol_ptx_create(80, &p));
    tol_ptx_kernel(p, "large", 1025);
    expect(p, __LINE__ - 1, TOL_INVALID_ARGUMENT, "1025 threads");
    tol_ptx_destroy(NULL);
}

Test(ptx_mistakes, only_the_first_mistake_counts) {
    struct scene s = scene(75);
    tol_ptx_value wrong = tol_ptx_add(s.p, s.x, s.n);
    for (int i = 0; i < 1000; i++) wrong = tol_ptx_add(s.p, wrong, wrong);
    cr_assert_eq(tol_ptx_type_of(s.p, wrong), TOL_PTX_TYPE_COUNT);
    expect(s.p, __LINE__ - 3, TOL_INVALID_ARGUMENT, "add: the second operand is a .u32");
}

Test(ptx_mistakes, a_finished_module_is_read_again) {
    struct scene s = scene(75);
    const char *first = NULL, *second = NULL;
    size_t bytes = 0;
    tol_ptx_end(s.p);
    MUST(tol_ptx_finish(s.p, &first, &bytes));
    MUST(tol_ptx_finish(s.p, &second, &bytes));
    cr_assert_eq(first, second);
    tol_ptx_kernel(s.p, "late", 0);
    expect(s.p, __LINE__ - 1, TOL_INVALID_ARGUMENT, "kernel: the module is finished");
}
