/*
 * Creating and destroying a tokenizer, and tokens to text.
 */
#include "tokenizer_state.h"

#include "core/check.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

tol_status tol_tokenizer_create(const struct tol_gguf *gguf, struct tol_tokenizer **tokenizer) {
    tol_status status = TOL_OK;
    struct tol_tokenizer *made = NULL;
    TOL_CHECK(gguf != NULL && tokenizer != NULL, TOL_INVALID_ARGUMENT,
              "creating a tokenizer: NULL");
    made = calloc(1, sizeof *made);
    TOL_CHECK(made != NULL, TOL_OUT_OF_HOST_MEMORY, "a tokenizer");
    TOL_TRY(tol_tokenizer_load(gguf, made));
    *tokenizer = made;
    made = NULL;
out:
    tol_tokenizer_destroy(made);
    return status;
}

void tol_tokenizer_destroy(struct tol_tokenizer *tokenizer) {
    if (tokenizer == NULL) return;
    tol_text_map_destroy(&tokenizer->by_text);
    tol_text_map_destroy(&tokenizer->by_piece);
    tol_text_map_destroy(&tokenizer->ranks);
    free(tokenizer->tokens);
    free(tokenizer->special);
    free(tokenizer->bytes);
    free(tokenizer);
}

void tol_tokenizer_describe(const struct tol_tokenizer *tokenizer,
                            struct tol_tokenizer_description *description) {
    *description = tokenizer->about;
}

static bool is_token(const struct tol_tokenizer *tokenizer, int32_t token) {
    return token >= 0 && (size_t)token < tokenizer->about.tokens;
}

struct tol_gguf_text tol_tokenizer_piece(const struct tol_tokenizer *tokenizer, int32_t token,
                                         bool with_special) {
    struct tol_gguf_text nothing = {"", 0};
    if (!is_token(tokenizer, token)) return nothing;
    const struct tol_token *found = &tokenizer->tokens[token];
    bool is_special = found->kind == TOL_TOKEN_CONTROL || found->kind == TOL_TOKEN_UNKNOWN;
    return is_special && !with_special ? nothing : found->piece;
}

bool tol_tokenizer_is_end(const struct tol_tokenizer *tokenizer, int32_t token) {
    return is_token(tokenizer, token) && tokenizer->tokens[token].is_end;
}

int32_t tol_tokenizer_find(const struct tol_tokenizer *tokenizer, const char *text) {
    struct tol_gguf_text wanted = {text, strlen(text)};
    return tol_text_map_get(&tokenizer->by_text, wanted, (struct tol_gguf_text){"", 0});
}

/* ---- the decoder ---- */

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
enum { REPLACEMENT_BYTES = 3, HELD_MAX = 3 };

void tol_decoder_begin(struct tol_decoder *decoder, const struct tol_tokenizer *tokenizer,
                       bool with_special, bool from_start) {
    *decoder = (struct tol_decoder){.tokenizer = tokenizer, .with_special = with_special};
    decoder->skips_space = from_start && tokenizer->about.adds_space;
}

size_t tol_decoder_room(const struct tol_tokenizer *tokenizer) {
    return REPLACEMENT_BYTES * (tokenizer->longest_piece + HELD_MAX);
}

/* Text that is written up to a room, and counted beyond it. */
struct output {
    char *to;
    size_t room, count;
};

static void tokenizer_put(struct output *out, const void *bytes, size_t count) {
    if (count > 0 && out->count + count <= out->room) memcpy(out->to + out->count, bytes, count);
    out->count += count;
}

/* One byte more. What it cannot continue is broken and is replaced; the byte itself may begin
 * something new. */
static void tokenizer_take(struct tol_decoder *decoder, unsigned char byte, struct output *out) {
    decoder->held[decoder->held_count++] = byte;
    enum tol_utf8_state state = tol_utf8_check(decoder->held, decoder->held_count);
    if (state == TOL_UTF8_BEGUN) return;
    size_t count = decoder->held_count;
    decoder->held_count = 0;
    if (state == TOL_UTF8_WHOLE) {
        tokenizer_put(out, decoder->held, count);
        return;
    }
    tokenizer_put(out, replacement, REPLACEMENT_BYTES);
    if (count > 1) tokenizer_take(decoder, byte, out);
}

static tol_status tokenizer_finish(struct tol_decoder *decoder, const struct tol_decoder *next,
                                   const struct output *out, size_t *bytes) {
    tol_status status = TOL_OK;
    *bytes = out->count;
    TOL_CHECK(out->count <= out->room, TOL_OUT_OF_RANGE, "the text has %zu bytes, and only %zu fit",
              out->count, out->room);
    *decoder = *next;
out:
    return status;
}

tol_status tol_decoder_push(struct tol_decoder *decoder, int32_t token, char *to, size_t room,
                            size_t *bytes) {
    tol_status status = TOL_OK;
    struct output out = {to, room, 0};
    TOL_CHECK(decoder != NULL && (to != NULL || room == 0) && bytes != NULL, TOL_INVALID_ARGUMENT,
              "decoding a token: NULL");
    TOL_CHECK(is_token(decoder->tokenizer, token), TOL_INVALID_ARGUMENT,
              "%d is not a token of a vocabulary of %zu", token, decoder->tokenizer->about.tokens);
    struct tol_decoder next = *decoder;
    struct tol_gguf_text piece =
        tol_tokenizer_piece(decoder->tokenizer, token, decoder->with_special);
    bool skips = next.skips_space && piece.count > 0 && piece.bytes[0] == ' ';
    /* After a bos, the following token keeps its space. */
    if (token != decoder->tokenizer->about.bos) next.skips_space = false;
    for (size_t i = skips ? 1 : 0; i < piece.count; i++) {
        tokenizer_take(&next, (unsigned char)piece.bytes[i], &out);
    }
    TOL_TRY(tokenizer_finish(decoder, &next, &out, bytes));
out:
    return status;
}

tol_status tol_decoder_end(struct tol_decoder *decoder, char *to, size_t room, size_t *bytes) {
    tol_status status = TOL_OK;
    struct output out = {to, room, 0};
    TOL_CHECK(decoder != NULL && (to != NULL || room == 0) && bytes != NULL, TOL_INVALID_ARGUMENT,
              "decoding the end of a text: NULL");
    struct tol_decoder next = *decoder;
    if (next.held_count > 0) tokenizer_put(&out, replacement, REPLACEMENT_BYTES);
    next.held_count = 0;
    TOL_TRY(tokenizer_finish(decoder, &next, &out, bytes));
out:
    return status;
}
