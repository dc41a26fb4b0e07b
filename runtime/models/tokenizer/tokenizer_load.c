/*
 * Makes a tokenizer of the keys tokenizer.ggml.* of a file.
 *
 * A byte-level vocabulary has its tokens as letters, one per byte. They become bytes here, so that
 * encoding and decoding work on bytes.
 */
#include "tokenizer_state.h"

#include "core/check.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct tol_gguf_text empty = {"", 0};

int tol_byte_of_letter(uint32_t letter) {
    if ((letter >= 0x21 && letter <= 0x7e) || (letter >= 0xa1 && letter <= 0xac) ||
        (letter >= 0xae && letter <= 0xff)) {
        return (int)letter;
    }
    if (letter < 0x100 || letter >= 0x100 + 68) return -1;
    int n = (int)letter - 0x100; /* the bytes that are no letters themselves, in order */
    if (n < 33) return n;
    return n < 67 ? 0x7f + n - 33 : 0xad;
}

static bool tokenizer_load_same(struct tol_gguf_text text, const char *expected) {
    return text.count == strlen(expected) && memcmp(text.bytes, expected, text.count) == 0;
}

/* ---- arrays ---- */

/* An array with one entry per token. *value is NULL if the file does not have it. */
static tol_status find_array(const struct tol_gguf *gguf, const char *key,
                             enum tol_gguf_kind element, size_t tokens,
                             const struct tol_gguf_value **value) {
    tol_status status = TOL_OK;
    *value = NULL;
    if (tol_gguf_find(gguf, key) == NULL) goto out;
    TOL_TRY(tol_gguf_get_array(gguf, key, element, value));
    TOL_CHECK((*value)->count >= tokens, TOL_INVALID_FILE,
              "key \"%s\" at byte %llu has %llu entries for %zu tokens", key,
              (unsigned long long)(*value)->offset, (unsigned long long)(*value)->count, tokens);
out:
    return status;
}

/* All the bytes of texts, and the same for pieces, in one block; merges after them. */
static tol_status copy_texts(struct tol_tokenizer *tokenizer, const struct tol_gguf_value *texts,
                             const struct tol_gguf_value *merges, char **rest) {
    tol_status status = TOL_OK;
    size_t bytes = 0, count = tokenizer->about.tokens;
    for (size_t i = 0; i < count; i++) bytes += 2 * tol_gguf_text_at(texts, i).count;
    for (uint64_t i = 0; merges != NULL && i < merges->count; i++) {
        bytes += tol_gguf_text_at(merges, i).count;
    }
    tokenizer->bytes = malloc(bytes + 1);
    TOL_CHECK(tokenizer->bytes != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu tokens", count);
    char *to = tokenizer->bytes;
    for (size_t i = 0; i < count; i++) {
        struct tol_gguf_text text = tol_gguf_text_at(texts, i);
        memcpy(to, text.bytes, text.count);
        tokenizer->tokens[i].text = (struct tol_gguf_text){to, text.count};
        to += text.count;
    }
    *rest = to;
out:
    return status;
}

static tol_status read_tokens(const struct tol_gguf *gguf, struct tol_tokenizer *tokenizer,
                              const struct tol_gguf_value *merges, char **rest) {
    tol_status status = TOL_OK;
    const struct tol_gguf_value *texts = NULL, *scores = NULL, *kinds = NULL;
    TOL_TRY(tol_gguf_get_array(gguf, "tokenizer.ggml.tokens", TOL_GGUF_STRING, &texts));
    TOL_CHECK(texts->count > 0 && texts->count <= INT32_MAX, TOL_INVALID_FILE,
              "key \"tokenizer.ggml.tokens\" at byte %llu has %llu entries",
              (unsigned long long)texts->offset, (unsigned long long)texts->count);
    size_t count = (size_t)texts->count;
    tokenizer->about.tokens = count;
    TOL_TRY(find_array(gguf, "tokenizer.ggml.scores", TOL_GGUF_F32, count, &scores));
    TOL_TRY(find_array(gguf, "tokenizer.ggml.token_type", TOL_GGUF_I32, count, &kinds));
    tokenizer->tokens = calloc(count, sizeof *tokenizer->tokens);
    TOL_CHECK(tokenizer->tokens != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu tokens", count);
    TOL_TRY(copy_texts(tokenizer, texts, merges, rest));
    TOL_TRY(tol_text_map_create(&tokenizer->by_text, count));
    for (size_t i = 0; i < count; i++) {
        struct tol_token *token = &tokenizer->tokens[i];
        int64_t kind = kinds != NULL ? tol_gguf_signed_at(kinds, i) : TOL_TOKEN_NORMAL;
        token->kind = kind >= 0 && kind <= TOL_TOKEN_BYTE ? (unsigned char)kind : 0;
        token->score = scores != NULL ? (float)tol_gguf_real_at(scores, i) : 0;
        if (token->text.count == 0) continue;
        tol_text_map_set(&tokenizer->by_text, token->text, empty, (int32_t)i, true);
    }
out:
    return status;
}

/* ---- pieces ---- */

/* A text of letters as bytes. False: it has other letters. */
static bool tokenizer_load_write_bytes(struct tol_gguf_text text, char *to, size_t *count) {
    size_t used = 0;
    *count = 0;
    for (size_t at = 0; at < text.count; at += used) {
        int byte = tol_byte_of_letter(tol_utf8_read(text.bytes + at, text.count - at, &used));
        if (byte < 0) return false;
        to[(*count)++] = (char)byte;
    }
    return true;
}

/* A text of SPM with spaces for U+2581. */
static size_t write_spaces(struct tol_gguf_text text, char *to) {
    size_t count = 0;
    for (size_t at = 0; at < text.count;) {
        bool is_space = text.count - at >= 3 && memcmp(text.bytes + at, "\xe2\x96\x81", 3) == 0;
        to[count++] = is_space ? ' ' : text.bytes[at];
        at += is_space ? 3 : 1;
    }
    return count;
}

/* "<0x0A>" is the byte 10; -1: it is another text. */
static int named_byte(struct tol_gguf_text text) {
    static const char digits[] = "0123456789ABCDEF";
    if (text.count != 6 || memcmp(text.bytes, "<0x", 3) != 0 || text.bytes[5] != '>') return -1;
    const char *high = memchr(digits, text.bytes[3], 16), *low = memchr(digits, text.bytes[4], 16);
    return high != NULL && low != NULL ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

static char *make_piece(struct tol_tokenizer *tokenizer, struct tol_token *token, char *to) {
    size_t count = 0;
    int byte = named_byte(token->text);
    token->piece = empty;
    if (token->kind == TOL_TOKEN_UNKNOWN || token->kind == TOL_TOKEN_CONTROL ||
        token->kind == TOL_TOKEN_USER_DEFINED) {
        token->piece = token->text;
    } else if (token->kind == TOL_TOKEN_BYTE && byte >= 0) {
        *to = (char)byte;
        count = 1;
    } else if (token->kind == TOL_TOKEN_NORMAL && tokenizer->about.model == TOL_TOKENIZER_SPM) {
        count = write_spaces(token->text, to);
    } else if (token->kind == TOL_TOKEN_NORMAL) {
        if (!tokenizer_load_write_bytes(token->text, to, &count)) token->piece = token->text;
    }
    if (token->piece.count == 0) token->piece = (struct tol_gguf_text){to, count};
    if (token->piece.count > tokenizer->longest_piece) {
        tokenizer->longest_piece = token->piece.count;
    }
    return to + count;
}

/* ---- what each model adds ---- */

static void load_spm(struct tol_tokenizer *tokenizer) {
    for (int byte = 0; byte < 256; byte++) {
        char name[8];
        char single = (char)byte;
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)byte);
        int32_t token = tol_tokenizer_find(tokenizer, name);
        if (token < 0) {
            token =
                tol_text_map_get(&tokenizer->by_text, (struct tol_gguf_text){&single, 1}, empty);
        }
        tokenizer->of_byte[byte] = token >= 0 ? token : tokenizer->about.unknown;
    }
}

static tol_status load_merges(struct tol_tokenizer *tokenizer, const struct tol_gguf_value *merges,
                              char *to) {
    tol_status status = TOL_OK;
    TOL_CHECK(merges->count <= INT32_MAX, TOL_INVALID_FILE, "%llu merges",
              (unsigned long long)merges->count);
    TOL_TRY(tol_text_map_create(&tokenizer->ranks, (size_t)merges->count));
    for (uint64_t i = 0; i < merges->count; i++) {
        struct tol_gguf_text text = tol_gguf_text_at(merges, i);
        const char *cut = text.count > 1 ? memchr(text.bytes + 1, ' ', text.count - 1) : NULL;
        size_t left = 0, right = 0;
        if (cut == NULL) continue;
        size_t before = (size_t)(cut - text.bytes);
        struct tol_gguf_text first = {text.bytes, before};
        struct tol_gguf_text second = {cut + 1, text.count - before - 1};
        /* Letters that represent no byte are in no text. */
        if (!tokenizer_load_write_bytes(first, to, &left) ||
            !tokenizer_load_write_bytes(second, to + left, &right))
            continue;
        tol_text_map_set(&tokenizer->ranks, (struct tol_gguf_text){to, left},
                         (struct tol_gguf_text){to + left, right}, (int32_t)i, false);
        to += left + right;
    }
out:
    return status;
}

static tol_status load_bpe(struct tol_tokenizer *tokenizer, const struct tol_gguf_value *merges,
                           char *rest) {
    tol_status status = TOL_OK;
    char *scratch = malloc(tokenizer->longest_piece + 1);
    TOL_CHECK(scratch != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu tokens", tokenizer->about.tokens);
    TOL_TRY(tol_text_map_create(&tokenizer->by_piece, tokenizer->about.tokens));
    for (size_t i = 0; i < tokenizer->about.tokens; i++) {
        const struct tol_token *token = &tokenizer->tokens[i];
        size_t count = 0;
        if (token->piece.count == 0) continue;
        /* A special token is found where its text, as letters, is what was joined. */
        bool is_special = token->piece.bytes == token->text.bytes;
        if (is_special && (!tokenizer_load_write_bytes(token->text, scratch, &count) ||
                           count != token->text.count)) {
            continue;
        }
        tol_text_map_set(&tokenizer->by_piece, token->piece, empty, (int32_t)i, true);
    }
    TOL_TRY(load_merges(tokenizer, merges, rest));
out:
    free(scratch);
    return status;
}

/* ---- special tokens ---- */

static void read_special(const struct tol_gguf *gguf, const char *key, size_t tokens,
                         int32_t *token) {
    uint64_t number = 0;
    if (*token >= 0 && (size_t)*token >= tokens) *token = TOL_TOKEN_NONE;
    if (tol_gguf_find(gguf, key) == NULL) return;
    if (tol_gguf_get_unsigned(gguf, key, &number) == TOL_OK && number < tokens) {
        *token = (int32_t)number;
    }
}

/* The texts by which models end a turn; a file has no list of them. As llama.cpp has them. */
static const char *const ends[] = {"<|eot_id|>",
                                   "<|im_end|>",
                                   "<|end|>",
                                   "<|return|>",
                                   "<|call|>",
                                   "<|flush|>",
                                   "<|calls|>",
                                   "<end_of_turn>",
                                   "<|endoftext|>",
                                   "</s>",
                                   "<|eom_id|>",
                                   "<EOT>",
                                   "_<EOT>",
                                   "[EOT]",
                                   "[EOS]",
                                   "<|end_of_text|>",
                                   "<end_of_utterance>",
                                   "<eos>",
                                   "<turn|>",
                                   "<|tool_response>",
                                   ("<\xef\xbd\x9c"
                                    "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"),
                                   "[e~["};

/* Fill-in-the-middle tokens after which there is no text either: the key's, or else the first of
 * these texts that the vocabulary has. */
static const struct {
    const char *key, *texts[5];
} breaks[] = {{"tokenizer.ggml.fim_pad_token_id",
               {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
              {"tokenizer.ggml.fim_rep_token_id",
               {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
              {"tokenizer.ggml.fim_sep_token_id", {"<|file_sep|>"}}};

static void mark_end(struct tol_tokenizer *tokenizer, int32_t token, bool is_control) {
    if (token < 0) return;
    tokenizer->tokens[token].is_end = true;
    if (is_control) tokenizer->tokens[token].kind = TOL_TOKEN_CONTROL;
}

static void mark_break(const struct tol_gguf *gguf, struct tol_tokenizer *tokenizer, size_t at) {
    const size_t texts = sizeof breaks[at].texts / sizeof breaks[at].texts[0];
    int32_t token = TOL_TOKEN_NONE;
    read_special(gguf, breaks[at].key, tokenizer->about.tokens, &token);
    const bool has_key = token >= 0;
    for (size_t i = 0; i < texts && breaks[at].texts[i] != NULL && token < 0; i++) {
        token = tol_tokenizer_find(tokenizer, breaks[at].texts[i]);
    }
    mark_end(tokenizer, token, !has_key);
}

static bool has_end(const struct tol_tokenizer *tokenizer, const char *text) {
    return tol_tokenizer_is_end(tokenizer, tol_tokenizer_find(tokenizer, text));
}

static void unmark_end(struct tol_tokenizer *tokenizer, const char *text,
                       enum tol_token_kind kind) {
    const int32_t token = tol_tokenizer_find(tokenizer, text);
    if (token < 0) return;
    tokenizer->tokens[token].is_end = false;
    tokenizer->tokens[token].kind = (unsigned char)kind;
}

/* Formats in which a text of the list above ends something smaller than the turn. */
static void unmark_ends(struct tol_tokenizer *tokenizer) {
    static const char *const formats[] = {"<|channel|>", "<|message|>", "<|start|>",
                                          "<|constrain|>"};
    const bool calls = has_end(tokenizer, "<|call|>") || has_end(tokenizer, "<|calls|>");
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        const int32_t token = tol_tokenizer_find(tokenizer, formats[i]);
        if (token >= 0) tokenizer->tokens[token].kind = TOL_TOKEN_USER_DEFINED;
    }
    if (calls && (has_end(tokenizer, "<|return|>") || has_end(tokenizer, "<|flush|>"))) {
        unmark_end(tokenizer, "<|end|>", TOL_TOKEN_USER_DEFINED);
    }
    if (has_end(tokenizer, "<|tool_response>")) unmark_end(tokenizer, "</s>", TOL_TOKEN_NORMAL);
}

static void mark_ends(const struct tol_gguf *gguf, struct tol_tokenizer *tokenizer) {
    static const char *const keys[] = {"tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        mark_end(tokenizer, tol_tokenizer_find(tokenizer, ends[i]), true);
    }
    for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) mark_break(gguf, tokenizer, i);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        int32_t token = TOL_TOKEN_NONE;
        read_special(gguf, keys[i], tokenizer->about.tokens, &token);
        mark_end(tokenizer, token, false);
    }
    mark_end(tokenizer, tokenizer->about.eos, false);
    unmark_ends(tokenizer);
}

/* ---- white space beside special tokens ---- */

/* Whether general.name has these letters, in either case. */
static bool is_named(const struct tol_gguf *gguf, const char *letters) {
    struct tol_gguf_text name = {"", 0};
    const size_t count = strlen(letters);
    if (tol_gguf_find(gguf, "general.name") == NULL) return false;
    if (tol_gguf_get_text(gguf, "general.name", &name) != TOL_OK) return false;
    for (size_t at = 0; at + count <= name.count; at++) {
        if (strncasecmp(name.bytes + at, letters, count) == 0) return true;
    }
    return false;
}

static void set_strips_right(struct tol_tokenizer *tokenizer, const char *text, bool strips) {
    const int32_t token = tol_tokenizer_find(tokenizer, text);
    if (token >= 0) tokenizer->tokens[token].strips_right = strips;
}

/* A file does not say which special tokens swallow white space; llama.cpp goes by its name. */
static void mark_strips(const struct tol_gguf *gguf, struct tol_tokenizer *tokenizer) {
    if (is_named(gguf, "phi-3") || is_named(gguf, "phi3")) {
        for (size_t i = 0; i < tokenizer->special_count; i++) {
            tokenizer->tokens[tokenizer->special[i]].strips_right = true;
        }
        set_strips_right(tokenizer, "</s>", true);
        set_strips_right(tokenizer, "<unk>", false);
        set_strips_right(tokenizer, "<s>", false);
        set_strips_right(tokenizer, "<|endoftext|>", false);
    } else if (is_named(gguf, "modern-bert")) {
        const int32_t token = tol_tokenizer_find(tokenizer, "[MASK]");
        if (token >= 0) tokenizer->tokens[token].strips_left = true;
    }
}

struct sized {
    size_t bytes;
    int32_t token;
};

static int longest_first(const void *a, const void *b) {
    const struct sized *one = a, *other = b;
    if (one->bytes != other->bytes) return one->bytes > other->bytes ? -1 : 1;
    return one->token < other->token ? -1 : one->token > other->token;
}

/* The tokens that a text may name. */
static tol_status sort_special(struct tol_tokenizer *tokenizer) {
    tol_status status = TOL_OK;
    size_t count = 0;
    struct sized *names = calloc(tokenizer->about.tokens, sizeof *names);
    tokenizer->special = calloc(tokenizer->about.tokens, sizeof *tokenizer->special);
    TOL_CHECK(names != NULL && tokenizer->special != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu tokens",
              tokenizer->about.tokens);
    for (size_t i = 0; i < tokenizer->about.tokens; i++) {
        const struct tol_token *token = &tokenizer->tokens[i];
        bool is_special = token->kind == TOL_TOKEN_CONTROL || token->kind == TOL_TOKEN_UNKNOWN ||
                          token->kind == TOL_TOKEN_USER_DEFINED;
        if (is_special && token->text.count > 0) {
            names[count++] = (struct sized){token->text.count, (int32_t)i};
        }
    }
    qsort(names, count, sizeof *names, longest_first);
    for (size_t i = 0; i < count; i++) tokenizer->special[i] = names[i].token;
    tokenizer->special_count = count;
out:
    free(names);
    return status;
}

/* ---- the whole ---- */

static tol_status read_model(const struct tol_gguf *gguf, struct tol_tokenizer *tokenizer) {
    tol_status status = TOL_OK;
    struct tol_tokenizer_description *about = &tokenizer->about;
    struct tol_gguf_text model, pre = {"default", 7};
    TOL_TRY(tol_gguf_get_text(gguf, "tokenizer.ggml.model", &model));
    TOL_CHECK(tokenizer_load_same(model, "llama") || tokenizer_load_same(model, "gpt2"),
              TOL_UNSUPPORTED,
              "the tokenizer \"%.*s\" is not supported; \"llama\" and \"gpt2\" are",
              (int)(model.count < 64 ? model.count : 64), model.bytes);
    about->pre = "";
    about->bos = about->eos = 11; /* the defaults of byte-level BPE */
    about->unknown = TOL_TOKEN_NONE;
    if (tokenizer_load_same(model, "llama")) {
        about->model = TOL_TOKENIZER_SPM;
        about->bos = 1;
        about->eos = 2;
        about->unknown = 0;
        about->adds_bos = about->adds_space = true;
        goto out;
    }
    about->model = TOL_TOKENIZER_BPE;
    if (tol_gguf_find(gguf, "tokenizer.ggml.pre") != NULL) {
        TOL_TRY(tol_gguf_get_text(gguf, "tokenizer.ggml.pre", &pre));
    }
    const struct tol_pre_kind *kind = tol_pre_find(pre.bytes, pre.count);
    TOL_CHECK(kind != NULL, TOL_UNSUPPORTED, "the pre-tokenizer \"%.*s\" is not supported",
              (int)(pre.count < 64 ? pre.count : 64), pre.bytes);
    about->pre = kind->name;
    about->adds_bos = kind->adds_bos;
    tokenizer->pre = kind->rule;
    tokenizer->ignores_merges = kind->ignores_merges;
out:
    return status;
}

/* llama.cpp's programs never draw these tokens. */
static tol_status check_suppressed(const struct tol_gguf *gguf) {
    tol_status status = TOL_OK;
    static const char key[] = "tokenizer.ggml.suppress_tokens";
    const struct tol_gguf_value *list = tol_gguf_find(gguf, key);
    TOL_CHECK(list == NULL || (list->kind == TOL_GGUF_ARRAY && list->count == 0), TOL_UNSUPPORTED,
              "the key %s forbids tokens, which this library does not do", key);
out:
    return status;
}

static tol_status tokenizer_load_read_flag(const struct tol_gguf *gguf, const char *key,
                                           bool *flag) {
    return tol_gguf_find(gguf, key) == NULL ? TOL_OK : tol_gguf_get_bool(gguf, key, flag);
}

tol_status tol_tokenizer_load(const struct tol_gguf *gguf, struct tol_tokenizer *tokenizer) {
    tol_status status = TOL_OK;
    struct tol_tokenizer_description *about = &tokenizer->about;
    const struct tol_gguf_value *merges = NULL;
    char *rest = NULL;
    TOL_TRY(read_model(gguf, tokenizer));
    TOL_TRY(check_suppressed(gguf));
    if (about->model == TOL_TOKENIZER_BPE) {
        TOL_TRY(tol_gguf_get_array(gguf, "tokenizer.ggml.merges", TOL_GGUF_STRING, &merges));
    }
    TOL_TRY(read_tokens(gguf, tokenizer, merges, &rest));
    read_special(gguf, "tokenizer.ggml.bos_token_id", about->tokens, &about->bos);
    read_special(gguf, "tokenizer.ggml.eos_token_id", about->tokens, &about->eos);
    read_special(gguf, "tokenizer.ggml.unknown_token_id", about->tokens, &about->unknown);
    TOL_TRY(tokenizer_load_read_flag(gguf, "tokenizer.ggml.add_bos_token", &about->adds_bos));
    TOL_TRY(tokenizer_load_read_flag(gguf, "tokenizer.ggml.add_eos_token", &about->adds_eos));
    if (about->model == TOL_TOKENIZER_SPM) {
        TOL_TRY(
            tokenizer_load_read_flag(gguf, "tokenizer.ggml.add_space_prefix", &about->adds_space));
    }
    mark_ends(gguf, tokenizer);
    for (size_t i = 0; i < about->tokens; i++) {
        rest = make_piece(tokenizer, &tokenizer->tokens[i], rest);
    }
    TOL_TRY(sort_special(tokenizer));
    mark_strips(gguf, tokenizer);
    if (about->model == TOL_TOKENIZER_SPM)
        load_spm(tokenizer);
    else
        TOL_TRY(load_bpe(tokenizer, merges, rest));
out:
    return status;
}
