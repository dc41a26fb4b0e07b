/*
 * Rules of several passes: each divides the words that the passes before it have left. What a pass
 * matches is a word, and so is what is between two matches. Sources: the rule `default` of
 * llama.cpp; tokenizer.json of SmolLM and of DeepSeek (LLM, Coder, V3).
 */
#include "pre_view.h"

#include <string.h>

/* The length of what a pass matches at a place; 0: nothing. */
typedef size_t pass_match(const struct pre_view *view, size_t at);

static void pass_divide(const struct pre_view *whole, pass_match *match, unsigned char *ends) {
    for (size_t from = 0, to; from < whole->end; from = to) {
        for (to = from + 1; to < whole->end && ends[to - 1] == 0;) to++;
        const struct pre_view word = {whole->codes, to};
        for (size_t at = from; at < to;) {
            const size_t length = match(&word, at);
            if (length > 0 && at > from) ends[at - 1] = 1;
            at += length > 0 ? length : 1;
            if (length > 0) ends[at - 1] = 1;
        }
        ends[to - 1] = 1;
    }
}

/* ---- what passes match ---- */

struct code_range {
    uint32_t first, last;
};

static bool pass_is_among(uint32_t code, const struct code_range *ranges, size_t count) {
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (code < ranges[middle].first)
            high = middle;
        else if (code > ranges[middle].last)
            low = middle + 1;
        else
            return true;
    }
    return false;
}

/* A run of code points of these ranges, white space being of none; after one space if spaced. */
static size_t pass_range_run(const struct pre_view *view, size_t at, bool spaced,
                             const struct code_range *ranges, size_t count) {
    const size_t space = spaced && pre_is(view, at, TOL_UNICODE_SPACE) ? 1 : 0;
    size_t length = 0;
    while (at + space + length < view->end &&
           !pre_is(view, at + space + length, TOL_UNICODE_SPACE) &&
           pass_is_among(view->codes[at + space + length], ranges, count)) {
        length++;
    }
    return length > 0 ? space + length : 0;
}

static size_t pass_class_run(const struct pre_view *view, size_t at, enum tol_unicode_class of) {
    const size_t space = pre_is(view, at, TOL_UNICODE_SPACE) ? 1 : 0;
    const size_t length = pre_run(view, at + space, of, SIZE_MAX);
    return length > 0 ? space + length : 0;
}

/* [\r\n] */
static size_t match_line_end(const struct pre_view *view, size_t at) {
    return pre_is_line_end(view, at) ? 1 : 0;
}

/* \p{N} */
static size_t match_number(const struct pre_view *view, size_t at) {
    return pre_run(view, at, TOL_UNICODE_NUMBER, 1);
}

/* \p{N}{1,3} */
static size_t match_three_numbers(const struct pre_view *view, size_t at) {
    return pre_run(view, at, TOL_UNICODE_NUMBER, 3);
}

/* \p{N}+ */
static size_t match_numbers(const struct pre_view *view, size_t at) {
    return pre_run(view, at, TOL_UNICODE_NUMBER, SIZE_MAX);
}

/* \s?\p{L}+ */
static size_t match_letters(const struct pre_view *view, size_t at) {
    return pass_class_run(view, at, TOL_UNICODE_LETTER);
}

/* \s?\p{P}+ */
static size_t match_punctuation(const struct pre_view *view, size_t at) {
    return pass_class_run(view, at, TOL_UNICODE_PUNCTUATION);
}

/* DeepSeek LLM's letters: those with a case. */
static size_t match_cased(const struct pre_view *view, size_t at) {
    static const struct code_range cased[] = {
        {0x41, 0x5a},       {0x61, 0x7a},       {0xb5, 0xb5},       {0xc0, 0xd6},
        {0xd8, 0xf6},       {0xf8, 0x1ba},      {0x1bc, 0x1bf},     {0x1c4, 0x293},
        {0x295, 0x2af},     {0x370, 0x373},     {0x376, 0x376},     {0x377, 0x377},
        {0x37b, 0x37d},     {0x37f, 0x37f},     {0x386, 0x386},     {0x388, 0x38a},
        {0x38c, 0x38c},     {0x38e, 0x3a1},     {0x3a3, 0x3f5},     {0x3f7, 0x481},
        {0x48a, 0x52f},     {0x531, 0x556},     {0x10a0, 0x10c5},   {0x13a0, 0x13f5},
        {0x13f8, 0x13fd},   {0x1c90, 0x1cba},   {0x1cbd, 0x1cbf},   {0x1d00, 0x1d2b},
        {0x1d6b, 0x1d77},   {0x1d79, 0x1d9a},   {0x1e00, 0x1f15},   {0x1f18, 0x1f1d},
        {0x1f20, 0x1f45},   {0x1f48, 0x1f4d},   {0x1f50, 0x1f57},   {0x1f59, 0x1f59},
        {0x1f5b, 0x1f5b},   {0x1f5d, 0x1f5d},   {0x1f5f, 0x1f7d},   {0x1f80, 0x1fb4},
        {0x1fb6, 0x1fbc},   {0x1fbe, 0x1fbe},   {0x1fc2, 0x1fc4},   {0x1fc6, 0x1fcc},
        {0x1fd0, 0x1fd3},   {0x1fd6, 0x1fdb},   {0x1fe0, 0x1fec},   {0x1ff2, 0x1ff4},
        {0x1ff6, 0x1ffc},   {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210a, 0x2113},
        {0x2115, 0x2115},   {0x2119, 0x211d},   {0x2124, 0x2124},   {0x2126, 0x2126},
        {0x2128, 0x2128},   {0x212a, 0x212d},   {0x212f, 0x2134},   {0x2139, 0x2139},
        {0x213c, 0x213f},   {0x2145, 0x2149},   {0x214e, 0x214e},   {0x2183, 0x2183},
        {0x2184, 0x2184},   {0x2c00, 0x2c7b},   {0x2c7e, 0x2ce4},   {0x2ceb, 0x2cee},
        {0x2cf2, 0x2cf2},   {0x2cf3, 0x2cf3},   {0xa640, 0xa66d},   {0xa680, 0xa69b},
        {0xa722, 0xa76f},   {0xa771, 0xa787},   {0xa78b, 0xa78e},   {0xab70, 0xabbf},
        {0xfb00, 0xfb06},   {0xfb13, 0xfb17},   {0xff21, 0xff3a},   {0xff41, 0xff5a},
        {0x10400, 0x1044f}, {0x104b0, 0x104d3}, {0x104d8, 0x104fb}, {0x10c80, 0x10cb2},
        {0x10cc0, 0x10cf2}, {0x118a0, 0x118df}, {0x1e900, 0x1e943}};
    return pass_range_run(view, at, true, cased, sizeof cased / sizeof cased[0]);
}

/* DeepSeek LLM's punctuation: of ASCII with the letters, the wide forms, quotation marks. */
static size_t match_wide_punctuation(const struct pre_view *view, size_t at) {
    static const struct code_range marks[] = {{0x21, 0x2f},     {0x3a, 0x7e},     {0x2018, 0x201f},
                                              {0x3000, 0x3002}, {0xff01, 0xff0f}, {0xff1a, 0xff5e}};
    return pass_range_run(view, at, true, marks, sizeof marks / sizeof marks[0]);
}

/* Scripts of East Asia, with those between U+0800 and U+4E00. */
static size_t match_east_asian(const struct pre_view *view, size_t at) {
    static const struct code_range scripts[] = {{0x800, 0x9fa5}, {0xac00, 0xd7ff}};
    return pass_range_run(view, at, false, scripts, sizeof scripts / sizeof scripts[0]);
}

/* Kana and Han. */
static size_t match_han(const struct pre_view *view, size_t at) {
    static const struct code_range scripts[] = {{0x3040, 0x30ff}, {0x4e00, 0x9fa5}};
    return pass_range_run(view, at, false, scripts, sizeof scripts / sizeof scripts[0]);
}

static bool is_ascii_letter(uint32_t code) {
    return (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z');
}

static bool is_ascii_mark(uint32_t code) {
    return code > ' ' && code < 0x7f && !is_ascii_letter(code) && !(code >= '0' && code <= '9');
}

static bool is_accented(const struct pre_view *view, size_t at) {
    return pre_is(view, at, TOL_UNICODE_LETTER) || pre_is(view, at, TOL_UNICODE_ACCENT);
}

static bool is_sign(const struct pre_view *view, size_t at) {
    return pre_is(view, at, TOL_UNICODE_PUNCTUATION) || pre_is(view, at, TOL_UNICODE_SYMBOL);
}

/* [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+ */
static size_t deepseek_letters(const struct pre_view *view, size_t at) {
    const bool has_front = at < view->end && !pre_is_line_end(view, at) && !is_sign(view, at) &&
                           !pre_is(view, at, TOL_UNICODE_LETTER) && is_accented(view, at + 1);
    size_t length = has_front ? 1 : 0;
    while (is_accented(view, at + length)) length++;
    return length;
}

/* An ASCII mark with letters|deepseek_letters| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t match_deepseek3(const struct pre_view *view, size_t at) {
    size_t length = 1, line = 0, space = pre_code(view, at) == ' ' ? 1 : 0;
    if (is_ascii_mark(pre_code(view, at)) && is_ascii_letter(pre_code(view, at + 1))) {
        while (is_ascii_letter(pre_code(view, at + length))) length++;
        return length;
    }
    length = deepseek_letters(view, at);
    if (length > 0) return length;
    while (is_sign(view, at + space + length)) length++;
    if (length > 0) {
        while (pre_is_line_end(view, at + space + length)) length++;
        return space + length;
    }
    for (; pre_is(view, at + length, TOL_UNICODE_SPACE); length++) {
        if (pre_is_line_end(view, at + length)) line = length + 1;
    }
    return line > 0 ? line : pre_spaces(view, at);
}

/* \s+$: the spaces at a word's end. */
static void divide_last_spaces(const struct pre_view *whole, unsigned char *ends) {
    for (size_t to = whole->end; to > 0;) {
        size_t at = to;
        while (at > 0 && pre_is(whole, at - 1, TOL_UNICODE_SPACE) &&
               (at == to || ends[at - 1] == 0)) {
            at--;
        }
        if (at > 0 && at < to) ends[at - 1] = 1;
        for (to = at < to ? at : to - 1; to > 0 && ends[to - 1] == 0;) to--;
    }
}

/* ---- the rules ---- */

/* [\p{P}$+<=>^~|] */
static bool is_default_mark(uint32_t code) {
    if (code < 128) return strchr("!\"#%&'()*,-./:;?@[\\]_{}$+<=>^~|", (int)code) && code != 0;
    return tol_unicode_class(code) == TOL_UNICODE_PUNCTUATION;
}

/* The default rule divides four times: runs of marks; as GPT-2; runs of numbers; three digits. */
static void divide_default(const struct pre_view *whole, unsigned char *ends) {
    for (size_t from = 0, to; from < whole->end; from = to) {
        bool marks = is_default_mark(whole->codes[from]);
        for (to = from; to < whole->end && is_default_mark(whole->codes[to]) == marks;) to++;
        pre_divide_gpt2(&(struct pre_view){whole->codes, to}, from, ends);
    }
    size_t digits = 0;
    for (size_t at = 0; at < whole->end; at++) {
        bool number = pre_is(whole, at, TOL_UNICODE_NUMBER);
        uint32_t code = whole->codes[at];
        if (at > 0 && number != pre_is(whole, at - 1, TOL_UNICODE_NUMBER)) ends[at - 1] = 1;
        if (at > 0 && ends[at - 1] != 0) digits = 0;
        digits = code >= '0' && code <= '9' ? digits + 1 : 0;
        if (digits < 3) continue;
        ends[at] = 1;
        if (at >= 3) ends[at - 3] = 1;
    }
}

/* Numbers one by one, the rest as GPT-2. */
static void divide_smollm(const struct pre_view *whole, unsigned char *ends) {
    for (size_t from = 0, to; from < whole->end; from = to) {
        for (to = from; to < whole->end && !pre_is(whole, to, TOL_UNICODE_NUMBER);) to++;
        pre_divide_gpt2(&(struct pre_view){whole->codes, to}, from, ends);
        if (to < whole->end) ends[to++] = 1;
    }
}

static void divide_deepseek_llm(const struct pre_view *whole, unsigned char *ends) {
    pass_divide(whole, match_line_end, ends);
    pass_divide(whole, match_cased, ends);
    pass_divide(whole, match_wide_punctuation, ends);
    divide_last_spaces(whole, ends);
    pass_divide(whole, match_east_asian, ends);
    pass_divide(whole, match_numbers, ends);
}

static void divide_deepseek_coder(const struct pre_view *whole, unsigned char *ends) {
    pass_divide(whole, match_line_end, ends);
    pass_divide(whole, match_letters, ends);
    pass_divide(whole, match_punctuation, ends);
    pass_divide(whole, match_east_asian, ends);
    pass_divide(whole, match_number, ends);
}

static void divide_deepseek3(const struct pre_view *whole, unsigned char *ends) {
    pass_divide(whole, match_three_numbers, ends);
    pass_divide(whole, match_han, ends);
    pass_divide(whole, match_deepseek3, ends);
}

void pre_divide_passes(enum tol_pre pre, const struct pre_view *whole, unsigned char *ends) {
    if (pre == TOL_PRE_SMOLLM)
        divide_smollm(whole, ends);
    else if (pre == TOL_PRE_DEEPSEEK_LLM)
        divide_deepseek_llm(whole, ends);
    else if (pre == TOL_PRE_DEEPSEEK_CODER)
        divide_deepseek_coder(whole, ends);
    else if (pre == TOL_PRE_DEEPSEEK3)
        divide_deepseek3(whole, ends);
    else
        divide_default(whole, ends);
}
