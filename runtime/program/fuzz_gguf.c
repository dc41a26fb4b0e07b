/*
 * Fuzz target: any bytes are a model's file, or are refused with a sentence. Of what is accepted
 * everything lies inside the file and is found by its name; a tokenizer, if it has one, can be
 * used.
 */
#include "fuzz/fuzz_input.h"

#include "tollens.h"

#include <string.h>

enum { LOOKED_AT = 64 };

static void look_at_keys(const struct tol_gguf *gguf, const struct tol_gguf_description *about) {
    for (size_t i = 0; i < about->keys; i++) {
        const struct tol_gguf_value *value = tol_gguf_value_at(gguf, i);
        char *key = fuzz_text((const uint8_t *)value->key.bytes, value->key.count);
        FUZZ_HOLDS(value->offset < about->file_bytes && value->key.count > 0);
        FUZZ_HOLDS(strlen(key) != value->key.count || tol_gguf_find(gguf, key) == value);
        free(key);
        for (uint64_t j = 0; j < value->count && j < LOOKED_AT; j++) {
            struct tol_gguf_text text = tol_gguf_text_at(value, value->count - 1 - j);
            char *copy =
                fuzz_text((const uint8_t *)text.bytes, text.count); /* reads each byte */
            (void)tol_gguf_real_at(value, value->count - 1 - j);
            free(copy);
        }
        FUZZ_HOLDS(tol_gguf_text_at(value, value->count).count == 0);
    }
}

static void look_at_tensors(const struct tol_gguf *gguf, const struct tol_gguf_description *about) {
    for (size_t i = 0; i < about->tensors; i++) {
        const struct tol_gguf_tensor *tensor = tol_gguf_tensor_at(gguf, i);
        unsigned char last = 0;
        FUZZ_HOLDS(tensor->bytes > 0 && tensor->elements > 0);
        FUZZ_HOLDS(tensor->offset >= about->data_offset);
        FUZZ_HOLDS(tensor->bytes <= about->file_bytes - tensor->offset);
        FUZZ_HOLDS(tensor->offset % about->alignment == 0);
        FUZZ_HOLDS(tol_gguf_read(gguf, tensor, tensor->bytes - 1, &last, 1) == TOL_OK);
    }
}

/* Tokens are the vocabulary's, and no part of their text begins inside a UTF-8 sequence. */
static void use_tokenizer(const struct tol_tokenizer *tokenizer) {
    static const char text[] = "a b'S 12345\n\xc3\xa9 \xf0\x9f\x98\x80<s>\xff";
    int32_t tokens[256];
    size_t count = 0, bytes = 0;
    struct tol_encode_options options = {.add_special = true, .parse_special = true};
    tol_status status = tol_tokenizer_encode(tokenizer, text, sizeof text - 1, &options, tokens,
                                             sizeof tokens / sizeof tokens[0], &count);
    FUZZ_HOLDS(status == TOL_OK);
    struct tol_tokenizer_description about;
    tol_tokenizer_describe(tokenizer, &about);
    size_t room = tol_decoder_room(tokenizer);
    char *to = malloc(room);
    struct tol_decoder decoder;
    tol_decoder_begin(&decoder, tokenizer, true, true);
    for (size_t i = 0; i < count; i++) {
        FUZZ_HOLDS(tokens[i] >= 0 && (size_t)tokens[i] < about.tokens);
        FUZZ_HOLDS(tol_decoder_push(&decoder, tokens[i], to, room, &bytes) == TOL_OK);
        FUZZ_HOLDS(bytes == 0 || (to[0] & 0xc0) != 0x80);
    }
    FUZZ_HOLDS(tol_decoder_end(&decoder, to, room, &bytes) == TOL_OK);
    free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct tol_gguf *gguf = NULL;
    struct tol_tokenizer *tokenizer = NULL;
    struct tol_gguf_description about;
    const char *path = fuzz_file("input.gguf", data, size);
    if (tol_gguf_open(path, &gguf) != TOL_OK) {
        FUZZ_HOLDS(gguf == NULL && strstr(tol_message(), "input.gguf") != NULL);
        return 0;
    }
    tol_gguf_describe(gguf, &about);
    FUZZ_HOLDS(about.file_bytes == size);
    look_at_keys(gguf, &about);
    look_at_tensors(gguf, &about);
    if (tol_tokenizer_create(gguf, &tokenizer) == TOL_OK)
        use_tokenizer(tokenizer);
    else
        FUZZ_HOLDS(tol_message()[0] != '\0');
    tol_tokenizer_destroy(tokenizer);
    tol_gguf_close(gguf);
    return 0;
}
