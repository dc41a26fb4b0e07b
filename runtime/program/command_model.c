/*
 * model: what a language model's file holds.
 */
#include "run/command.h"
#include "run/nearest.h"
#include "files/atomic_file.h"
#include "harness/session.h"
#include "model.h"
#include "model_chat.h"
#include "tollens.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long number;

enum { SHOWN = 4, TEXT_SHOWN = 60, TYPES = 64 };

struct model_options {
    const char *path;
};

static bool model_info_words(int count, char **words, struct model_options *options) {
    *options = (struct model_options){.path = NULL};
    for (int i = 0; i < count; i++) {
        const char *value = hyp_model_value_of("-m --model", count, words, &i);
        if (!hyp_model_take_path("model info", value != NULL ? value : words[i], &options->path))
            return false;
    }
    return options->path != NULL || hyp_fail("model info requires a file");
}

/* ---- values ---- */

static void print_element(const struct tol_gguf_value *value, uint64_t index) {
    if (value->element == TOL_GGUF_STRING) {
        char *text = hyp_model_shown(tol_gguf_text_at(value, index), TEXT_SHOWN);
        printf("\"%s\"", text);
        free(text);
    } else if (value->element == TOL_GGUF_BOOL) {
        printf("%s", tol_gguf_unsigned_at(value, index) != 0 ? "true" : "false");
    } else if (value->element == TOL_GGUF_F32 || value->element == TOL_GGUF_F64) {
        printf("%.*g", value->element == TOL_GGUF_F32 ? 7 : 15, tol_gguf_real_at(value, index));
    } else if (value->element == TOL_GGUF_U64) {
        printf("%llu", (number)tol_gguf_unsigned_at(value, index));
    } else {
        printf("%lld", (long long)tol_gguf_signed_at(value, index));
    }
}

static json_t *model_element_of(const struct tol_gguf_value *value, uint64_t index) {
    struct tol_gguf_text text = tol_gguf_text_at(value, index);
    if (value->element == TOL_GGUF_STRING) {
        json_t *plain = json_stringn(text.bytes, text.count);
        char *shown = plain == NULL ? hyp_model_shown(text, text.count) : NULL;
        if (plain == NULL) plain = json_string(shown);
        free(shown);
        return plain;
    }
    if (value->element == TOL_GGUF_BOOL) {
        return json_boolean(tol_gguf_unsigned_at(value, index) != 0);
    }
    if (value->element == TOL_GGUF_F32 || value->element == TOL_GGUF_F64) {
        json_t *real = json_real(tol_gguf_real_at(value, index));
        return real != NULL ? real : json_null(); /* infinities have no JSON */
    }
    /* JSON's integers here are signed; those above become reals. */
    uint64_t natural = tol_gguf_unsigned_at(value, index);
    if (value->element == TOL_GGUF_U64 && natural > INT64_MAX) return json_real((double)natural);
    return json_integer(tol_gguf_signed_at(value, index));
}

/* ---- for people ---- */

/* Of an array, which has a number per layer, the first one. */
static uint64_t model_size_of(const struct tol_gguf *gguf, const char *arch, const char *name) {
    char key[160];
    snprintf(key, sizeof key, "%s.%s", arch, name);
    const struct tol_gguf_value *value = tol_gguf_find(gguf, key);
    return value != NULL && value->count > 0 ? tol_gguf_unsigned_at(value, 0) : 0;
}

static void print_model(const struct tol_gguf *gguf) {
    struct tol_gguf_text text;
    if (tol_gguf_get_text(gguf, "general.architecture", &text) != TOL_OK) {
        printf("architecture: not stated\n");
        return;
    }
    char *arch = hyp_model_shown(text, TEXT_SHOWN);
    printf("architecture: %s, %llu layers, hidden size %llu, feed-forward size %llu, %llu heads, "
           "%llu of keys and values, context %llu\n",
           arch, (number)model_size_of(gguf, arch, "block_count"),
           (number)model_size_of(gguf, arch, "embedding_length"),
           (number)model_size_of(gguf, arch, "feed_forward_length"),
           (number)model_size_of(gguf, arch, "attention.head_count"),
           (number)model_size_of(gguf, arch, "attention.head_count_kv"),
           (number)model_size_of(gguf, arch, "context_length"));
    free(arch);
}

static void print_tokenizer(const struct tol_gguf *gguf) {
    struct tol_tokenizer *tokenizer = NULL;
    struct tol_tokenizer_description about;
    if (tol_tokenizer_create(gguf, &tokenizer) != TOL_OK) {
        printf("tokenizer: none that is supported: %s\n", hyp_session_message());
        return;
    }
    tol_tokenizer_describe(tokenizer, &about);
    printf("tokenizer: %s%s%s, %zu tokens, bos %d%s, eos %d%s\n",
           about.model == TOL_TOKENIZER_SPM ? "SPM" : "BPE", about.pre[0] != '\0' ? " " : "",
           about.pre, about.tokens, about.bos, about.adds_bos ? " (added)" : "", about.eos,
           about.adds_eos ? " (added)" : "");
    tol_tokenizer_destroy(tokenizer);
}

static void print_chat(const struct tol_gguf *gguf) {
    const tol_status status = hyp_model_chat_try(gguf);
    if (status == TOL_NOT_FOUND) {
        printf("chat template: none\n");
    } else if (status == TOL_OK) {
        printf("chat template: model run --chat applies it\n");
    } else {
        printf("chat template: model run --chat refuses it: %s\n", hyp_session_message());
    }
}

static void print_types(const struct tol_gguf *gguf, size_t count) {
    size_t tensors[TYPES] = {0};
    uint64_t bytes[TYPES] = {0};
    for (size_t i = 0; i < count; i++) {
        const struct tol_gguf_tensor *tensor = tol_gguf_tensor_at(gguf, i);
        tensors[tensor->type]++;
        bytes[tensor->type] += tensor->bytes;
    }
    for (unsigned type = 0; type < TYPES; type++) {
        if (tensors[type] == 0) continue;
        printf("  %-8s %6zu tensor%s %15llu bytes\n", tol_tensor_type_name(type), tensors[type],
               tensors[type] == 1 ? " " : "s", (number)bytes[type]);
    }
}

static void print_keys(const struct tol_gguf *gguf) {
    const struct tol_gguf_value *value;
    printf("keys:\n");
    for (size_t i = 0; (value = tol_gguf_value_at(gguf, i)) != NULL; i++) {
        char *key = hyp_model_shown(value->key, value->key.count);
        bool is_array = value->kind == TOL_GGUF_ARRAY;
        printf("  %-40s ", key);
        if (is_array) printf("%llu x ", (number)value->count);
        printf("%s ", tol_gguf_kind_name(value->element));
        for (uint64_t j = 0; j < value->count && j < SHOWN; j++) {
            if (j > 0) printf(", ");
            print_element(value, j);
        }
        printf("%s\n", value->count > SHOWN ? ", ..." : "");
        free(key);
    }
}

static void print_tensors(const struct tol_gguf *gguf) {
    const struct tol_gguf_tensor *tensor;
    printf("tensors:\n");
    for (size_t i = 0; (tensor = tol_gguf_tensor_at(gguf, i)) != NULL; i++) {
        char *name = hyp_model_shown(tensor->name, tensor->name.count);
        char extents[128] = "";
        int length = 0;
        for (unsigned j = 0; j < tensor->dimensions; j++) {
            length += snprintf(extents + length, sizeof extents - (size_t)length, "%s%llu",
                               j > 0 ? " x " : "", (number)tensor->extent[j]);
        }
        printf("  %-32s %-8s %-24s %12llu bytes at %llu\n", name,
               tol_tensor_type_name(tensor->type), extents, (number)tensor->bytes,
               (number)tensor->offset);
        free(name);
    }
}

static void print_file(const struct tol_gguf *gguf, const char *path) {
    struct tol_gguf_description about;
    if (tol_model_supported(path) == TOL_OK) {
        printf("this worker can run it, as llama.cpp does\n");
    } else {
        printf("this worker cannot run it: %s\n", hyp_session_message());
    }
    tol_gguf_describe(gguf, &about);
    printf("%s: GGUF version %u, %llu bytes, %zu keys, %zu tensors of %llu bytes from byte %llu "
           "on, aligned to %u\n",
           path, about.version, (number)about.file_bytes, about.keys, about.tensors,
           (number)about.tensor_bytes, (number)about.data_offset, about.alignment);
    print_model(gguf);
    print_tokenizer(gguf);
    print_chat(gguf);
    print_types(gguf, about.tensors);
    print_keys(gguf);
    print_tensors(gguf);
}

/* ---- for programs ---- */

static json_t *keys_of(const struct tol_gguf *gguf) {
    const struct tol_gguf_value *value;
    json_t *keys = json_object();
    for (size_t i = 0; (value = tol_gguf_value_at(gguf, i)) != NULL; i++) {
        char *key = hyp_model_shown(value->key, value->key.count);
        json_t *entry = json_pack("{s:s}", "kind", tol_gguf_kind_name(value->element));
        if (value->kind == TOL_GGUF_ARRAY) {
            json_t *elements = json_array();
            for (uint64_t j = 0; j < value->count; j++) {
                json_array_append_new(elements, model_element_of(value, j));
            }
            json_object_set_new(entry, "array", elements);
        } else {
            json_object_set_new(entry, "value", model_element_of(value, 0));
        }
        json_object_set_new(keys, key, entry);
        free(key);
    }
    return keys;
}

static json_t *tensors_of(const struct tol_gguf *gguf) {
    const struct tol_gguf_tensor *tensor;
    json_t *tensors = json_array();
    for (size_t i = 0; (tensor = tol_gguf_tensor_at(gguf, i)) != NULL; i++) {
        char *name = hyp_model_shown(tensor->name, tensor->name.count);
        json_t *extent = json_array();
        for (unsigned j = 0; j < tensor->dimensions; j++) {
            json_array_append_new(extent, json_integer((json_int_t)tensor->extent[j]));
        }
        json_array_append_new(tensors, json_pack("{s:s, s:s, s:o, s:I, s:I}", "name", name, "type",
                                                 tol_tensor_type_name(tensor->type), "extent",
                                                 extent, "bytes", (json_int_t)tensor->bytes,
                                                 "offset", (json_int_t)tensor->offset));
        free(name);
    }
    return tensors;
}

static bool model_print_json(const struct tol_gguf *gguf, const char *path) {
    struct tol_gguf_description about;
    const bool runs = tol_model_supported(path) == TOL_OK;
    json_t *why = runs ? json_null() : json_string(hyp_session_message());
    tol_gguf_describe(gguf, &about);
    json_t *all =
        json_pack("{s:i, s:s, s:b, s:o, s:i, s:i, s:I, s:I, s:I, s:o, s:o}", "schema", 1, "file",
                  path, "runs", runs, "why_not", why, "version", (int)about.version, "alignment",
                  (int)about.alignment, "file_bytes", (json_int_t)about.file_bytes, "data_offset",
                  (json_int_t)about.data_offset, "tensor_bytes", (json_int_t)about.tensor_bytes,
                  "keys", keys_of(gguf), "tensors", tensors_of(gguf));
    char *text = all != NULL ? json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(all);
    if (text == NULL) return hyp_fail("%s cannot be written as JSON", path);
    puts(text);
    free(text);
    return true;
}

static int model_info(int count, char **words) {
    struct model_options options;
    struct tol_gguf *gguf = NULL;
    bool ok = model_info_words(count, words, &options);
    if (ok && tol_gguf_open(options.path, &gguf) != TOL_OK) {
        ok = hyp_fail("%s", hyp_session_message());
    }
    if (ok && hyp_command_is_json())
        ok = model_print_json(gguf, options.path);
    else if (ok)
        print_file(gguf, options.path);
    tol_gguf_close(gguf);
    return ok ? HYP_EXIT_OK : hyp_command_complain("%s", hyp_error());
}

int hyp_command_model(int count, char **words) {
    enum { COMMANDS = 4 };
    static const char *const names[COMMANDS] = {"info", "run", "bench", "tokenize"};
    static int (*const commands[COMMANDS])(int, char **) = {
        model_info, hyp_command_model_run, hyp_command_model_bench, hyp_command_model_tokenize};
    for (int i = 0; count > 0 && i < COMMANDS; i++) {
        if (strcmp(words[0], names[i]) == 0) return commands[i](count - 1, words + 1);
    }
    const char *near = count > 0 ? hyp_nearest(words[0], names, COMMANDS) : NULL;
    if (near == NULL) {
        return hyp_command_complain(
            "model requires: info FILE, run FILE, tokenize FILE or bench FILE");
    }
    return hyp_command_complain("model has no command %s; did you mean %s?", words[0], near);
}
