/*
 * The attack on W1's tokenizer: 10,000 texts in four vocabularies, whose tokens llama.cpp wrote to
 * fixtures/models/tokens.bin.xz.
 */
#include "worker_faults.h"
#include "worker_stage.h"

#include <tokenizer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS_MAX = 4096 };

/* The text of each token, with special tokens shown and not. */
static void tokenizer_check_pieces(struct hyp_attack *attack, const struct tol_tokenizer *tokenizer,
                                   struct worker_cursor *cursor) {
    struct tol_tokenizer_description about;
    tol_tokenizer_describe(tokenizer, &about);
    HYP_CHECK(attack, about.tokens == worker_number(cursor, 4), "%zu tokens", (size_t)about.tokens);
    for (int32_t token = 0; token < (int32_t)about.tokens; token++) {
        for (int plain = 0; plain < 2; plain++) {
            const struct worker_piece expected = worker_piece(cursor, 1);
            const struct tol_gguf_text got = tol_tokenizer_piece(tokenizer, token, plain == 0);
            HYP_CHECK(attack,
                      got.count == expected.count &&
                          memcmp(got.bytes, expected.bytes, got.count) == 0,
                      "token %d is \"%.*s\", and llama.cpp has \"%.*s\"", token, (int)got.count,
                      got.bytes, (int)expected.count, expected.bytes);
        }
    }
}

static void check_texts(struct hyp_attack *attack, const struct tol_tokenizer *tokenizer,
                        const struct worker_piece *texts, size_t count,
                        struct worker_cursor *cursor) {
    static int32_t tokens[TOKENS_MAX];
    for (size_t i = 0; i < count; i++) {
        const struct tol_encode_options options = {.add_special = i % 2 == 1,
                                                   .parse_special = (i & 2) != 0};
        size_t found = 0;
        const tol_status status = tol_tokenizer_encode(tokenizer, texts[i].bytes, texts[i].count,
                                                       &options, tokens, TOKENS_MAX, &found);
        const size_t expected = worker_number(cursor, 2);
        bool same = status == TOL_OK && found == expected;
        for (size_t j = 0; j < expected; j++) {
            const int32_t token = (int32_t)worker_number(cursor, 2);
            same = same && tokens[j] == token;
        }
        HYP_CHECK(attack, same, "text %zu has %zu other tokens than llama.cpp's %zu: \"%.*s\"", i,
                  found, expected, (int)texts[i].count, texts[i].bytes);
    }
}

HYP_ATTACK(w1, tokens_of_texts_are_llama_cpps) {
    struct worker_cursor cursor;
    if (!worker_unpack(attack, "fixtures/models/tokens.bin.xz", &cursor)) {
        free(cursor.bytes);
        return;
    }
    const size_t count = worker_number(&cursor, 4);
    struct worker_piece *texts = calloc(count + 1, sizeof *texts);
    for (size_t i = 0; texts != NULL && i < count; i++) texts[i] = worker_piece(&cursor, 2);
    const uint32_t vocabularies = texts != NULL ? worker_number(&cursor, 4) : 0;
    HYP_CHECK(attack, vocabularies == 4, "%u vocabularies", vocabularies);
    for (uint32_t i = 0; i < vocabularies; i++) {
        char name[64];
        struct tol_gguf *gguf = NULL;
        struct tol_tokenizer *tokenizer = NULL;
        const struct worker_piece file = worker_piece(&cursor, 1);
        snprintf(name, sizeof name, "%.*s", (int)file.count, file.bytes);
        const char *path = worker_file(attack, name);
        const bool ok = path != NULL && HYP_OK(attack, tol_gguf_open(path, &gguf)) &&
                        HYP_OK(attack, tol_tokenizer_create(gguf, &tokenizer));
        tol_gguf_close(gguf);
        worker_file_end();
        if (!ok) break;
        tokenizer_check_pieces(attack, tokenizer, &cursor);
        check_texts(attack, tokenizer, texts, count, &cursor);
        tol_tokenizer_destroy(tokenizer);
        hyp_attack_progress(attack, (i + 1.0) / vocabularies);
    }
    HYP_CHECK(attack, cursor.at == cursor.count, "the record was not read to its end");
    free(texts);
    free(cursor.bytes);
}
