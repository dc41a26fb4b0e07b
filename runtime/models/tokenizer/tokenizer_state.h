/*
 * The fields of struct tol_tokenizer, and what its files share.
 */
#ifndef TOLLENS_TOKENIZER_STATE_H
#define TOLLENS_TOKENIZER_STATE_H

#include "pre_tokenize.h"
#include "text_map.h"
#include "tollens/tokenizer.h"

/* Types of tokens; the numbers are the file's. */
enum tol_token_kind {
    TOL_TOKEN_NORMAL = 1,
    TOL_TOKEN_UNKNOWN = 2,
    TOL_TOKEN_CONTROL = 3,
    TOL_TOKEN_USER_DEFINED = 4,
    TOL_TOKEN_UNUSED = 5,
    TOL_TOKEN_BYTE = 6
};

struct tol_token {
    struct tol_gguf_text text;  /* as the file has it */
    struct tol_gguf_text piece; /* as it is in a text */
    float score;                /* SPM */
    unsigned char kind;
    bool is_end;
    bool strips_right, strips_left; /* white space after it, before it, is no text */
};

struct tol_tokenizer {
    struct tol_tokenizer_description about;
    enum tol_pre pre;
    bool ignores_merges; /* a word that is a token is one, whatever the merges say */
    struct tol_token *tokens;
    struct tol_text_map by_text;  /* texts as the file has them */
    struct tol_text_map by_piece; /* BPE: bytes of normal tokens; merges have bytes, too */
    struct tol_text_map ranks;    /* BPE: pairs of bytes */
    int32_t of_byte[256];         /* SPM: the tokens of single bytes */
    int32_t *special;             /* tokens that a text may name, the longest text first */
    size_t special_count, longest_piece;
    char *bytes; /* what texts and pieces point into */
};

/* Reads the file's keys into a tokenizer of zeros. On failure the caller destroys it. */
tol_status tol_tokenizer_load(const struct tol_gguf *gguf, struct tol_tokenizer *tokenizer);

/* Tokens that are written up to a room, and counted beyond it. */
struct tol_token_list {
    int32_t *tokens;
    size_t room, count;
};

static inline void tol_token_add(struct tol_token_list *list, int32_t token) {
    if (list->count < list->room) list->tokens[list->count] = token;
    list->count++;
}

/* The byte that a letter of a byte-level vocabulary represents; -1: none. */
int tol_byte_of_letter(uint32_t letter);

#endif
