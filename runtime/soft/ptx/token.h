/*
 * Tokens: PTX text split into words. Source: PTX ISA 9.0, chapter 4 (Syntax).
 */
#ifndef SOFT_TOKEN_H
#define SOFT_TOKEN_H

#include "base/arena.h"
#include "diagnostic.h"

#include <stdint.h>

enum soft_token_kind {
    SOFT_TOKEN_END,
    SOFT_TOKEN_NAME,    /* add, %r1, $L__BB0_1, _ */
    SOFT_TOKEN_DOTTED,  /* .global, .f32, .shared::cta: a directive or a modifier, dot included */
    SOFT_TOKEN_INTEGER, /* 12, 0x1f, 017, 0b101, with or without U */
    SOFT_TOKEN_FLOAT,   /* 1.5, 2e-3, 0f3F800000, 0d3FF0000000000000; also the 9.0 of .version */
    SOFT_TOKEN_STRING,  /* quotes included */
    SOFT_TOKEN_MARK     /* one character of punctuation */
};

struct soft_token {
    uint32_t offset; /* in the text */
    uint32_t length;
    uint8_t kind; /* enum soft_token_kind */
    char first;   /* its first character */
};

/* Splits the whole text, which ends with '\0'; the list ends with a SOFT_TOKEN_END. The arena
 * should be cleared after the text was read, because the list is several times longer than the
 * text. false: an error is noted. */
bool soft_tokenize(struct soft_diagnostic *diagnostic, struct soft_arena *arena,
                   struct soft_token **tokens, size_t *count);

#endif
