/*
 * Tokenizers on small vocabularies that are made here; what llama.cpp makes of texts is in
 * tokenizer_oracle_test.c. And the decoder.
 */
#include "gguf_scene.h"

#include <stdlib.h>
#include <string.h>

/* A byte-level vocabulary of the 256 letters, "ab", " ab" and an end. */
static void make_bpe_with(struct gguf_maker *maker, const char *model, const char *pre,
                          size_t further) {
    maker_begin(maker, 3, 0, 6 + further);
    maker_key_string(maker, "tokenizer.ggml.model", model);
    maker_key_string(maker, "tokenizer.ggml.pre", pre);
    maker_key_array(maker, "tokenizer.ggml.tokens", TOL_GGUF_STRING, 259);
    for (uint32_t byte = 0; byte < 256; byte++) {
        char letter[8] = "";
        uint32_t code = byte < 0x21    ? 0x100 + byte
                        : byte < 0x7f  ? byte
                        : byte < 0xa1  ? 0x100 + 33 + (byte - 0x7f)
                        : byte == 0xad ? 0x143
                                       : byte;
        if (code < 0x80)
            snprintf(letter, sizeof letter, "%c", (char)code);
        else
            snprintf(letter, sizeof letter, "%c%c", (char)(0xc0 | code >> 6),
                     (char)(0x80 | (code & 63)));
        maker_string(maker, letter);
    }
    maker_string(maker, "ab");
    maker_string(maker, "\xc4\xa0"
                        "ab"); /* U+0120 is the space */
    maker_string(maker, "<|im_end|>");
    maker_key_array(maker, "tokenizer.ggml.token_type", TOL_GGUF_I32, 259);
    for (uint32_t i = 0; i < 259; i++) maker_u32(maker, i == 258 ? 3 : 1);
    maker_key_array(maker, "tokenizer.ggml.merges", TOL_GGUF_STRING, 2);
    maker_string(maker, "a b");
    maker_string(maker, "\xc4\xa0 ab");
    maker_key_u32(maker, "tokenizer.ggml.eos_token_id", 258);
}

static void make_bpe(struct gguf_maker *maker, const char *model, const char *pre) {
    make_bpe_with(maker, model, pre, 0);
}

static struct tol_tokenizer *opened(struct gguf_maker *maker) {
    struct tol_gguf *gguf = NULL;
    struct tol_tokenizer *tokenizer = NULL;
    MUST(maker_open(maker, &gguf));
    MUST(tol_tokenizer_create(gguf, &tokenizer));
    tol_gguf_close(gguf);
    maker_end(maker);
    return tokenizer;
}

static void must_be_refused(struct gguf_maker *maker, tol_status expected, const char *text) {
    struct tol_gguf *gguf = NULL;
    struct tol_tokenizer *tokenizer = NULL;
    MUST(maker_open(maker, &gguf));
    MUST_FAIL(tol_tokenizer_create(gguf, &tokenizer), expected, text);
    cr_assert_null(tokenizer);
    tol_gguf_close(gguf);
    maker_end(maker);
}

Test(tokenizer, other_kinds_are_refused_by_name) {
    struct gguf_maker maker = {.bytes = NULL};
    make_bpe(&maker, "bert", "qwen2");
    must_be_refused(&maker, TOL_UNSUPPORTED, "the tokenizer \"bert\" is not supported");
    make_bpe(&maker, "gpt2", "bloom");
    must_be_refused(&maker, TOL_UNSUPPORTED, "the pre-tokenizer \"bloom\" is not supported");
    make_bpe_with(&maker, "gpt2", "qwen2", 1);
    maker_key_array(&maker, "tokenizer.ggml.suppress_tokens", TOL_GGUF_I32, 1);
    maker_u32(&maker, 5);
    must_be_refused(&maker, TOL_UNSUPPORTED, "tokenizer.ggml.suppress_tokens forbids tokens");
    maker_begin(&maker, 3, 0, 0);
    must_be_refused(&maker, TOL_NOT_FOUND, "tokenizer.ggml.model");
    maker_begin(&maker, 3, 0, 1);
    maker_key_string(&maker, "tokenizer.ggml.model", "llama");
    must_be_refused(&maker, TOL_NOT_FOUND, "tokenizer.ggml.tokens");
    maker_begin(&maker, 3, 0, 3);
    maker_key_string(&maker, "tokenizer.ggml.model", "llama");
    maker_key_array(&maker, "tokenizer.ggml.tokens", TOL_GGUF_STRING, 2);
    maker_string(&maker, "a");
    maker_string(&maker, "b");
    maker_key_array(&maker, "tokenizer.ggml.scores", TOL_GGUF_F32, 1);
    maker_u32(&maker, 0);
    must_be_refused(&maker, TOL_INVALID_FILE,
                    "\"tokenizer.ggml.scores\" at byte 132 has 1 entries "
                    "for 2 tokens");
    struct tol_tokenizer *tokenizer = NULL;
    MUST_FAIL(tol_tokenizer_create(NULL, &tokenizer), TOL_INVALID_ARGUMENT, "NULL");
    tol_tokenizer_destroy(NULL);
}

Test(tokenizer, a_room_that_is_too_small_says_what_is_needed) {
    struct gguf_maker maker = {.bytes = NULL};
    int32_t tokens[4] = {-7, -7, -7, -7};
    size_t count = 0;
    struct tol_encode_options options = {.add_special = true, .parse_special = true};
    make_bpe(&maker, "gpt2", "qwen2");
    struct tol_tokenizer *tokenizer = opened(&maker);
    MUST_FAIL(tol_tokenizer_encode(tokenizer, "ab ab<|im_end|>", 15, &options, tokens, 2, &count),
              TOL_OUT_OF_RANGE, "3 tokens, and only 2 fit");
    cr_assert(count == 3 && tokens[0] == 256 && tokens[1] == 257 && tokens[2] == -7);
    MUST(tol_tokenizer_encode(tokenizer, "ab ab<|im_end|>", 15, &options, tokens, 3, &count));
    cr_assert(count == 3 && tokens[2] == 258);
    MUST_FAIL(tol_tokenizer_encode(tokenizer, "ab", 2, &options, NULL, 0, &count), TOL_OUT_OF_RANGE,
              "1 tokens");
    MUST(tol_tokenizer_encode(tokenizer, NULL, 0, &options, NULL, 0, &count));
    cr_assert(count == 0);
    MUST_FAIL(tol_tokenizer_encode(tokenizer, NULL, 1, &options, tokens, 4, &count),
              TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_tokenizer_encode(tokenizer, "", SIZE_MAX, &options, tokens, 4, &count),
              TOL_INVALID_ARGUMENT, "at most");
    cr_assert(tol_tokenizer_is_end(tokenizer, 258) && !tol_tokenizer_is_end(tokenizer, 257));
    cr_assert(!tol_tokenizer_is_end(tokenizer, -1) && !tol_tokenizer_is_end(tokenizer, 259));
    cr_assert(tol_tokenizer_find(tokenizer, "<|im_end|>") == 258);
    cr_assert(tol_tokenizer_find(tokenizer, "<|im_end") == TOL_TOKEN_NONE);
    tol_tokenizer_destroy(tokenizer);
}

/* ---- ends ---- */

static bool ends_after(const void *user) {
    return --*(int *)(uintptr_t)user < 0;
}

Test(tokenizer, a_text_of_too_many_tokens_is_refused_and_encoding_can_be_cancelled) {
    enum { BYTES = 1 << 20 };
    static char digits[BYTES];
    static int32_t tokens[64];
    struct gguf_maker maker = {.bytes = NULL};
    struct tol_gguf *gguf = NULL;
    struct tol_tokenizer *bpe = NULL, *spm = NULL;
    size_t count = 7;
    int left = 50;
    memset(digits, '7', BYTES);
    make_bpe(&maker, "gpt2", "qwen2");
    bpe = opened(&maker);
    MUST(tol_gguf_open(test_fixture_path("models/vocabulary-spm.gguf"), &gguf));
    MUST(tol_tokenizer_create(gguf, &spm));
    tol_gguf_close(gguf);
    const struct tol_encode_options few = {.tokens_max = 64};
    MUST_FAIL(tol_tokenizer_encode(bpe, digits, BYTES, &few, tokens, 64, &count), TOL_OVER_LIMIT,
              "more than 64 tokens");
    MUST_FAIL(tol_tokenizer_encode(spm, digits, BYTES, &few, tokens, 64, &count), TOL_OVER_LIMIT,
              "more than 64 tokens");
    cr_assert(count == 7);
    MUST(tol_tokenizer_encode(bpe, digits, 64, &few, tokens, 64, &count));
    cr_assert(count == 64);
    const struct tol_encode_options cancelled = {.is_cancelled = ends_after, .user = &left};
    MUST_FAIL(tol_tokenizer_encode(bpe, digits, BYTES, &cancelled, NULL, 0, &count), TOL_CANCELLED,
              "cancelled after 51 tokens");
    MUST_FAIL(tol_tokenizer_encode(spm, digits, 9, &cancelled, NULL, 0, &count), TOL_CANCELLED,
              "cancelled after 0 tokens");
    tol_tokenizer_destroy(bpe);
    tol_tokenizer_destroy(spm);
}

/* ---- special tokens ---- */

/* An SPM vocabulary of these texts, up to a NULL, of which those that begin with '<' or '[' are
 * control tokens if special. A key and its number follow unless key is NULL. */
static struct tol_tokenizer *with_texts(const char *name, const char *const *texts, bool special,
                                        const char *key, uint32_t number) {
    struct gguf_maker maker = {.bytes = NULL};
    uint32_t count = 0;
    while (texts[count] != NULL) count++;
    maker_begin(&maker, 3, 0, key != NULL ? 6 : 5);
    maker_key_string(&maker, "general.name", name);
    maker_key_string(&maker, "tokenizer.ggml.model", "llama");
    maker_key_array(&maker, "tokenizer.ggml.tokens", TOL_GGUF_STRING, count);
    for (uint32_t i = 0; i < count; i++) maker_string(&maker, texts[i]);
    maker_key_array(&maker, "tokenizer.ggml.token_type", TOL_GGUF_I32, count);
    for (uint32_t i = 0; i < count; i++) {
        maker_u32(&maker, special && strchr("<[", texts[i][0]) != NULL ? 3 : 1);
    }
    maker_key_array(&maker, "tokenizer.ggml.scores", TOL_GGUF_F32, count);
    for (uint32_t i = 0; i < count; i++) maker_u32(&maker, 0);
    if (key != NULL) maker_key_u32(&maker, key, number);
    return opened(&maker);
}

/* Which tokens of these texts end a text, as a letter each. */
static void must_end(const char *const *texts, const char *key, uint32_t number,
                     const char *expected) {
    struct tol_tokenizer *tokenizer = with_texts("x", texts, false, key, number);
    for (int32_t i = 0; expected[i] != '\0'; i++) {
        cr_assert(tol_tokenizer_is_end(tokenizer, i) == (expected[i] == 'e'), "%s", texts[i]);
    }
    tol_tokenizer_destroy(tokenizer);
}

Test(tokenizer, texts_end_by_the_tokens_that_end_them_in_llama_cpp) {
    static const char *const all[] = {
        "<unk>",     "a",     "b",          "<turn|>", "<|tool_response>", "[e~[", "</s>",
        "<fim_pad>", "[PAD]", "<reponame>", "x",       "<|eot_id|>",       NULL};
    static const char *const harmony[] = {"a", "b", "c", "<|end|>", "<|return|>", "<|call|>", NULL};
    static const char *const phi[] = {"a", "b", "c", "<|end|>", "<|return|>", NULL};
    static const char *const deepseek[] = {"a", "b", "c",
                                           "<\xef\xbd\x9c"
                                           "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
                                           NULL};
    static const char *const plain[] = {"a", "b", "</s>", "<REPO>", "<fim-repo>", NULL};
    must_end(all, NULL, 0, "..eeee.e.e.e");
    must_end(all, "tokenizer.ggml.fim_pad_token_id", 10, "..eeee...eee");
    must_end(all, "tokenizer.ggml.fim_sep_token_id", 1, ".eeeee.e.e.e");
    must_end(harmony, NULL, 0, "..e.ee");
    must_end(phi, NULL, 0, "..eee");
    must_end(deepseek, NULL, 0, "..ee");
    must_end(plain, NULL, 0, "..e.e");
    must_end(plain, "tokenizer.ggml.fim_rep_token_id", 3, "..ee.");
}

static void must_encode(const struct tol_tokenizer *tokenizer, const char *text,
                        const char *expected) {
    const struct tol_encode_options options = {.add_special = false, .parse_special = true};
    int32_t tokens[16];
    char found[64] = "";
    size_t count = 0;
    MUST(tol_tokenizer_encode(tokenizer, text, strlen(text), &options, tokens, 16, &count));
    for (size_t i = 0; i < count; i++) {
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%d", i > 0 ? " " : "",
                 tokens[i]);
    }
    cr_assert_str_eq(found, expected);
}

Test(tokenizer, a_name_says_which_special_tokens_swallow_white_space) {
    static const char *const texts[] = {"<unk>", "<s>",          "</s>", "<|end|>", "[MASK]",
                                        "\n",    "\xe2\x96\x81", "a",    NULL};
    struct tol_tokenizer *phi = with_texts("My-Phi-3 Mini", texts, true, NULL, 0);
    must_encode(phi, "</s>\n</s>", "2 2");
    must_encode(phi, "<|end|> \n\t a", "3 6 7"); /* SPM's space before a text */
    must_encode(phi, "<s>\n<s>", "1 6 5 1");
    tol_tokenizer_destroy(phi);
    struct tol_tokenizer *bert = with_texts("modern-bert", texts, true, NULL, 0);
    must_encode(bert, "a\n [MASK]\n", "6 7 4 6 5");
    tol_tokenizer_destroy(bert);
    struct tol_tokenizer *other = with_texts("other", texts, true, NULL, 0);
    must_encode(other, "</s>\n</s>", "2 6 5 2");
    tol_tokenizer_destroy(other);
}

/* ---- the decoder ---- */

static void must_decode(const struct tol_tokenizer *tokenizer, const char *bytes, size_t count,
                        const char *expected) {
    char text[256];
    size_t length = 0, part = 0;
    struct tol_decoder decoder;
    tol_decoder_begin(&decoder, tokenizer, false, true);
    for (size_t i = 0; i < count; i++) {
        MUST(tol_decoder_push(&decoder, (unsigned char)bytes[i], text + length,
                              sizeof text - length, &part));
        length += part;
    }
    MUST(tol_decoder_end(&decoder, text + length, sizeof text - length, &part));
    length += part;
    cr_assert(length == strlen(expected) && memcmp(text, expected, length) == 0,
              "\"%.*s\", not \"%s\"", (int)length, text, expected);
}

Test(tokenizer, what_is_decoded_is_valid_utf8) {
    struct gguf_maker maker = {.bytes = NULL};
    make_bpe(&maker, "gpt2", "qwen2");
    struct tol_tokenizer *tokenizer = opened(&maker);
    must_decode(tokenizer, "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10, "a\u00e9\u20ac\U0001f600");
    /* As the Unicode Standard, table 3-8, replaces them. */
    must_decode(tokenizer,
                "\xff"
                "a",
                2, "\ufffda");
    must_decode(tokenizer,
                "\xe2\x82"
                "a",
                3, "\ufffda");
    must_decode(tokenizer, "\xe2\x82", 2, "\ufffd");
    must_decode(tokenizer, "\xf0\x9f\xc3\xa9", 4, "\ufffd\u00e9");
    must_decode(tokenizer, "\xc0\xaf", 2, "\ufffd\ufffd");
    must_decode(tokenizer, "\xed\xa0\x80", 3, "\ufffd\ufffd\ufffd");
    must_decode(tokenizer, "\xf4\x91\x92\x93", 4, "\ufffd\ufffd\ufffd\ufffd");
    tol_tokenizer_destroy(tokenizer);
}

Test(tokenizer, a_sequence_is_held_back_until_it_is_whole_and_nothing_is_lost) {
    struct gguf_maker maker = {.bytes = NULL};
    char text[16];
    size_t bytes = 7;
    struct tol_decoder decoder;
    make_bpe(&maker, "gpt2", "qwen2");
    struct tol_tokenizer *tokenizer = opened(&maker);
    tol_decoder_begin(&decoder, tokenizer, false, false);
    MUST(tol_decoder_push(&decoder, 0xe2, text, sizeof text, &bytes));
    cr_assert(bytes == 0);
    MUST(tol_decoder_push(&decoder, 0x82, text, sizeof text, &bytes));
    cr_assert(bytes == 0);
    MUST_FAIL(tol_decoder_push(&decoder, 0xac, text, 2, &bytes), TOL_OUT_OF_RANGE,
              "3 bytes, and only 2 fit");
    cr_assert(bytes == 3);
    MUST(tol_decoder_push(&decoder, 0xac, text, 3, &bytes));
    cr_assert(bytes == 3 && memcmp(text, "\u20ac", 3) == 0);
    MUST(tol_decoder_push(&decoder, 258, text, sizeof text, &bytes));
    cr_assert(bytes == 0, "a control token has no text");
    MUST_FAIL(tol_decoder_push(&decoder, 259, text, sizeof text, &bytes), TOL_INVALID_ARGUMENT,
              "259 is not a token of a vocabulary of 259");
    MUST(tol_decoder_end(&decoder, text, 0, &bytes));
    cr_assert(bytes == 0);
    tol_decoder_begin(&decoder, tokenizer, true, false);
    MUST(tol_decoder_push(&decoder, 258, text, sizeof text, &bytes));
    cr_assert(bytes == 10 && memcmp(text, "<|im_end|>", 10) == 0);
    cr_assert(tol_decoder_room(tokenizer) >= 30);
    tol_tokenizer_destroy(tokenizer);
}

Test(tokenizer, spm_texts_come_back) {
    static const char *const texts[] = {"a small house",
                                        " two  spaces ",
                                        "\n\ttabs",
                                        "na\u00efve \u20ac",
                                        "\U0001f9d1\U0001f3ff\u200d\U0001f4bb",
                                        "<s> is text"};
    struct tol_gguf *gguf = NULL;
    struct tol_tokenizer *tokenizer = NULL;
    struct tol_encode_options options = {.add_special = true, .parse_special = false};
    MUST(tol_gguf_open(test_fixture_path("models/vocabulary-spm.gguf"), &gguf));
    MUST(tol_tokenizer_create(gguf, &tokenizer));
    tol_gguf_close(gguf);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int32_t tokens[128];
        char text[256];
        size_t count = 0, length = 0, bytes = 0;
        struct tol_decoder decoder;
        MUST(tol_tokenizer_encode(tokenizer, texts[i], strlen(texts[i]), &options, tokens, 128,
                                  &count));
        cr_assert(tokens[0] == 1, "it begins with bos");
        tol_decoder_begin(&decoder, tokenizer, false, true);
        for (size_t j = 0; j < count; j++) {
            cr_assert(tol_decoder_room(tokenizer) <= sizeof text - length);
            MUST(
                tol_decoder_push(&decoder, tokens[j], text + length, sizeof text - length, &bytes));
            length += bytes;
        }
        cr_assert(length == strlen(texts[i]) && memcmp(text, texts[i], length) == 0,
                  "\"%.*s\", not \"%s\"", (int)length, text, texts[i]);
    }
    tol_tokenizer_destroy(tokenizer);
}
