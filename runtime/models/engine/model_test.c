/*
 * What makes a file a model, and what is refused by name.
 */
#include "model.h"
#include "tiny_model_scene.h"

#include "test/test_device.h"

TestSuite(model, .fini = test_end);

static const struct tiny_model good = {.architecture = "llama",
                                       .layers = 2,
                                       .width = 64,
                                       .feed_forward = 96,
                                       .heads = 4,
                                       .kv_heads = 2,
                                       .head_size = 16,
                                       .vocabulary = 40,
                                       .context = 128,
                                       .type = TOL_TENSOR_F16,
                                       .v_type = TOL_TENSOR_F16,
                                       .embedding_type = TOL_TENSOR_F16};

Test(model, keys_become_its_shape) {
    struct gguf_maker maker = {0};
    struct tol_model *model = NULL;
    struct tiny_model tiny = good;
    tiny.architecture = "mistral", tiny.rotated = 8, tiny.window = 50, tiny.scaling = "linear",
    tiny.factor = 2;
    tiny_model_write(&tiny, &maker);
    MUST(tol_model_open(maker.path, &model));
    const struct tol_model_shape *s = tol_model_shape(model);
    cr_assert(strcmp(s->architecture, "mistral") == 0);
    cr_assert(s->layers == 2 && s->width == 64 && s->feed_forward == 96 && s->heads == 4);
    cr_assert(s->kv_heads == 2 && s->head_size == 16 && s->vocabulary == 40);
    cr_assert(s->context_max == 128 && s->rotated == 8 && s->window == 50);
    cr_assert(!s->tied && !s->halves && s->magnitude == 1 && s->epsilon == 1e-5f);
    cr_assert(tol_model_parts(model)->frequencies[0] == 0.5f);
    cr_assert(tol_model_parts(model)->layers[1].down->extent[0] == 96);
    struct tol_gguf_description file;
    tol_gguf_describe(tol_model_file(model), &file);
    cr_assert(s->weight_bytes == file.tensor_bytes);
    tol_model_close(model);
    tol_model_close(NULL);
    maker_end(&maker);
}

static void refused(const struct tiny_model *tiny, tol_status status, const char *text) {
    struct gguf_maker maker = {0};
    struct tol_model *model = NULL;
    tiny_model_write(tiny, &maker);
    MUST_FAIL(tol_model_open(maker.path, &model), status, text);
    cr_assert(model == NULL);
    maker_end(&maker);
}

#define REFUSED(change, status, text)                                                              \
    do {                                                                                           \
        struct tiny_model m = good;                                                                \
        change;                                                                                    \
        refused(&m, status, text);                                                                 \
    } while (0)

Test(model, what_is_not_computed_is_refused_by_name) {
    REFUSED(m.architecture = "mamba", TOL_UNSUPPORTED, "architecture is \"mamba\"");
    REFUSED((m.type = TOL_TENSOR_TQ1_0, m.width = m.feed_forward = 256, m.heads = 16),
            TOL_UNSUPPORTED,
            "13 tensors, such as blk.0.attn_q.weight, are of TQ1_0, which this worker does not "
            "compute");
    REFUSED((m.embedding_type = TOL_TENSOR_NVFP4, m.v_type = TOL_TENSOR_MXFP4), TOL_UNSUPPORTED,
            "2 tensors, such as blk.0.attn_v.weight, are of MXFP4, the tensor token_embd.weight is "
            "of NVFP4");
    REFUSED(m.with = "blk.0.ffn_gate_inp.weight", TOL_UNSUPPORTED,
            "blk.0.ffn_gate_inp.weight has no place in a model of architecture llama");
    REFUSED(m.scaling = "longrope", TOL_UNSUPPORTED,
            "scaled by \"longrope\" (llama.rope.scaling.type)");
    REFUSED(m.head_size = 12, TOL_UNSUPPORTED, "heads have 12 elements");
    REFUSED((m.fused = true, m.with = "blk.0.attn_q.weight"), TOL_UNSUPPORTED,
            "blk.0.attn_q.weight has no place");
    REFUSED(m.vector_type = TOL_TENSOR_Q8_0, TOL_UNSUPPORTED,
            "output_norm.weight is of Q8_0, which this worker does not compute in tensors of one "
            "dimension");
    REFUSED(m.with = "blk.0.attn_q_norm.weight", TOL_UNSUPPORTED,
            "attn_q_norm.weight has no place");
}

Test(model, what_is_missing_or_misshapen_is_refused) {
    struct tol_model *model = NULL;
    REFUSED(m.without = "output_norm.weight", TOL_INVALID_FILE, "output_norm.weight is missing");
    REFUSED(m.without = "token_embd.weight", TOL_INVALID_FILE, "token_embd.weight is missing");
    REFUSED(m.without = "blk.1.ffn_up.weight", TOL_INVALID_FILE, "blk.1.ffn_up.weight is missing");
    REFUSED((m.architecture = "qwen3", m.without = "blk.1.attn_k_norm.weight"), TOL_INVALID_FILE,
            "blk.1.attn_k_norm.weight is missing");
    REFUSED(m.tokens = 30, TOL_INVALID_FILE,
            "the tensor token_embd.weight has 40 rows, and the tokenizer 30 tokens");
    REFUSED(m.tokens = 41, TOL_INVALID_FILE, "40 rows, and the tokenizer 41 tokens");
    REFUSED(m.kv_heads = 3, TOL_INVALID_FILE, "4 heads of q cannot share 3");
    REFUSED(m.rotated = 8, TOL_UNSUPPORTED,
            "(llama.rope.dimension_count), which is not computed for the architecture llama");
    REFUSED(m.rotated = 18, TOL_INVALID_FILE, "18 elements of a head of 16");
    MUST_FAIL(tol_model_open("/no/such/file", &model), TOL_UNREADABLE, "/no/such/file");
    MUST_FAIL(tol_model_open(NULL, &model), TOL_INVALID_ARGUMENT, "a path");
}

static struct tol_model_shape shape_of(const struct tiny_model *tiny, float *first) {
    struct gguf_maker maker = {0};
    struct tol_model *model = NULL;
    tiny_model_write(tiny, &maker);
    MUST(tol_model_open(maker.path, &model));
    const struct tol_model_shape shape = *tol_model_shape(model);
    *first = tol_model_parts(model)->frequencies[0];
    tol_model_close(model);
    maker_end(&maker);
    return shape;
}

#define KEYS(...) memcpy(m.keys, ((struct tiny_key[TINY_KEYS_MAX]){__VA_ARGS__}), sizeof m.keys)

/* As llama.cpp reads them: the first frequency is 1 over the factor. */
Test(model, keys_of_the_rotation_are_llama_cpps) {
    static const struct {
        const char *scaling;
        double factor;
        struct tiny_key key;
        float frequency, magnitude;
    } cases[] = {{"", 4, {NULL}, 0.25f, 1},     /* without a type it is linear */
                 {"linear", 0.5, {NULL}, 2, 1}, /* a factor below 1 */
                 {"none", 4, {NULL}, 1, 1},     /* no scaling, whatever the factor */
                 {"", -1, {"rope.scale_linear", TOL_GGUF_F32, 4, NULL}, 0.25f, 1},
                 {"none", -1, {"rope.scale_linear", TOL_GGUF_F32, 4, NULL}, 1, 1},
                 {"linear", 2, {"rope.scale_linear", TOL_GGUF_F32, 4, NULL}, 0.5f, 1},
                 {"linear", 4, {"rope.scaling.attn_factor", TOL_GGUF_F32, 0.5, NULL}, 0.25f, 0.5f},
                 {NULL, -1, {"rope.scaling.attn_factor", TOL_GGUF_F32, 0.5, NULL}, 1, 0.5f},
                 {"linear", 1, {"rope.scaling.yarn_beta_fast", TOL_GGUF_F32, 3, NULL}, 1, 1},
                 {"linear", 1, {"rope.scaling.finetuned", TOL_GGUF_BOOL, 1, NULL}, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tiny_model m = good;
        float first = 0;
        m.scaling = cases[i].scaling, m.factor = cases[i].factor;
        m.keys[0] = cases[i].key;
        const struct tol_model_shape shape = shape_of(&m, &first);
        cr_assert(first == cases[i].frequency && shape.magnitude == cases[i].magnitude,
                  "case %zu: %g, %g", i, (double)first, (double)shape.magnitude);
    }
}

Test(model, a_key_that_may_change_the_computation_is_refused_by_name) {
    REFUSED(KEYS({"attention.causal", TOL_GGUF_BOOL, 0, NULL}), TOL_UNSUPPORTED,
            "the key llama.attention.causal is 0; this worker computes models in which it is 1");
    REFUSED(KEYS({"logit_scale", TOL_GGUF_F32, 2, NULL}), TOL_UNSUPPORTED,
            "the key llama.logit_scale may change what is computed");
    REFUSED(KEYS({"attention.temperature_scale", TOL_GGUF_F32, 0.1, NULL}), TOL_UNSUPPORTED,
            "the key llama.attention.temperature_scale may change");
    REFUSED(KEYS({"expert_used_count", TOL_GGUF_U32, 1, NULL}), TOL_UNSUPPORTED,
            "the key llama.expert_used_count is 1");
    REFUSED(KEYS({"expert_count", TOL_GGUF_U32, 2, NULL}), TOL_UNSUPPORTED,
            "a mixture of 2 experts (llama.expert_count)");
    REFUSED(KEYS({"rope.scaling.yarn_log_multiplier", TOL_GGUF_F32, 1, NULL}), TOL_UNSUPPORTED,
            "llama.rope.scaling.yarn_log_multiplier may change");
    REFUSED((m.architecture = "qwen2", KEYS({"pooling_type", TOL_GGUF_U32, 3, NULL})),
            TOL_UNSUPPORTED, "the key qwen2.pooling_type is 3");
    REFUSED(KEYS({"attention.causal", TOL_GGUF_STRING, 0, "no"}), TOL_INVALID_FILE,
            "llama.attention.causal is no number");
    struct tiny_model m = good;
    float first = 0;
    KEYS({"attention.causal", TOL_GGUF_BOOL, 1, NULL}, {"vocab_size", TOL_GGUF_U32, 40, NULL});
    (void)shape_of(&m, &first);
    m.window = 8;
    cr_assert(shape_of(&m, &first).window == 0, "llama.cpp reads no window for llama");
}

/* Its positions end where its queries would be scaled. */
Test(model, mistral3_is_computed_within_its_original_context) {
    struct tiny_model m = good;
    float first = 0;
    m.architecture = "mistral3", m.scaling = "yarn", m.factor = 4;
    KEYS({"rope.scaling.yarn_log_multiplier", TOL_GGUF_F32, 1, NULL},
         {"rope.scaling.yarn_beta_fast", TOL_GGUF_F32, 4, NULL},
         {"attention.temperature_scale", TOL_GGUF_F32, 0, NULL});
    struct tol_model_shape shape = shape_of(&m, &first);
    cr_assert(shape.magnitude == 1 && !shape.halves && shape.context_max == m.context);
    m.keys[2].number = 0.1;
    cr_assert(shape_of(&m, &first).context_max == m.context / 4 + 1);
    m.keys[2].number = -1;
    refused(&m, TOL_INVALID_FILE, "mistral3.attention.temperature_scale is -1");
    m.keys[2] = (struct tiny_key){"attention.scale", TOL_GGUF_F32, 0.5, NULL};
    refused(&m, TOL_UNSUPPORTED, "the key mistral3.attention.scale may change");
}

Test(model, a_number_per_layer_is_one_number_if_all_are_the_same) {
    struct tiny_model m = good;
    float first = 0;
    m.layers = 3, m.kv_heads_last = 2;
    cr_assert(shape_of(&m, &first).kv_heads == 2);
    m.kv_heads_last = 4;
    refused(&m, TOL_UNSUPPORTED,
            "the key llama.attention.head_count_kv is 2 for layer 0 and 4 for layer 2; this worker "
            "computes layers of one shape");
}

/* The answer is that of opening, and the tokenizer's. */
Test(model, whether_a_file_is_supported_is_said_without_a_device) {
    struct gguf_maker maker = {0};
    struct tiny_model m = good;
    m.tokens = m.vocabulary;
    tiny_model_write(&m, &maker);
    MUST(tol_model_supported(maker.path));
    maker_end(&maker);
    m.tokens = 0;
    tiny_model_write(&m, &maker);
    MUST_FAIL(tol_model_supported(maker.path), TOL_NOT_FOUND, "tokenizer.ggml.model");
    maker_end(&maker);
    m.tokens = 39;
    tiny_model_write(&m, &maker);
    MUST_FAIL(tol_model_supported(maker.path), TOL_INVALID_FILE, "the tokenizer 39 tokens");
    maker_end(&maker);
    MUST_FAIL(tol_model_supported(NULL), TOL_INVALID_ARGUMENT, "a path");
}

/* One block of 32 elements per type, whose quants are 0, 1, 2, ...: with d = 0.5 and m = 3. */
static double value_of(enum tol_tensor_type type, unsigned quant) {
    static const int table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};
    const double q = (double)quant;
    return type == TOL_TENSOR_Q4_0     ? 0.5 * (q - 8)
           : type == TOL_TENSOR_Q5_0   ? 0.5 * (q - 16)
           : type == TOL_TENSOR_IQ4_NL ? 0.5 * table[quant]
                                       : 0.5 * q + 3;
}

static void write_blocks(struct gguf_maker *maker, enum tol_tensor_type type, unsigned blocks) {
    const bool has_min = type == TOL_TENSOR_Q4_1 || type == TOL_TENSOR_Q5_1;
    const bool has_fifth = type == TOL_TENSOR_Q5_0 || type == TOL_TENSOR_Q5_1;
    const uint16_t both[2] = {0x3800, 0x4200}; /* 0.5, 3 */
    const uint64_t extent[2] = {32, blocks};
    maker_begin(maker, 3, 1, 0);
    maker_tensor(maker, "w", 2, extent, type, 0);
    maker_pad(maker, 32);
    for (unsigned b = 0; b < blocks; b++) {
        uint8_t nibbles[16];
        const uint32_t fifth = 0xffff0000; /* of elements 16 to 31 */
        for (unsigned i = 0; i < 16; i++) nibbles[i] = (uint8_t)(i | i << 4);
        maker_bytes(maker, both, has_min ? 4 : 2);
        if (has_fifth) maker_bytes(maker, &fifth, sizeof fifth);
        maker_bytes(maker, nibbles, sizeof nibbles);
    }
    maker_pad(maker, 32);
}

Test(model, blocks_that_no_kernel_has_become_others_of_the_same_values) {
    static const enum tol_tensor_type types[] = {TOL_TENSOR_Q4_0, TOL_TENSOR_Q4_1, TOL_TENSOR_Q5_0,
                                                 TOL_TENSOR_Q5_1, TOL_TENSOR_IQ4_NL};
    enum { BLOCKS = 5, COUNT = 32 * BLOCKS };
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        struct gguf_maker maker = {0};
        struct tol_gguf *file = NULL;
        enum kn_weight_format format;
        uint8_t bytes[4 * COUNT], part[4 * COUNT];
        float values[COUNT];
        write_blocks(&maker, types[t], BLOCKS);
        MUST(maker_open(&maker, &file));
        const struct tol_gguf_tensor *tensor = tol_gguf_tensor_at(file, 0);
        const size_t all = (size_t)tol_model_weight_bytes(tensor);
        cr_assert(tol_model_format(types[t], &format));
        cr_assert(all == kn_weight_row_bytes(format, COUNT) && all <= sizeof bytes);
        MUST(tol_model_read(file, tensor, 0, bytes, all));
        kn_weight_values(format, bytes, COUNT, values);
        const bool has_fifth = types[t] == TOL_TENSOR_Q5_0 || types[t] == TOL_TENSOR_Q5_1;
        for (unsigned i = 0; i < COUNT; i++) {
            const unsigned quant = i % 32 < 16 || has_fifth ? i % 32 : i % 16;
            cr_assert((double)values[i] == value_of(types[t], quant), "%s, %u: %g",
                      tol_tensor_type_name(types[t]), i, (double)values[i]);
        }
        for (size_t from = 0; from <= all; from += 11) { /* parts begin inside blocks */
            const size_t count = all - from < 100 ? all - from : 100;
            MUST(tol_model_read(file, tensor, from, part, count));
            cr_assert(memcmp(part, bytes + from, count) == 0);
        }
        MUST_FAIL(tol_model_read(file, tensor, all - 1, part, 2), TOL_OUT_OF_RANGE, "tensor w");
        tol_gguf_close(file);
        maker_end(&maker);
    }
}
