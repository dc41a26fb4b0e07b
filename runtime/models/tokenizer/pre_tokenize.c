/*
 * The rules, as the regular expressions that the models were trained with state them. Each function
 * finds the longest first alternative at a place; what no alternative matches is a word of one code
 * point. Sources: tokenizer.json of Llama 3 and of Qwen 2, encoder.py of GPT-2.
 */
#include "pre_tokenize.h"

#include "unicode_class.h"

#include <stdbool.h>
#include <string.h>

static const struct {
    const char *name;
    enum tol_pre pre;
} names[] = {{"default", TOL_PRE_DEFAULT},       {"gpt-2", TOL_PRE_GPT2},
             {"llama-bpe", TOL_PRE_LLAMA3},      {"qwen2", TOL_PRE_QWEN2},
             {"llama3", TOL_PRE_LLAMA3},         {"llama-v3", TOL_PRE_LLAMA3},
             {"deepseek-r1-qwen", TOL_PRE_QWEN2}};

enum tol_pre tol_pre_find(const char *name, size_t bytes) {
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i].name) == bytes && memcmp(names[i].name, name, bytes) == 0) {
            return names[i].pre;
        }
    }
    return TOL_PRES;
}

const char *tol_pre_name(enum tol_pre pre) {
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].pre == pre) return names[i].name;
    }
    return "?";
}

/* Code points of which only those up to end are seen; no code point after it has a class. */
struct view {
    const uint32_t *codes;
    size_t end;
};

static const uint32_t NOWHERE = UINT32_MAX;

static uint32_t code_at(const struct view *view, size_t at) {
    return at < view->end ? view->codes[at] : NOWHERE;
}

static bool pre_tokenize_is(const struct view *view, size_t at, enum tol_unicode_class wanted) {
    return at < view->end && tol_unicode_class(view->codes[at]) == wanted;
}

/* [^\s\p{L}\p{N}] */
static bool is_mark(const struct view *view, size_t at) {
    if (at >= view->end) return false;
    enum tol_unicode_class in = tol_unicode_class(view->codes[at]);
    return in != TOL_UNICODE_SPACE && in != TOL_UNICODE_LETTER && in != TOL_UNICODE_NUMBER;
}

static bool is_line_end(const struct view *view, size_t at) {
    return code_at(view, at) == '\r' || code_at(view, at) == '\n';
}

/* 's|'t|'m|'d|'re|'ve|'ll, in either case if any_case. 0: none is here. */
static size_t pre_tokenize_ending(const struct view *view, size_t at, bool any_case) {
    static const char *const endings[] = {"s", "t", "m", "d", "re", "ve", "ll"};
    if (code_at(view, at) != '\'') return 0;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t length = 0;
        while (endings[i][length] != '\0') {
            uint32_t code = code_at(view, at + 1 + length);
            if (any_case && code >= 'A' && code <= 'Z') code += 'a' - 'A';
            if (code != (unsigned char)endings[i][length]) break;
            length++;
        }
        if (endings[i][length] == '\0') return 1 + length;
    }
    return 0;
}

static size_t pre_tokenize_run(const struct view *view, size_t at, enum tol_unicode_class of) {
    size_t length = 0;
    while (pre_tokenize_is(view, at + length, of)) length++;
    return length;
}

/* \s+(?!\S)|\s+: a run leaves its last space to the following word. 0: no space is here. */
static size_t pre_tokenize_spaces(const struct view *view, size_t at) {
    size_t length = pre_tokenize_run(view, at, TOL_UNICODE_SPACE);
    return length > 1 && at + length < view->end ? length - 1 : length;
}

/* GPT-2: endings| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static size_t gpt2_word(const struct view *view, size_t at) {
    size_t length = pre_tokenize_ending(view, at, false), space = code_at(view, at) == ' ' ? 1 : 0;
    if (length > 0) return length;
    length = pre_tokenize_run(view, at + space, TOL_UNICODE_LETTER);
    if (length == 0) length = pre_tokenize_run(view, at + space, TOL_UNICODE_NUMBER);
    if (length > 0) return space + length;
    while (is_mark(view, at + space + length)) length++;
    if (length > 0) return space + length;
    length = pre_tokenize_spaces(view, at);
    return length > 0 ? length : 1;
}

/* Llama 3 and Qwen 2: endings in either case|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}|
 *  ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t modern_word(const struct view *view, size_t at, size_t digits) {
    size_t length = pre_tokenize_ending(view, at, true), space = code_at(view, at) == ' ' ? 1 : 0,
           line = 0;
    if (length > 0) return length;
    bool has_front = !is_line_end(view, at) && !pre_tokenize_is(view, at, TOL_UNICODE_LETTER) &&
                     !pre_tokenize_is(view, at, TOL_UNICODE_NUMBER);
    size_t front = has_front ? 1 : 0;
    length = pre_tokenize_run(view, at + front, TOL_UNICODE_LETTER);
    if (length > 0) return front + length;
    length = pre_tokenize_run(view, at, TOL_UNICODE_NUMBER);
    if (length > 0) return length < digits ? length : digits;
    while (is_mark(view, at + space + length)) length++;
    if (length > 0) {
        while (is_line_end(view, at + space + length)) length++;
        return space + length;
    }
    for (; pre_tokenize_is(view, at + length, TOL_UNICODE_SPACE); length++) {
        if (is_line_end(view, at + length)) line = length + 1;
    }
    if (line > 0) return line;
    length = pre_tokenize_spaces(view, at);
    return length > 0 ? length : 1;
}

static void pre_tokenize_divide(const struct view *view, size_t from, enum tol_pre pre,
                                unsigned char *ends) {
    for (size_t at = from; at < view->end;) {
        at += pre == TOL_PRE_LLAMA3  ? modern_word(view, at, 3)
              : pre == TOL_PRE_QWEN2 ? modern_word(view, at, 1)
                                     : gpt2_word(view, at);
        ends[at - 1] = 1;
    }
}

/* [\p{P}$+<=>^~|] */
static bool is_default_mark(uint32_t code) {
    if (code < 128) return strchr("!\"#%&'()*,-./:;?@[\\]_{}$+<=>^~|", (int)code) && code != 0;
    return tol_unicode_class(code) == TOL_UNICODE_PUNCTUATION;
}

/* The default rule divides four times, each time inside the words so far: runs of marks; as GPT-2;
 * runs of numbers; three digits. */
static void divide_default(const struct view *whole, unsigned char *ends) {
    for (size_t from = 0, to; from < whole->end; from = to) {
        bool marks = is_default_mark(whole->codes[from]);
        for (to = from; to < whole->end && is_default_mark(whole->codes[to]) == marks;) to++;
        pre_tokenize_divide(&(struct view){whole->codes, to}, from, TOL_PRE_GPT2, ends);
    }
    size_t digits = 0;
    for (size_t at = 0; at < whole->end; at++) {
        bool number = pre_tokenize_is(whole, at, TOL_UNICODE_NUMBER);
        uint32_t code = whole->codes[at];
        if (at > 0 && number != pre_tokenize_is(whole, at - 1, TOL_UNICODE_NUMBER))
            ends[at - 1] = 1;
        if (at > 0 && ends[at - 1] != 0) digits = 0;
        digits = code >= '0' && code <= '9' ? digits + 1 : 0;
        if (digits < 3) continue;
        ends[at] = 1;
        if (at >= 3) ends[at - 3] = 1;
    }
}

void tol_pre_divide(enum tol_pre pre, const uint32_t *codes, size_t count, unsigned char *ends) {
    struct view whole = {codes, count};
    memset(ends, 0, count);
    if (pre == TOL_PRE_DEFAULT)
        divide_default(&whole, ends);
    else
        pre_tokenize_divide(&whole, 0, pre, ends);
}
