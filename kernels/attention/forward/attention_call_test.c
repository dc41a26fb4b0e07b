/*
 * What a call of attention refuses, and what it takes.
 */
#include "attention/forward/attention.h"
#include "attention/forward/attention_variants.h"

#include "test/test_device.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

TestSuite(attention_call, .fini = test_end);

enum { ROWS = 16, KEYS = 32, WIDTH = 64 };

struct stage {
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    struct tol_buffer *q, *kv, *out;
    struct kn_attention good;
};

static struct stage begin(void) {
    struct stage stage = {0};
    MUST(kn_kernels_create(test_context(), &stage.kernels));
    MUST(tol_stream_create(test_context(), NULL, &stage.stream));
    MUST(tol_buffer_create(test_context(), (size_t)2 * ROWS * WIDTH, 4, &stage.q));
    MUST(tol_buffer_create(test_context(), (size_t)2 * KEYS * WIDTH, 4, &stage.kv));
    MUST(tol_buffer_create(test_context(), (size_t)2 * ROWS * WIDTH, 4, &stage.out));
    MUST(tol_buffer_fill_at(stage.q, 0, 0, 4, (size_t)2 * ROWS * WIDTH));
    MUST(tol_buffer_fill_at(stage.kv, 0, 0, 4, (size_t)2 * KEYS * WIDTH));
    stage.good = (struct kn_attention){.type = KN_F32,
                                       .batch = 1,
                                       .heads = 2,
                                       .kv_heads = 1,
                                       .q_length = ROWS,
                                       .kv_length = KEYS,
                                       .head_size = WIDTH,
                                       .q = {.buffer = stage.q},
                                       .k = {.buffer = stage.kv},
                                       .v = {.buffer = stage.kv, .offset = KEYS * WIDTH},
                                       .out = {.buffer = stage.out}};
    return stage;
}

static void end(struct stage *stage) {
    tol_buffer_destroy(stage->q);
    tol_buffer_destroy(stage->kv);
    tol_buffer_destroy(stage->out);
    tol_stream_destroy(stage->stream);
    kn_kernels_destroy(stage->kernels);
}

#define REFUSED(expected, text)                                                                    \
    do {                                                                                           \
        MUST_FAIL(kn_attention(stage.kernels, stage.stream, &bad), expected, text);                \
        bad = stage.good;                                                                          \
    } while (0)

Test(attention_call, shapes_that_make_no_sense_are_refused) {
    struct stage stage = begin();
    struct kn_attention bad = stage.good;
    MUST(kn_attention(stage.kernels, stage.stream, &stage.good));
    bad.kv_heads = 0;
    REFUSED(TOL_INVALID_ARGUMENT, "2 heads of q cannot share 0");
    bad.heads = 3, bad.kv_heads = 2;
    REFUSED(TOL_INVALID_ARGUMENT, "3 heads of q cannot share 2");
    bad.head_size = 0;
    REFUSED(TOL_INVALID_ARGUMENT, "heads of 0 elements");
    bad.head_size = 257;
    REFUSED(TOL_INVALID_ARGUMENT, "heads of 257 elements");
    bad.window = 3;
    REFUSED(TOL_INVALID_ARGUMENT, "a window of 3 keys, and attention is not causal");
    bad.scale = -1;
    REFUSED(TOL_INVALID_ARGUMENT, "a scale of -1");
    bad.scale = NAN;
    REFUSED(TOL_INVALID_ARGUMENT, "a scale of nan");
    bad.type = KN_TYPES;
    REFUSED(TOL_INVALID_ARGUMENT, "does not exist");
    bad.q_length = (size_t)1 << 31;
    REFUSED(TOL_OVER_LIMIT, "2147483648");
    bad.batch = 65536;
    REFUSED(TOL_OVER_LIMIT, "65536 batches");
    MUST_FAIL(kn_attention(stage.kernels, stage.stream, NULL), TOL_INVALID_ARGUMENT, "a problem");
    MUST_FAIL(kn_attention(NULL, stage.stream, &bad), TOL_INVALID_ARGUMENT, "set of kernels");
    MUST_FAIL(kn_attention(stage.kernels, NULL, &bad), TOL_INVALID_ARGUMENT, "a stream");
    end(&stage);
}

/* One row of few heads has its keys shared by many blocks, which need room; many rows have none. */
Test(attention_call, room_is_wanted_where_keys_are_shared) {
    enum { FAR = 4096 };
    struct stage stage = begin();
    tol_auto_buffer struct tol_buffer *keys = NULL, *values = NULL;
    size_t bytes = 0;
    MUST(tol_buffer_create(test_context(), (size_t)FAR * WIDTH, 4, &keys));
    MUST(tol_buffer_create(test_context(), (size_t)FAR * WIDTH, 4, &values));
    struct kn_attention one = stage.good;
    one.q_length = 1, one.kv_length = FAR;
    one.k.buffer = keys, one.v.buffer = values, one.v.offset = 0;
    MUST(kn_attention_workspace(stage.kernels, &one, &bytes));
    cr_assert(bytes >= 2 * 2 * WIDTH * sizeof(float), "%zu", bytes);
    one.variant = "tiled";
    MUST(kn_attention_workspace(stage.kernels, &one, &bytes));
    cr_assert_eq(bytes, 0);
    end(&stage);
}

Test(attention_call, memory_that_does_not_hold_it_is_refused) {
    struct stage stage = begin();
    struct kn_attention bad = stage.good;
    tol_auto_buffer struct tol_buffer *small = NULL;
    MUST(tol_buffer_create(test_context(), 2 * ROWS - 1, sizeof(float), &small));
    bad.q.buffer = NULL;
    REFUSED(TOL_INVALID_ARGUMENT, "q has no buffer");
    bad.v.buffer = NULL;
    REFUSED(TOL_INVALID_ARGUMENT, "v has no buffer");
    bad.out.buffer = NULL;
    REFUSED(TOL_INVALID_ARGUMENT, "out has no buffer");
    bad.kv_length = KEYS + 1;
    REFUSED(TOL_OUT_OF_RANGE, "v is 1 x 1 x 33 rows of 64 elements of 4 bytes");
    bad.k.offset = SIZE_MAX;
    REFUSED(TOL_OUT_OF_RANGE, "k is");
    bad.k.row_stride = SIZE_MAX / 8;
    REFUSED(TOL_OUT_OF_RANGE, "k is");
    bad.out.offset = 1;
    REFUSED(TOL_OUT_OF_RANGE, "out is");
    bad.lse = small;
    REFUSED(TOL_OUT_OF_RANGE, "lse is 32 floats, and its buffer has 124 bytes");
    bad.out.row_stride = WIDTH - 1, bad.out.head_stride = ROWS * WIDTH;
    REFUSED(TOL_INVALID_ARGUMENT, "rows of out overlap");
    bad.out.row_stride = WIDTH, bad.out.head_stride = WIDTH;
    REFUSED(TOL_INVALID_ARGUMENT, "rows of out overlap");
    bad.out.buffer = stage.q;
    REFUSED(TOL_INVALID_ARGUMENT, "out overlaps q");
    bad.out.buffer = stage.kv;
    REFUSED(TOL_INVALID_ARGUMENT, "out overlaps k");
    bad.lse = stage.out;
    REFUSED(TOL_INVALID_ARGUMENT, "out overlaps lse");
    bad.workspace = stage.out;
    REFUSED(TOL_INVALID_ARGUMENT, "out overlaps workspace");
    end(&stage);
}

Test(attention_call, variants_say_why_they_do_not_serve) {
    struct stage stage = begin();
    struct kn_attention bad = stage.good;
    const struct kn_variant *variant = NULL;
    bad.variant = "fastest";
    REFUSED(TOL_NOT_FOUND, "there are grouped, decode, wgmma, tensor, tiled, naive");
    bad.variant = "tensor";
    REFUSED(TOL_UNSUPPORTED, "the type is not f16");
    bad.variant = "decode";
    REFUSED(TOL_UNSUPPORTED, "it is for 8 rows of q and fewer");
    bad.type = KN_F16, bad.variant = "grouped", bad.q_length = 17;
    REFUSED(TOL_UNSUPPORTED, "more than 16 rows share a head of k and v");
    bad.type = KN_F16, bad.variant = "grouped", bad.q_length = 4, bad.causal = true, bad.window = 9;
    REFUSED(TOL_UNSUPPORTED, "it knows no window");
    bad.variant = "tiled", bad.head_size = 60;
    REFUSED(TOL_UNSUPPORTED, "heads are of another size");
    bad.type = KN_BF16, bad.variant = "tensor", bad.q.offset = 1;
    REFUSED(TOL_UNSUPPORTED, "a row does not begin at a multiple of 16 bytes");
    MUST(kn_attention_pick(stage.kernels, &bad, &variant));
    cr_assert(strcmp(variant->entry, "attention_tiled_f32_64") == 0, "%s", variant->entry);
    bad.q_length = 1;
    MUST(kn_attention_pick(stage.kernels, &bad, &variant));
    cr_assert(strcmp(variant->entry, "attention_decode_f32_64") == 0, "%s", variant->entry);
    bad.head_size = 60;
    MUST(kn_attention_pick(stage.kernels, &bad, &variant));
    cr_assert(strcmp(variant->entry, "attention_naive_f32") == 0, "%s", variant->entry);
    end(&stage);
}

/* Goal: the kernel that merges parts is launched by PDL where devices have that. */
Test(attention_call, parts_are_merged_early_from_9_0_on) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (int capability = 75; capability <= 90; capability += 15) {
            const struct tol_device device = {.compute_capability = capability};
            const struct kn_attention of_type = {.type = type};
            const struct attention_problem problem = {.attention = &of_type};
            const struct kn_variant *variant = NULL;
            MUST(kn_variant_pick(&kn_attention_combine, &device, NULL, &problem, &variant));
            cr_assert_str_eq(variant->name, capability < 90 ? "combine" : "combine_early");
        }
    }
}

Test(attention_call, nothing_to_write_is_no_failure) {
    struct stage stage = begin();
    struct kn_attention none = stage.good;
    size_t bytes = 1;
    none.q_length = 0;
    MUST(kn_attention(stage.kernels, stage.stream, &none));
    MUST(kn_attention_workspace(stage.kernels, &none, &bytes));
    cr_assert(bytes == 0);
    none = stage.good, none.batch = 0;
    MUST(kn_attention(stage.kernels, stage.stream, &none));
    none = stage.good, none.heads = none.kv_heads = 0;
    MUST(kn_attention(stage.kernels, stage.stream, &none));
    MUST(tol_stream_synchronize(stage.stream));
    end(&stage);
}
