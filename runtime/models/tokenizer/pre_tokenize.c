/*
 * The names, and the rules of one pass, as the regular expressions that the models were trained
 * with state them. Each function finds the longest first alternative at a place; what no
 * alternative matches is a word of one code point. Sources: tokenizer.json of Llama 3, of Qwen 2
 * and 3.5 and of Mistral Nemo (tekken), encoder.py of GPT-2; the names and what they add,
 * llama.cpp.
 */
#include "pre_tokenize.h"

#include <string.h>

static const struct tol_pre_kind kinds[] = {
    {"default", TOL_PRE_DEFAULT, false, false},
    {"gpt-2", TOL_PRE_GPT2, false, false},
    {"phi-2", TOL_PRE_GPT2, false, false},
    {"jina-es", TOL_PRE_GPT2, false, false},
    {"jina-de", TOL_PRE_GPT2, false, false},
    {"gigachat", TOL_PRE_GPT2, false, false},
    {"a.x-4.0", TOL_PRE_GPT2, false, false},
    {"mellum", TOL_PRE_GPT2, false, false},
    {"modern-bert", TOL_PRE_GPT2, false, false},
    {"mpt", TOL_PRE_GPT2, false, false},
    {"olmo", TOL_PRE_GPT2, false, false},
    {"jais", TOL_PRE_GPT2, false, false},
    {"exaone4", TOL_PRE_GPT2, false, false},
    {"trillion", TOL_PRE_GPT2, false, false},
    {"granite-docling", TOL_PRE_GPT2, false, false},
    {"llama-bpe", TOL_PRE_LLAMA3, true, true},
    {"llama3", TOL_PRE_LLAMA3, true, true},
    {"llama-v3", TOL_PRE_LLAMA3, true, true},
    {"falcon3", TOL_PRE_LLAMA3, true, true},
    {"falcon-h1", TOL_PRE_LLAMA3, true, true},
    {"pixtral", TOL_PRE_LLAMA3, true, true},
    {"midm-2.0", TOL_PRE_LLAMA3, true, true},
    {"lfm2", TOL_PRE_LLAMA3, true, true},
    {"jina-v5-nano", TOL_PRE_LLAMA3, true, true},
    {"dbrx", TOL_PRE_LLAMA3, false, false},
    {"smaug-bpe", TOL_PRE_LLAMA3, false, false},
    {"qwen2", TOL_PRE_QWEN2, false, false},
    {"deepseek-r1-qwen", TOL_PRE_QWEN2, false, false},
    {"kormo", TOL_PRE_QWEN2, false, false},
    {"f2llmv2", TOL_PRE_QWEN2, false, false},
    {"stablelm2", TOL_PRE_QWEN2, false, false},
    {"megrez", TOL_PRE_QWEN2, false, false},
    {"hunyuan", TOL_PRE_QWEN2, false, false},
    {"solar-open", TOL_PRE_QWEN2, false, false},
    {"grok-2", TOL_PRE_QWEN2, false, false},
    {"qwen35", TOL_PRE_QWEN35, false, false},
    {"tekken", TOL_PRE_TEKKEN, true, true},
    {"smollm", TOL_PRE_SMOLLM, false, false},
    {"starcoder", TOL_PRE_SMOLLM, false, false},
    {"refact", TOL_PRE_SMOLLM, false, false},
    {"command-r", TOL_PRE_SMOLLM, false, false},
    {"codeshell", TOL_PRE_SMOLLM, false, false},
    {"exaone", TOL_PRE_SMOLLM, false, false},
    {"minerva-7b", TOL_PRE_SMOLLM, false, false},
    {"mellum2", TOL_PRE_SMOLLM, false, false},
    {"deepseek-llm", TOL_PRE_DEEPSEEK_LLM, false, false},
    {"deepseek-coder", TOL_PRE_DEEPSEEK_CODER, false, false},
    {"deepseek-v3", TOL_PRE_DEEPSEEK3, false, false},
    {"hunyuan-dense", TOL_PRE_DEEPSEEK3, false, false},
    {"joyai-llm", TOL_PRE_DEEPSEEK3, false, false},
    {"hy_v4", TOL_PRE_DEEPSEEK3, false, false}};

const struct tol_pre_kind *tol_pre_find(const char *name, size_t bytes) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strlen(kinds[i].name) == bytes && memcmp(kinds[i].name, name, bytes) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* What the modern rules differ in. */
struct modern {
    size_t digits;      /* of a number that is a word */
    bool has_endings;   /* 's and the like are words */
    bool takes_accents; /* marks that combine belong to the letters */
    bool takes_slash;   /* after punctuation, as line ends */
    bool divides_case;  /* before a capital */
};

static const struct modern moderns[] = {[TOL_PRE_LLAMA3] = {3, true, false, false, false},
                                        [TOL_PRE_QWEN2] = {1, true, false, false, false},
                                        [TOL_PRE_QWEN35] = {1, true, true, false, false},
                                        [TOL_PRE_TEKKEN] = {1, false, false, true, true}};

/* [^\s\p{L}\p{N}] */
static bool is_mark(const struct pre_view *view, size_t at) {
    if (at >= view->end) return false;
    enum tol_unicode_class in = tol_unicode_class(view->codes[at]);
    return in != TOL_UNICODE_SPACE && in != TOL_UNICODE_LETTER && in != TOL_UNICODE_NUMBER;
}

/* 's|'t|'m|'d|'re|'ve|'ll, in either case if any_case. 0: none is here. */
static size_t pre_tokenize_ending(const struct pre_view *view, size_t at, bool any_case) {
    static const char *const endings[] = {"s", "t", "m", "d", "re", "ve", "ll"};
    if (pre_code(view, at) != '\'') return 0;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t length = 0;
        while (endings[i][length] != '\0') {
            uint32_t code = pre_code(view, at + 1 + length);
            if (any_case && code >= 'A' && code <= 'Z') code += 'a' - 'A';
            if (code != (unsigned char)endings[i][length]) break;
            length++;
        }
        if (endings[i][length] == '\0') return 1 + length;
    }
    return 0;
}

size_t pre_spaces(const struct pre_view *view, size_t at) {
    size_t length = pre_run(view, at, TOL_UNICODE_SPACE, SIZE_MAX);
    return length > 1 && at + length < view->end ? length - 1 : length;
}

/* GPT-2: endings| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static size_t gpt2_word(const struct pre_view *view, size_t at) {
    size_t length = pre_tokenize_ending(view, at, false), space = pre_code(view, at) == ' ' ? 1 : 0;
    if (length > 0) return length;
    length = pre_run(view, at + space, TOL_UNICODE_LETTER, SIZE_MAX);
    if (length == 0) length = pre_run(view, at + space, TOL_UNICODE_NUMBER, SIZE_MAX);
    if (length > 0) return space + length;
    while (is_mark(view, at + space + length)) length++;
    if (length > 0) return space + length;
    length = pre_spaces(view, at);
    return length > 0 ? length : 1;
}

/* Tekken's letters: capitals, then the others. Letters beyond ASCII count as both.
 * ((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+|((?=[\p{L}])([^a-z]))+((?=[\p{L}])([^A-Z]))* */
static size_t cased_letters(const struct pre_view *view, size_t at) {
    size_t high = 0, low = 0;
    while (pre_is(view, at + high, TOL_UNICODE_LETTER) &&
           !(pre_code(view, at + high) >= 'a' && pre_code(view, at + high) <= 'z')) {
        high++;
    }
    for (size_t first = high + 1; first-- > 0 && low == 0;) {
        while (
            pre_is(view, at + first + low, TOL_UNICODE_LETTER) &&
            !(pre_code(view, at + first + low) >= 'A' && pre_code(view, at + first + low) <= 'Z')) {
            low++;
        }
        if (low > 0) return first + low;
    }
    return high;
}

static size_t modern_letters(const struct pre_view *view, size_t at, const struct modern *rule) {
    size_t length = 0;
    if (rule->divides_case) return cased_letters(view, at);
    while (pre_is(view, at + length, TOL_UNICODE_LETTER) ||
           (rule->takes_accents && pre_is(view, at + length, TOL_UNICODE_ACCENT))) {
        length++;
    }
    return length;
}

/* Letters, with something in front of them that is neither letter, number nor line end. */
static size_t modern_front(const struct pre_view *view, size_t at, const struct modern *rule) {
    bool has_front = !pre_is_line_end(view, at) && !pre_is(view, at, TOL_UNICODE_LETTER) &&
                     !pre_is(view, at, TOL_UNICODE_NUMBER);
    size_t length = modern_letters(view, at + (has_front ? 1 : 0), rule);
    if (length > 0) return length + (has_front ? 1 : 0);
    return has_front ? modern_letters(view, at, rule) : 0;
}

/* endings in either case|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|
 * \s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t modern_word(const struct pre_view *view, size_t at, const struct modern *rule) {
    size_t length = rule->has_endings ? pre_tokenize_ending(view, at, true) : 0,
           space = pre_code(view, at) == ' ' ? 1 : 0, line = 0;
    if (length > 0) return length;
    length = modern_front(view, at, rule);
    if (length > 0) return length;
    length = pre_run(view, at, TOL_UNICODE_NUMBER, rule->digits);
    if (length > 0) return length;
    while (is_mark(view, at + space + length) &&
           !(rule->takes_accents && pre_is(view, at + space + length, TOL_UNICODE_ACCENT))) {
        length++;
    }
    if (length > 0) {
        while (pre_is_line_end(view, at + space + length) ||
               (rule->takes_slash && pre_code(view, at + space + length) == '/')) {
            length++;
        }
        return space + length;
    }
    for (; pre_is(view, at + length, TOL_UNICODE_SPACE); length++) {
        if (pre_is_line_end(view, at + length)) line = length + 1;
    }
    if (line > 0) return line;
    length = pre_spaces(view, at);
    return length > 0 ? length : 1;
}

void pre_divide_gpt2(const struct pre_view *view, size_t from, unsigned char *ends) {
    for (size_t at = from; at < view->end;) {
        at += gpt2_word(view, at);
        ends[at - 1] = 1;
    }
}

static void pre_divide_modern(const struct pre_view *view, const struct modern *rule,
                              unsigned char *ends) {
    for (size_t at = 0; at < view->end;) {
        at += modern_word(view, at, rule);
        ends[at - 1] = 1;
    }
}

void tol_pre_divide(enum tol_pre pre, const uint32_t *codes, size_t count, unsigned char *ends) {
    struct pre_view whole = {codes, count};
    memset(ends, 0, count);
    if (pre == TOL_PRE_GPT2) {
        pre_divide_gpt2(&whole, 0, ends);
    } else if (pre == TOL_PRE_LLAMA3 || pre == TOL_PRE_QWEN2 || pre == TOL_PRE_QWEN35 ||
               pre == TOL_PRE_TEKKEN) {
        pre_divide_modern(&whole, &moderns[pre], ends);
    } else {
        pre_divide_passes(pre, &whole, ends);
    }
}
