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
    tiny.rotated = 8, tiny.window = 50, tiny.scaling = "linear", tiny.factor = 2;
    tiny_model_write(&tiny, &maker);
    MUST(tol_model_open(maker.path, &model));
    const struct tol_model_shape *s = tol_model_shape(model);
    cr_assert(strcmp(s->architecture, "llama") == 0);
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
    REFUSED((m.type = TOL_TENSOR_Q4_0), TOL_UNSUPPORTED, "output.weight is of Q4_0");
    REFUSED(m.with = "blk.0.ffn_gate_inp.weight", TOL_UNSUPPORTED,
            "blk.0.ffn_gate_inp.weight has no place in a model of architecture llama");
    REFUSED(m.scaling = "longrope", TOL_UNSUPPORTED, "scaled by \"longrope\"");
    REFUSED(m.head_size = 12, TOL_UNSUPPORTED, "heads have 12 elements");
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
    REFUSED((m.architecture = "qwen2", m.without = "blk.0.attn_v.bias"), TOL_INVALID_FILE,
            "blk.0.attn_v.bias is missing");
    REFUSED(m.kv_heads = 3, TOL_INVALID_FILE, "4 heads of q cannot share 3");
    REFUSED(m.rotated = 18, TOL_INVALID_FILE, "18 elements of a head of 16");
    MUST_FAIL(tol_model_open("/no/such/file", &model), TOL_UNREADABLE, "/no/such/file");
    MUST_FAIL(tol_model_open(NULL, &model), TOL_INVALID_ARGUMENT, "a path");
}
