/*
 * Tokens: each kind, its begin and end, and invalid ones.
 */
#include "token.h"

#include "tollens/cuda_abi.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct soft_arena arena;
static struct soft_diagnostic diagnostic;
static struct soft_token *tokens;
static size_t count;

static bool cut(const char *text) {
    diagnostic = (struct soft_diagnostic){.text = text, .length = strlen(text)};
    count = 0;
    return soft_tokenize(&diagnostic, &arena, &tokens, &count);
}

static void clear(void) {
    soft_arena_clear(&arena);
}

TestSuite(token, .fini = clear);

/* One word in, one token of its length out, and the end. */
static void check_word(const char *word, enum soft_token_kind kind) {
    cr_assert(cut(word), "%s: %s", word, diagnostic.message);
    cr_assert(count == 2 && tokens[1].kind == SOFT_TOKEN_END, "%s: %zu tokens", word, count);
    cr_assert(tokens[0].kind == kind, "%s is of kind %d, not %d", word, tokens[0].kind, kind);
    cr_assert(tokens[0].offset == 0 && tokens[0].length == strlen(word), "%s", word);
}

Test(token, every_kind_of_word_is_one_token) {
    static const struct {
        const char *word;
        enum soft_token_kind kind;
    } cases[] = {
        {"add", SOFT_TOKEN_NAME},
        {"%r1", SOFT_TOKEN_NAME},
        {"$L__BB0_1", SOFT_TOKEN_NAME},
        {"_", SOFT_TOKEN_NAME},
        {"_ZN3foo3barEv$x", SOFT_TOKEN_NAME},
        {".global", SOFT_TOKEN_DOTTED},
        {".f32", SOFT_TOKEN_DOTTED},
        {".shared::cta", SOFT_TOKEN_DOTTED},
        {".L2::128B", SOFT_TOKEN_DOTTED},
        {".2d", SOFT_TOKEN_DOTTED},
        {".5", SOFT_TOKEN_FLOAT},
        {".5e-3", SOFT_TOKEN_FLOAT},
        {"2.", SOFT_TOKEN_FLOAT},
        {"0", SOFT_TOKEN_INTEGER},
        {"12", SOFT_TOKEN_INTEGER},
        {"12U", SOFT_TOKEN_INTEGER},
        {"0x1f", SOFT_TOKEN_INTEGER},
        {"0XFFU", SOFT_TOKEN_INTEGER},
        {"0b101", SOFT_TOKEN_INTEGER},
        {"017", SOFT_TOKEN_INTEGER},
        {"1.5", SOFT_TOKEN_FLOAT},
        {"2e-3", SOFT_TOKEN_FLOAT},
        {"2E+3", SOFT_TOKEN_FLOAT},
        {"1.5e7", SOFT_TOKEN_FLOAT},
        {"0f3F800000", SOFT_TOKEN_FLOAT},
        {"0D3FF0000000000000", SOFT_TOKEN_FLOAT},
        {"\"a string, \\\"quoted\\\"\"", SOFT_TOKEN_STRING},
        {";", SOFT_TOKEN_MARK},
        {"@", SOFT_TOKEN_MARK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_word(cases[i].word, cases[i].kind);
    }
}

Test(token, words_end_where_the_next_begins) {
    static const char text[] = "@!%p1 bra\t$L1;ld.param.u64%rd1,[a+-8];{}<10>::x";
    static const char *const words[] = {
        "@", "!", "%p1", "bra", "$L1", ";", "ld", ".param", ".u64", "%rd1", ",", "[", "a",
        "+", "-", "8",   "]",   ";",   "{", "}",  "<",      "10",   ">",    ":", ":", "x"};
    cr_assert(cut(text));
    cr_assert_eq(count, sizeof words / sizeof words[0] + 1, "%zu", count);
    for (size_t i = 0; i + 1 < count; i++) {
        cr_assert(tokens[i].length == strlen(words[i]) &&
                      memcmp(text + tokens[i].offset, words[i], tokens[i].length) == 0,
                  "token %zu is '%.*s', not '%s'", i, (int)tokens[i].length,
                  text + tokens[i].offset, words[i]);
    }
}

Test(token, a_percent_sign_alone_is_the_operator) {
    cr_assert(cut("7 % 2"));
    cr_assert(count == 4 && tokens[1].kind == SOFT_TOKEN_MARK && tokens[1].length == 1);
    cr_assert(cut("7 %2"));
    cr_assert(count == 3 && tokens[1].kind == SOFT_TOKEN_NAME, "a name, as ptxas has it");
}

Test(token, comments_and_blanks_are_nothing) {
    cr_assert(cut(" \t\r\n\f\v// to the end /* of the line\nadd/* one */ /***/ret// last"));
    cr_assert_eq(count, 3);
    cr_assert(tokens[0].length == 3 && tokens[1].length == 3);
    cr_assert(cut("") && count == 1 && tokens[0].kind == SOFT_TOKEN_END);
    cr_assert(cut("//") && count == 1);
    cr_assert(cut("/**/") && count == 1);
}

Test(token, a_long_text_grows_the_list) {
    enum { WORDS = 5000 };
    static char text[2 * WORDS + 1];
    for (int i = 0; i < WORDS; i++) text[2 * i] = ';', text[2 * i + 1] = ',';
    cr_assert(cut(text));
    cr_assert_eq(count, 2 * WORDS + 1);
    cr_assert_eq(tokens[2 * WORDS - 1].offset, 2 * WORDS - 1);
}

Test(token, what_has_no_end_or_no_meaning_is_refused_with_its_place) {
    static const struct {
        const char *text, *place, *what, *shown;
    } cases[] = {
        {"add\n  /* never", "ptx:2:3:", "comment", "      /* never\n      ^\n"},
        {"\"never", "ptx:1:1:", "string", "    \"never\n    ^\n"},
        {"\n\n.file 1 \"cut\nhere\"", "ptx:3:9:", "string", "    .file 1 \"cut\n            ^\n"},
        {"add #1;", "ptx:1:5:", "code 35", "    add #1;\n        ^\n"},
        {"a\tb \x80", "ptx:1:5:", "code 128", "    a\tb ?\n     \t  ^\n"},
        {"`", "ptx:1:1:", "code 96", "    `\n    ^\n"},
        {"\"\\", "ptx:1:1:", "string", "    \"\\\n    ^\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert(!cut(cases[i].text), "%s", cases[i].text);
        cr_assert_eq(diagnostic.result, CUDA_ERROR_INVALID_PTX);
        cr_assert(strncmp(diagnostic.message, cases[i].place, strlen(cases[i].place)) == 0, "%s",
                  diagnostic.message);
        cr_assert(strstr(diagnostic.message, cases[i].what) != NULL, "%s", diagnostic.message);
        cr_assert(strstr(diagnostic.message, cases[i].shown) != NULL, "%s", diagnostic.message);
    }
}

Test(token, the_caret_stays_in_sight_on_a_long_line) {
    static char text[2000];
    memset(text, ' ', sizeof text - 1);
    text[1500] = '`';
    cr_assert(!cut(text));
    char *caret = strrchr(diagnostic.message, '^'), *line = strrchr(diagnostic.message, '`');
    cr_assert(caret != NULL && line != NULL && strstr(diagnostic.message, "ptx:1:1501:") != NULL);
    char *line_begin = line, *caret_begin = caret;
    while (line_begin[-1] != '\n') line_begin--;
    while (caret_begin[-1] != '\n') caret_begin--;
    cr_assert_eq(caret - caret_begin, line - line_begin, "%s", diagnostic.message);
    /* After four blanks, 80 characters of each side. */
    cr_assert_eq(caret - caret_begin, 4 + 80, "%s", diagnostic.message);
    cr_assert_eq(strcspn(line_begin, "\n"), 4 + 160, "%s", diagnostic.message);
}

Test(token, the_first_error_counts) {
    cut("ok");
    cr_assert(!soft_error(&diagnostic, 1, CUDA_ERROR_INVALID_PTX, "first"));
    cr_assert(!soft_error(&diagnostic, 0, CUDA_ERROR_OUT_OF_MEMORY, "second"));
    cr_assert(strstr(diagnostic.message, "ptx:1:2: error: first\n") == diagnostic.message);
    cr_assert(strstr(diagnostic.message, "second") == NULL);
    cr_assert_eq(diagnostic.result, CUDA_ERROR_INVALID_PTX);
    cr_assert(diagnostic.failed);
}

Test(token, lines_are_counted_from_one) {
    static const char text[] = "a\nb\n\nc";
    static const unsigned lines[] = {1, 1, 2, 2, 3, 4, 4};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        cr_assert_eq(soft_line_of(text, sizeof text - 1, i), lines[i], "%zu", i);
    }
}
