/*
 * The tokenizers against llama.cpp: fixtures/models/tokens.bin.xz has the ids of 10,000 texts and
 * the text of each token, in four vocabularies; its README has the format.
 */
#include "test/test_device.h"

#include <lzma.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    unsigned char *bytes;
    size_t at, count;
};

struct text {
    const char *bytes;
    size_t count;
};

static struct reader unpacked(const char *name) {
    size_t packed = 0, in = 0;
    uint64_t limit = UINT64_MAX;
    struct reader reader = {.count = 64u << 20};
    char *file = test_fixture(name, &packed);
    reader.bytes = malloc(reader.count);
    cr_assert_not_null(reader.bytes);
    size_t out = 0;
    cr_assert(lzma_stream_buffer_decode(&limit, 0, NULL, (const uint8_t *)file, &in, packed,
                                        reader.bytes, &out, reader.count) == LZMA_OK);
    reader.count = out;
    free(file);
    return reader;
}

static uint32_t number(struct reader *reader, size_t bytes) {
    uint32_t value = 0;
    cr_assert(reader->at + bytes <= reader->count);
    memcpy(&value, reader->bytes + reader->at, bytes);
    reader->at += bytes;
    return value;
}

static struct text text(struct reader *reader, size_t length_bytes) {
    size_t count = number(reader, length_bytes);
    cr_assert(reader->at + count <= reader->count);
    struct text found = {(const char *)reader->bytes + reader->at, count};
    reader->at += count;
    return found;
}

static void check_pieces(const struct tol_tokenizer *tokenizer, struct reader *reader) {
    struct tol_tokenizer_description about;
    tol_tokenizer_describe(tokenizer, &about);
    cr_assert(about.tokens == number(reader, 4) && about.tokens > 1000);
    for (int32_t token = 0; token < (int32_t)about.tokens; token++) {
        for (int plain = 0; plain < 2; plain++) {
            struct text expected = text(reader, 1);
            struct tol_gguf_text piece = tol_tokenizer_piece(tokenizer, token, plain == 0);
            cr_assert(piece.count == expected.count &&
                          memcmp(piece.bytes, expected.bytes, piece.count) == 0,
                      "token %d: \"%.*s\", not \"%.*s\"", token, (int)piece.count, piece.bytes,
                      (int)expected.count, expected.bytes);
        }
    }
}

/* How many texts have other tokens; prints the first ones. */
static size_t check_texts(const struct tol_tokenizer *tokenizer, const char *name,
                          const struct text *texts, size_t count, struct reader *reader) {
    enum { ROOM = 4096 };
    static int32_t tokens[ROOM];
    size_t different = 0, found = 0;
    for (size_t i = 0; i < count; i++) {
        struct tol_encode_options options = {.add_special = i % 2 == 1,
                                             .parse_special = (i & 2) != 0};
        size_t expected = number(reader, 2), differs = 0;
        MUST(tol_tokenizer_encode(tokenizer, texts[i].bytes, texts[i].count, &options, tokens, ROOM,
                                  &found));
        for (size_t j = 0; j < expected; j++) {
            uint32_t token = number(reader, 2);
            differs |= j >= found || tokens[j] != (int32_t)token;
        }
        if (found == expected && !differs) continue;
        if (++different > 3) continue;
        fprintf(stderr, "%s: text %zu has %zu tokens, not %zu, or others: \"%.*s\"\n", name, i,
                found, expected, (int)texts[i].count, texts[i].bytes);
    }
    return different;
}

static size_t check_vocabulary(const struct text *texts, size_t count, struct reader *reader) {
    char path[128];
    struct tol_gguf *gguf = NULL;
    struct tol_tokenizer *tokenizer = NULL;
    struct text name = text(reader, 1);
    snprintf(path, sizeof path, "models/%.*s.gguf", (int)name.count, name.bytes);
    MUST(tol_gguf_open(test_fixture_path(path), &gguf));
    MUST(tol_tokenizer_create(gguf, &tokenizer));
    tol_gguf_close(gguf);
    check_pieces(tokenizer, reader);
    size_t different = check_texts(tokenizer, path, texts, count, reader);
    tol_tokenizer_destroy(tokenizer);
    return different;
}

Test(tokenizer, tokens_and_their_texts_are_llama_cpps) {
    struct reader reader = unpacked("models/tokens.bin.xz");
    size_t count = number(&reader, 4), different = 0;
    struct text *texts = calloc(count, sizeof *texts);
    cr_assert(texts != NULL && count == 10000);
    for (size_t i = 0; i < count; i++) texts[i] = text(&reader, 2);
    uint32_t vocabularies = number(&reader, 4);
    cr_assert(vocabularies == 4);
    for (uint32_t i = 0; i < vocabularies; i++) {
        different += check_vocabulary(texts, count, &reader);
    }
    cr_assert(reader.at == reader.count);
    cr_assert(different == 0, "%zu of %zu texts have other tokens", different,
              vocabularies * count);
    free(texts);
    free(reader.bytes);
}
