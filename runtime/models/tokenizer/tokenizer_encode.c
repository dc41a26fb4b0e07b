/*
 * Text to tokens. Special tokens that the text names cut it into fragments; each fragment is
 * encoded by the model: SPM as a whole, BPE word by word.
 */
#include "tokenizer_state.h"

#include "core/check.h"
#include "merger.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 1 << 30 };

static const struct tol_gguf_text empty = {"", 0};

/* ---- fragments ---- */

struct fragment {
    size_t from, bytes;
    int32_t token; /* TOL_TOKEN_NONE: it is text */
};

struct fragments {
    struct fragment *items;
    size_t count, room;
};

static tol_status tokenizer_encode_add_fragment(struct fragments *list, size_t from, size_t bytes,
                                                int32_t token) {
    tol_status status = TOL_OK;
    if (bytes == 0) return TOL_OK;
    if (list->count == list->room) {
        size_t room = list->room > 0 ? 2 * list->room : 8;
        struct fragment *items = realloc(list->items, room * sizeof *items);
        TOL_CHECK(items != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu fragments of a text", room);
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = (struct fragment){from, bytes, token};
out:
    return status;
}

static bool is_white(char byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Cuts each fragment of text where a special token's text is. */
static tol_status tokenizer_encode_cut(struct fragments *list, const char *text,
                                       const struct tol_token *special, int32_t token) {
    tol_status status = TOL_OK;
    const struct tol_gguf_text wanted = special->text;
    struct fragments made = {NULL, 0, 0};
    for (size_t i = 0; i < list->count; i++) {
        size_t at = list->items[i].from, end = at + list->items[i].bytes;
        const char *found = NULL;
        while (list->items[i].token < 0 && at < end &&
               (found = memmem(text + at, end - at, wanted.bytes, wanted.count)) != NULL) {
            size_t place = (size_t)(found - text), before = place;
            while (special->strips_left && before > at && is_white(text[before - 1])) before--;
            TOL_TRY(tokenizer_encode_add_fragment(&made, at, before - at, TOL_TOKEN_NONE));
            TOL_TRY(tokenizer_encode_add_fragment(&made, place, wanted.count, token));
            at = place + wanted.count;
            while (special->strips_right && at < end && is_white(text[at])) at++;
        }
        TOL_TRY(tokenizer_encode_add_fragment(&made, at, end - at, list->items[i].token));
    }
    free(list->items);
    *list = made;
    made.items = NULL;
out:
    free(made.items);
    return status;
}

static tol_status tokenizer_encode_divide(const struct tol_tokenizer *tokenizer, const char *text,
                                          size_t bytes, bool parse_special,
                                          struct fragments *list) {
    tol_status status = TOL_OK;
    TOL_TRY(tokenizer_encode_add_fragment(list, 0, bytes, TOL_TOKEN_NONE));
    for (size_t i = 0; i < tokenizer->special_count; i++) {
        int32_t id = tokenizer->special[i];
        const struct tol_token *token = &tokenizer->tokens[id];
        if (!parse_special && token->kind != TOL_TOKEN_USER_DEFINED) continue;
        if (memmem(text, bytes, token->text.bytes, token->text.count) == NULL) continue;
        TOL_TRY(tokenizer_encode_cut(list, text, token, id));
    }
out:
    return status;
}

/* ---- ends ---- */

/* Whether to go on, with tokens so far and at least `more` to come. */
static tol_status tokenizer_encode_check(const struct tol_encode_options *options,
                                         const struct tol_token_list *list, size_t more) {
    tol_status status = TOL_OK;
    TOL_CHECK(options->is_cancelled == NULL || !options->is_cancelled(options->user), TOL_CANCELLED,
              "encoding a text was cancelled after %zu tokens", list->count);
    TOL_CHECK(options->tokens_max == 0 ||
                  (list->count <= options->tokens_max && more <= options->tokens_max - list->count),
              TOL_OVER_LIMIT, "the text has more than %zu tokens", options->tokens_max);
out:
    return status;
}

/* ---- SPM ---- */

static bool spm_cost(const void *user, struct tol_gguf_text left, struct tol_gguf_text right,
                     double *cost) {
    const struct tol_tokenizer *tokenizer = user;
    /* Neighbours in a text are neighbours in memory. */
    struct tol_gguf_text both = {left.bytes, left.count + right.count};
    int32_t token = tol_text_map_get(&tokenizer->by_text, both, empty);
    if (token >= 0) *cost = -(double)tokenizer->tokens[token].score;
    return token >= 0;
}

/* The bytes that a lead byte announces, valid or not. */
static size_t spm_length(char lead) {
    unsigned char byte = (unsigned char)lead;
    return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

static tol_status encode_spm(const struct tol_tokenizer *tokenizer, struct tol_merger *merger,
                             const char *text, size_t bytes, bool has_space,
                             const struct tol_encode_options *options,
                             struct tol_token_list *list) {
    tol_status status = TOL_OK;
    static const char space[] = "\xe2\x96\x81";
    size_t count = 0;
    char *escaped = NULL;
    /* No token has more bytes than the longest, unless some bytes have none. */
    const bool is_bounded = tokenizer->about.unknown >= 0 && tokenizer->longest_piece > 0;
    TOL_TRY(
        tokenizer_encode_check(options, list, is_bounded ? bytes / tokenizer->longest_piece : 0));
    escaped = malloc(3 * bytes + 3);
    TOL_CHECK(escaped != NULL, TOL_OUT_OF_HOST_MEMORY, "tokens of %zu bytes", bytes);
    for (size_t i = has_space ? 0 : 1; i <= bytes; i++) {
        char byte = i == 0 ? ' ' : text[i - 1];
        memcpy(escaped + count, byte == ' ' ? space : &byte, byte == ' ' ? 3 : 1);
        count += byte == ' ' ? 3 : 1;
    }
    TOL_TRY(tol_merger_begin(merger, escaped, count));
    for (size_t at = 0, length = 0; at < count; at += length) {
        length = spm_length(escaped[at]);
        if (length > count - at) length = count - at;
        tol_merger_add(merger, length);
    }
    tol_merger_run(merger);
    for (size_t i = 0; i < merger->count; i++) {
        const struct tol_symbol *symbol = &merger->symbols[i];
        struct tol_gguf_text part = {escaped + symbol->start, symbol->bytes};
        if (symbol->bytes == 0) continue;
        int32_t token = tol_text_map_get(&tokenizer->by_text, part, empty);
        if (token >= 0) tol_token_add(list, token);
        for (size_t j = 0; token < 0 && j < part.count; j++) {
            int32_t of_byte = tokenizer->of_byte[(unsigned char)part.bytes[j]];
            if (of_byte >= 0) tol_token_add(list, of_byte);
        }
    }
out:
    free(escaped);
    return status;
}

/* ---- BPE ---- */

static bool bpe_cost(const void *user, struct tol_gguf_text left, struct tol_gguf_text right,
                     double *cost) {
    const struct tol_tokenizer *tokenizer = user;
    int32_t rank = tol_text_map_get(&tokenizer->ranks, left, right);
    *cost = (double)rank;
    return rank >= 0;
}

static tol_status encode_word(const struct tol_tokenizer *tokenizer, struct tol_merger *merger,
                              const char *word, size_t bytes, struct tol_token_list *list) {
    tol_status status = TOL_OK;
    int32_t whole =
        tol_text_map_get(&tokenizer->by_piece, (struct tol_gguf_text){word, bytes}, empty);
    if (tokenizer->ignores_merges && whole >= 0) {
        tol_token_add(list, whole);
        goto out;
    }
    TOL_TRY(tol_merger_begin(merger, word, bytes));
    for (size_t i = 0; i < bytes; i++) tol_merger_add(merger, 1);
    tol_merger_run(merger);
    for (size_t i = 0; i < merger->count; i++) {
        const struct tol_symbol *symbol = &merger->symbols[i];
        struct tol_gguf_text part = {word + symbol->start, symbol->bytes};
        if (symbol->bytes == 0) continue;
        int32_t token = tol_text_map_get(&tokenizer->by_piece, part, empty);
        if (token >= 0) tol_token_add(list, token);
        for (size_t j = 0; token < 0 && j < part.count; j++) {
            int32_t single = tol_text_map_get(&tokenizer->by_piece,
                                              (struct tol_gguf_text){part.bytes + j, 1}, empty);
            if (single >= 0) tol_token_add(list, single);
        }
    }
out:
    return status;
}

static tol_status encode_bpe(const struct tol_tokenizer *tokenizer, struct tol_merger *merger,
                             const char *text, size_t bytes,
                             const struct tol_encode_options *options,
                             struct tol_token_list *list) {
    tol_status status = TOL_OK;
    size_t count = 0, used = 0, begin = 0, end = 0;
    uint32_t *codes = malloc(bytes * sizeof *codes);
    unsigned char *ends = malloc(bytes);
    char *valid = malloc(3 * bytes); /* U+FFFD has three bytes */
    TOL_CHECK(codes != NULL && ends != NULL && valid != NULL, TOL_OUT_OF_HOST_MEMORY,
              "tokens of %zu bytes", bytes);
    for (size_t at = 0; at < bytes; at += used) {
        codes[count++] = tol_utf8_read(text + at, bytes - at, &used);
    }
    tol_pre_divide(tokenizer->pre, codes, count, ends);
    for (size_t i = 0; i < count; i++) {
        end += tol_utf8_write(codes[i], valid + end);
        if (ends[i] == 0 && i + 1 < count) continue;
        TOL_TRY(encode_word(tokenizer, merger, valid + begin, end - begin, list));
        TOL_TRY(tokenizer_encode_check(options, list, 0));
        begin = end;
    }
out:
    free(codes);
    free(ends);
    free(valid);
    return status;
}

/* ---- the whole ---- */

static tol_status encode_fragments(const struct tol_tokenizer *tokenizer, const char *text,
                                   const struct fragments *fragments,
                                   const struct tol_encode_options *options,
                                   struct tol_token_list *list) {
    tol_status status = TOL_OK;
    bool is_spm = tokenizer->about.model == TOL_TOKENIZER_SPM, at_front = true;
    struct tol_merger merger = {.cost = is_spm ? spm_cost : bpe_cost, .user = tokenizer};
    for (size_t i = 0; i < fragments->count; i++) {
        const struct fragment *fragment = &fragments->items[i];
        const char *part = text + fragment->from;
        if (fragment->token >= 0) {
            tol_token_add(list, fragment->token);
        } else if (is_spm) {
            bool has_space = tokenizer->about.adds_space && at_front;
            TOL_TRY(
                encode_spm(tokenizer, &merger, part, fragment->bytes, has_space, options, list));
        } else {
            TOL_TRY(encode_bpe(tokenizer, &merger, part, fragment->bytes, options, list));
        }
        at_front = fragment->token >= 0;
    }
out:
    tol_merger_free(&merger);
    return status;
}

tol_status tol_tokenizer_encode(const struct tol_tokenizer *tokenizer, const char *text,
                                size_t bytes, const struct tol_encode_options *options,
                                int32_t *tokens, size_t room, size_t *count) {
    tol_status status = TOL_OK;
    struct fragments fragments = {NULL, 0, 0};
    struct tol_token_list list = {tokens, room, 0};
    TOL_CHECK(tokenizer != NULL && (text != NULL || bytes == 0) && options != NULL &&
                  (tokens != NULL || room == 0) && count != NULL,
              TOL_INVALID_ARGUMENT, "encoding a text: NULL");
    TOL_CHECK(bytes <= TEXT_BYTES_MAX, TOL_INVALID_ARGUMENT,
              "encoding a text of %zu bytes; at most %d are supported", bytes, TEXT_BYTES_MAX);
    const struct tol_tokenizer_description *about = &tokenizer->about;
    if (bytes > 0)
        TOL_TRY(
            tokenizer_encode_divide(tokenizer, text, bytes, options->parse_special, &fragments));
    if (options->add_special && about->adds_bos && about->bos >= 0) {
        tol_token_add(&list, about->bos);
    }
    TOL_TRY(encode_fragments(tokenizer, text, &fragments, options, &list));
    if (options->add_special && about->adds_eos && about->eos >= 0) {
        tol_token_add(&list, about->eos);
    }
    TOL_TRY(tokenizer_encode_check(options, &list, 0));
    *count = list.count;
    TOL_CHECK(list.count <= room, TOL_OUT_OF_RANGE, "the text has %zu tokens, and only %zu fit",
              list.count, room);
out:
    free(fragments.items);
    return status;
}
