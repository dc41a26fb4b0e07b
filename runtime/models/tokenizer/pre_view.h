/*
 * Pre view: the rules of pre-tokenizers, the code points of a text up to an end, and the questions
 * that rules ask about them. No code point at or after the end has a class. Pure.
 */
#ifndef TOLLENS_PRE_VIEW_H
#define TOLLENS_PRE_VIEW_H

#include "unicode_class.h"

#include <stdbool.h>
#include <stddef.h>

/* The rules. */
enum tol_pre {
    TOL_PRE_DEFAULT,
    TOL_PRE_GPT2,
    TOL_PRE_LLAMA3,
    TOL_PRE_QWEN2,
    TOL_PRE_QWEN35,
    TOL_PRE_TEKKEN,
    TOL_PRE_SMOLLM,
    TOL_PRE_DEEPSEEK_LLM,
    TOL_PRE_DEEPSEEK_CODER,
    TOL_PRE_DEEPSEEK3
};

struct pre_view {
    const uint32_t *codes;
    size_t end;
};

static inline uint32_t pre_code(const struct pre_view *view, size_t at) {
    return at < view->end ? view->codes[at] : UINT32_MAX;
}

static inline bool pre_is(const struct pre_view *view, size_t at, enum tol_unicode_class wanted) {
    return at < view->end && tol_unicode_class(view->codes[at]) == wanted;
}

static inline bool pre_is_line_end(const struct pre_view *view, size_t at) {
    return pre_code(view, at) == '\r' || pre_code(view, at) == '\n';
}

/* How many code points from at on are of a class; at most `most`, so that a rule that takes a
 * bounded part of a run does not measure all of it for each part. */
static inline size_t pre_run(const struct pre_view *view, size_t at, enum tol_unicode_class of,
                             size_t most) {
    size_t length = 0;
    while (length < most && pre_is(view, at + length, of)) length++;
    return length;
}

/* The end of a word that no space divides: \s+(?!\S)|\s+, where a run leaves its last space to the
 * following word. 0: no space is here. */
size_t pre_spaces(const struct pre_view *view, size_t at);

/* Divides a word of code points from `from` up to the view's end as GPT-2 does. */
void pre_divide_gpt2(const struct pre_view *view, size_t from, unsigned char *ends);

/* The rules of several passes, each of which divides what the one before it has left. */
void pre_divide_passes(enum tol_pre pre, const struct pre_view *whole, unsigned char *ends);

#endif
