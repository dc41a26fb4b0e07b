/*
 * Tokenizer: text to the tokens of a language model, and back, as the model's file describes it.
 *
 * Models of tokenizers: SPM (`llama`: SentencePiece's BPE over scores, with one token per byte for
 * what has none) and byte-level BPE (`gpt2`, with the pre-tokenizers `default`, `gpt-2`,
 * `llama-bpe`, `qwen2`, `qwen35`, `tekken`, `smollm`, `deepseek-llm`, `deepseek-coder`,
 * `deepseek-v3`, and others that have the same rules). Others are refused by name.
 *
 * The tokens are those of llama.cpp, compared on 10,000 texts (fixtures/models). Text need not be
 * valid UTF-8: SPM encodes bytes that are no character one by one, and BPE replaces each by U+FFFD.
 * UTF-8 is read as llama.cpp reads it, so longer forms than necessary and surrogates are accepted.
 *
 * Ownership: a tokenizer has its own copy of everything; the file may be closed. Texts of tokens
 * belong to the tokenizer. Threads: a tokenizer does not change, so any threads may use it at once.
 * A tol_decoder is one thread's.
 */
#ifndef TOLLENS_TOKENIZER_H
#define TOLLENS_TOKENIZER_H

#include "gguf.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tol_tokenizer;

enum { TOL_TOKEN_NONE = -1 }; /* there is no such token */

/* Reads the keys tokenizer.ggml.* of a file. The caller destroys *tokenizer.
 * TOL_INVALID_ARGUMENT: NULL. TOL_NOT_FOUND: a key is missing. TOL_UNSUPPORTED: another kind of
 * tokenizer. TOL_INVALID_FILE: keys that contradict each other. TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status tol_tokenizer_create(const struct tol_gguf *gguf,
                                        struct tol_tokenizer **tokenizer);

/* NULL is a no-op. */
TOL_API void tol_tokenizer_destroy(struct tol_tokenizer *tokenizer);

enum tol_tokenizer_model { TOL_TOKENIZER_SPM, TOL_TOKENIZER_BPE };

struct tol_tokenizer_description {
    enum tol_tokenizer_model model;
    const char *pre;           /* the pre-tokenizer's name; "" for SPM. Static. */
    size_t tokens;             /* the vocabulary's size: tokens are 0 to tokens - 1 */
    int32_t bos, eos, unknown; /* TOL_TOKEN_NONE: there is none */
    bool adds_bos, adds_eos;   /* what add_special adds to a text */
    bool adds_space;           /* SPM: a text begins with a space, added if need be */
};

TOL_API void tol_tokenizer_describe(const struct tol_tokenizer *tokenizer,
                                    struct tol_tokenizer_description *description);

/* ---- text to tokens ---- */

/* What encoding does beside the text itself. */
struct tol_encode_options {
    bool add_special;   /* prepend bos and append eos, if the file says so */
    bool parse_special; /* "<|eot_id|>" in the text is that token; otherwise it is text */
    /* A text that has more tokens is refused, as soon as that is known; 0: any number. */
    size_t tokens_max;
    /* Asked between words with user; true ends the encoding. NULL: nothing ends it. */
    bool (*is_cancelled)(const void *user);
    const void *user;
};

/*
 * Encodes bytes of text, which may contain any bytes. Up to room tokens are written to tokens, and
 * *count is how many the text has; with room 0 tokens may be NULL.
 * TOL_OUT_OF_RANGE: room is less than *count, which is set all the same.
 * TOL_OVER_LIMIT: more than tokens_max tokens; *count stays. TOL_CANCELLED: by is_cancelled.
 * TOL_INVALID_ARGUMENT: NULL, or a text of more than 1 GiB. TOL_OUT_OF_HOST_MEMORY.
 */
TOL_API tol_status tol_tokenizer_encode(const struct tol_tokenizer *tokenizer, const char *text,
                                        size_t bytes, const struct tol_encode_options *options,
                                        int32_t *tokens, size_t room, size_t *count);

/* ---- tokens to text ---- */

/* The bytes of a token, which may be a part of a UTF-8 sequence. Control tokens, such as eos, are
 * empty unless with_special. Empty for an invalid number too. */
TOL_API struct tol_gguf_text tol_tokenizer_piece(const struct tol_tokenizer *tokenizer,
                                                 int32_t token, bool with_special);

/* Whether a model means the end of its text by it: eos, and the ends of turns. */
TOL_API bool tol_tokenizer_is_end(const struct tol_tokenizer *tokenizer, int32_t token);

/* The token of this text exactly, such as "<|im_end|>". TOL_TOKEN_NONE: there is none. */
TOL_API int32_t tol_tokenizer_find(const struct tol_tokenizer *tokenizer, const char *text);

/*
 * A decoder turns tokens into text as they come. Its output is always valid UTF-8: bytes of
 * a sequence that is not complete are held back until it is, and what cannot become a sequence is
 * replaced by U+FFFD. It owns nothing and needs no end; copy it to try something.
 */
struct tol_decoder {
    const struct tol_tokenizer *tokenizer;
    bool with_special;
    bool skips_space;      /* the next token loses the space that encoding has added */
    unsigned char held[4]; /* the begun sequence */
    unsigned char held_count;
};

/* from_start: the tokens are a whole text, of which encoding may have added the first space. */
TOL_API void tol_decoder_begin(struct tol_decoder *decoder, const struct tol_tokenizer *tokenizer,
                               bool with_special, bool from_start);

/* Bytes that suffice for the text of any one token, and for tol_decoder_end. */
TOL_API size_t tol_decoder_room(const struct tol_tokenizer *tokenizer);

/*
 * Decodes a token; writes *bytes bytes of text to to, without a NUL. TOL_OUT_OF_RANGE: room is too
 * small; *bytes is what is needed, and the decoder is as before, so that nothing is lost.
 * TOL_INVALID_ARGUMENT: NULL, or no token of this vocabulary.
 */
TOL_API tol_status tol_decoder_push(struct tol_decoder *decoder, int32_t token, char *to,
                                    size_t room, size_t *bytes);

/* The end of the text: a sequence that is not complete becomes U+FFFD. Errors as above. */
TOL_API tol_status tol_decoder_end(struct tol_decoder *decoder, char *to, size_t room,
                                   size_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
