/*
 * The table of keys, and the search for one that is not in it.
 */
#include "model_keys.h"

#include "core/check.h"

#include <string.h>

enum { SHOWN = 80 };

/* What is done with a key. */
enum effect {
    READ,     /* model.c takes its value */
    HARMLESS, /* it changes nothing, in llama.cpp neither */
    FIXED     /* it must be the value that is computed */
};

static const struct known_key {
    const char *end; /* after the architecture and a dot */
    enum effect effect;
    double fixed;     /* of FIXED; a bool is 0 or 1 */
    const char *only; /* the architecture that has it; NULL: all */
} known_keys[] = {{"attention.causal", FIXED, 1, NULL},
                  {"attention.head_count", READ, 0, NULL},
                  {"attention.head_count_kv", READ, 0, NULL},
                  {"attention.key_length", READ, 0, NULL},
                  {"attention.layer_norm_epsilon", HARMLESS, 0, NULL},
                  {"attention.layer_norm_rms_epsilon", READ, 0, NULL},
                  {"attention.sliding_window", READ, 0, NULL},
                  {"attention.sliding_window_pattern", HARMLESS, 0, NULL},
                  {"attention.temperature_scale", READ, 0, "mistral3"},
                  {"attention.value_length", READ, 0, NULL},
                  {"block_count", READ, 0, NULL},
                  {"context_length", READ, 0, NULL},
                  {"embedding_length", READ, 0, NULL},
                  {"expert_count", READ, 0, NULL},
                  {"expert_group_count", FIXED, 0, NULL},
                  {"expert_group_used_count", FIXED, 0, NULL},
                  {"expert_used_count", FIXED, 0, NULL},
                  {"feed_forward_length", READ, 0, NULL},
                  {"nextn_predict_layers", FIXED, 0, NULL},
                  {"pooling_type", FIXED, 0, NULL},
                  {"rope.dimension_count", READ, 0, NULL},
                  {"rope.freq_base", READ, 0, NULL},
                  {"rope.scale_linear", READ, 0, NULL},
                  {"rope.scaling.attn_factor", READ, 0, NULL},
                  {"rope.scaling.factor", READ, 0, NULL},
                  {"rope.scaling.finetuned", HARMLESS, 0, NULL},
                  {"rope.scaling.original_context_length", READ, 0, NULL},
                  {"rope.scaling.type", READ, 0, NULL},
                  {"rope.scaling.yarn_beta_fast", HARMLESS, 0, NULL},
                  {"rope.scaling.yarn_beta_slow", HARMLESS, 0, NULL},
                  {"rope.scaling.yarn_log_multiplier", READ, 0, "mistral3"},
                  {"tensor_data_layout", HARMLESS, 0, NULL},
                  {"use_parallel_residual", HARMLESS, 0, NULL},
                  {"vocab_size", HARMLESS, 0, NULL}};

static const struct known_key *model_keys_find(const char *architecture, const char *end,
                                               size_t bytes) {
    for (size_t i = 0; i < sizeof known_keys / sizeof known_keys[0]; i++) {
        const struct known_key *known = &known_keys[i];
        if (strlen(known->end) != bytes || memcmp(known->end, end, bytes) != 0) continue;
        return known->only == NULL || strcmp(known->only, architecture) == 0 ? known : NULL;
    }
    return NULL;
}

static bool model_keys_is_number(enum tol_gguf_kind kind) {
    return kind != TOL_GGUF_STRING && kind != TOL_GGUF_ARRAY;
}

static tol_status model_keys_check_one(const struct tol_gguf_value *value,
                                       const char *architecture) {
    tol_status status = TOL_OK;
    const size_t prefix = strlen(architecture) + 1;
    const struct known_key *known =
        model_keys_find(architecture, value->key.bytes + prefix, value->key.count - prefix);
    const int shown = (int)(value->key.count < SHOWN ? value->key.count : SHOWN);
    TOL_CHECK(known != NULL, TOL_UNSUPPORTED,
              "the key %.*s may change what is computed, and this worker does not know how", shown,
              value->key.bytes);
    if (known->effect != FIXED) goto out;
    TOL_CHECK(model_keys_is_number(value->kind), TOL_INVALID_FILE, "the key %.*s is no number",
              shown, value->key.bytes);
    const double number = value->kind == TOL_GGUF_BOOL ? (double)tol_gguf_unsigned_at(value, 0)
                                                       : tol_gguf_real_at(value, 0);
    TOL_CHECK(number == known->fixed, TOL_UNSUPPORTED,
              "the key %.*s is %g; this worker computes models in which it is %g", shown,
              value->key.bytes, number, known->fixed);
out:
    return status;
}

tol_status model_keys_check(const struct tol_gguf *file, const char *architecture) {
    tol_status status = TOL_OK;
    const struct tol_gguf_value *value = NULL;
    const size_t prefix = strlen(architecture);
    for (size_t i = 0; (value = tol_gguf_value_at(file, i)) != NULL; i++) {
        const struct tol_gguf_text key = value->key;
        if (key.count <= prefix || memcmp(key.bytes, architecture, prefix) != 0) continue;
        if (key.bytes[prefix] != '.') continue;
        TOL_TRY(model_keys_check_one(value, architecture));
    }
out:
    return status;
}
