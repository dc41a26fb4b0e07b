/*
 * Rules of pre-tokenizers: the words of texts, by their lengths in code points, as llama.cpp
 * divides them; and that a run of anything takes time proportional to its length.
 */
#include "pre_tokenize.h"

#include "test/test_device.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODES = 64, RULES = TOL_PRE_DEEPSEEK3 + 1 };

static const char *const texts[] = {"It'S 1234567 ok",
                                    "HelloWorld ABCdef/\n\n x",
                                    "a\u0301b \u201c\u0301",
                                    "  two  \n lines \t",
                                    "\u4e2d\u6587abc\u30ab 12\u0663",
                                    "#include <x.h>//\n",
                                    "\u00b5abc, \u3002\u201cx\u201d !? ",
                                    "A\u00c9b \u01c5\u02b0 x=y+1;  ",
                                    "\u0928\u093f \ud55c1 \U0001f642\u200d"};

Test(pre_tokenize, words_are_llama_cpps) {
    static const struct {
        enum tol_pre rule;
        int text;
        const char *words;
    } cases[] = {{TOL_PRE_DEFAULT, 0, "2 1 1 1 3 3 1 3"},
                 {TOL_PRE_DEFAULT, 1, "10 7 1 2 2"},
                 {TOL_PRE_DEFAULT, 2, "1 1 1 1 1 1"},
                 {TOL_PRE_DEFAULT, 3, "1 4 3 6 2"},
                 {TOL_PRE_DEFAULT, 4, "6 1 3"},
                 {TOL_PRE_DEFAULT, 5, "1 7 1 1 1 1 1 3 1"},
                 {TOL_PRE_DEFAULT, 6, "4 1 1 2 1 1 1 2 1"},
                 {TOL_PRE_DEFAULT, 7, "3 3 2 1 1 1 1 1 2"},
                 {TOL_PRE_DEFAULT, 8, "1 1 2 1 3"},
                 {TOL_PRE_GPT2, 0, "2 1 1 8 3"},
                 {TOL_PRE_GPT2, 1, "10 7 1 2 2"},
                 {TOL_PRE_GPT2, 2, "1 1 1 3"},
                 {TOL_PRE_GPT2, 3, "1 4 3 6 2"},
                 {TOL_PRE_GPT2, 4, "6 4"},
                 {TOL_PRE_GPT2, 5, "1 7 2 1 1 1 3 1"},
                 {TOL_PRE_GPT2, 6, "4 1 3 1 1 3 1"},
                 {TOL_PRE_GPT2, 7, "3 3 2 1 1 1 1 1 2"},
                 {TOL_PRE_GPT2, 8, "1 1 2 1 3"},
                 {TOL_PRE_LLAMA3, 0, "2 2 1 3 3 1 3"},
                 {TOL_PRE_LLAMA3, 1, "10 7 3 2"},
                 {TOL_PRE_LLAMA3, 2, "1 2 3"},
                 {TOL_PRE_LLAMA3, 3, "1 4 3 6 2"},
                 {TOL_PRE_LLAMA3, 4, "6 1 3"},
                 {TOL_PRE_LLAMA3, 5, "8 2 1 2 4"},
                 {TOL_PRE_LLAMA3, 6, "4 1 3 1 1 3 1"},
                 {TOL_PRE_LLAMA3, 7, "3 3 2 2 1 1 1 2"},
                 {TOL_PRE_LLAMA3, 8, "1 1 2 1 3"},
                 {TOL_PRE_QWEN2, 0, "2 2 1 1 1 1 1 1 1 1 3"},
                 {TOL_PRE_QWEN2, 1, "10 7 3 2"},
                 {TOL_PRE_QWEN2, 2, "1 2 3"},
                 {TOL_PRE_QWEN2, 3, "1 4 3 6 2"},
                 {TOL_PRE_QWEN2, 4, "6 1 1 1 1"},
                 {TOL_PRE_QWEN2, 5, "8 2 1 2 4"},
                 {TOL_PRE_QWEN2, 6, "4 1 3 1 1 3 1"},
                 {TOL_PRE_QWEN2, 7, "3 3 2 2 1 1 1 2"},
                 {TOL_PRE_QWEN2, 8, "1 1 2 1 3"},
                 {TOL_PRE_QWEN35, 0, "2 2 1 1 1 1 1 1 1 1 3"},
                 {TOL_PRE_QWEN35, 1, "10 7 3 2"},
                 {TOL_PRE_QWEN35, 2, "3 2 1"},
                 {TOL_PRE_QWEN35, 3, "1 4 3 6 2"},
                 {TOL_PRE_QWEN35, 4, "6 1 1 1 1"},
                 {TOL_PRE_QWEN35, 5, "8 2 1 2 4"},
                 {TOL_PRE_QWEN35, 6, "4 1 3 1 1 3 1"},
                 {TOL_PRE_QWEN35, 7, "3 3 2 2 1 1 1 2"},
                 {TOL_PRE_QWEN35, 8, "2 2 1 3"},
                 {TOL_PRE_TEKKEN, 0, "2 2 1 1 1 1 1 1 1 1 3"},
                 {TOL_PRE_TEKKEN, 1, "5 5 7 3 2"},
                 {TOL_PRE_TEKKEN, 2, "1 2 3"},
                 {TOL_PRE_TEKKEN, 3, "1 4 3 6 2"},
                 {TOL_PRE_TEKKEN, 4, "6 1 1 1 1"},
                 {TOL_PRE_TEKKEN, 5, "8 2 1 2 4"},
                 {TOL_PRE_TEKKEN, 6, "4 1 3 1 1 3 1"},
                 {TOL_PRE_TEKKEN, 7, "3 3 2 2 1 1 1 2"},
                 {TOL_PRE_TEKKEN, 8, "1 1 2 1 3"},
                 {TOL_PRE_SMOLLM, 0, "2 1 1 1 1 1 1 1 1 1 1 3"},
                 {TOL_PRE_SMOLLM, 1, "10 7 1 2 2"},
                 {TOL_PRE_SMOLLM, 2, "1 1 1 3"},
                 {TOL_PRE_SMOLLM, 3, "1 4 3 6 2"},
                 {TOL_PRE_SMOLLM, 4, "6 1 1 1 1"},
                 {TOL_PRE_SMOLLM, 5, "1 7 2 1 1 1 3 1"},
                 {TOL_PRE_SMOLLM, 6, "4 1 3 1 1 3 1"},
                 {TOL_PRE_SMOLLM, 7, "3 3 2 1 1 1 1 1 2"},
                 {TOL_PRE_SMOLLM, 8, "1 1 2 1 3"},
                 {TOL_PRE_DEEPSEEK_LLM, 0, "2 1 1 1 7 3"},
                 {TOL_PRE_DEEPSEEK_LLM, 1, "10 7 1 1 1 2"},
                 {TOL_PRE_DEEPSEEK_LLM, 2, "1 1 1 1 1 1"},
                 {TOL_PRE_DEEPSEEK_LLM, 3, "1 4 2 1 6 2"},
                 {TOL_PRE_DEEPSEEK_LLM, 4, "2 3 1 1 3"},
                 {TOL_PRE_DEEPSEEK_LLM, 5, "1 7 2 1 1 1 3 1"},
                 {TOL_PRE_DEEPSEEK_LLM, 6, "1 3 1 1 2 1 1 3 1"},
                 {TOL_PRE_DEEPSEEK_LLM, 7, "1 1 1 2 1 2 1 1 1 1 1 2"},
                 {TOL_PRE_DEEPSEEK_LLM, 8, "2 1 1 1 2 1"},
                 {TOL_PRE_DEEPSEEK_CODER, 0, "2 1 1 1 1 1 1 1 1 1 1 3"},
                 {TOL_PRE_DEEPSEEK_CODER, 1, "10 7 1 1 1 2"},
                 {TOL_PRE_DEEPSEEK_CODER, 2, "1 1 1 1 1 1"},
                 {TOL_PRE_DEEPSEEK_CODER, 3, "1 4 2 1 6 2"},
                 {TOL_PRE_DEEPSEEK_CODER, 4, "2 3 1 1 1 1 1"},
                 {TOL_PRE_DEEPSEEK_CODER, 5, "1 7 2 1 1 1 1 2 1"},
                 {TOL_PRE_DEEPSEEK_CODER, 6, "4 1 1 2 1 1 3 1"},
                 {TOL_PRE_DEEPSEEK_CODER, 7, "3 3 2 1 1 1 1 1 2"},
                 {TOL_PRE_DEEPSEEK_CODER, 8, "1 1 1 1 1 2 1"},
                 {TOL_PRE_DEEPSEEK3, 0, "2 2 1 3 3 1 3"},
                 {TOL_PRE_DEEPSEEK3, 1, "10 7 3 2"},
                 {TOL_PRE_DEEPSEEK3, 2, "3 2 1"},
                 {TOL_PRE_DEEPSEEK3, 3, "1 4 3 6 2"},
                 {TOL_PRE_DEEPSEEK3, 4, "2 3 1 1 3"},
                 {TOL_PRE_DEEPSEEK3, 5, "8 2 1 2 4"},
                 {TOL_PRE_DEEPSEEK3, 6, "4 1 3 1 1 3 1"},
                 {TOL_PRE_DEEPSEEK3, 7, "3 3 2 2 1 1 1 2"},
                 {TOL_PRE_DEEPSEEK3, 8, "2 2 1 2 1"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *text = texts[cases[i].text];
        const size_t bytes = strlen(text);
        uint32_t codes[CODES];
        unsigned char ends[CODES];
        char found[4 * CODES] = "";
        size_t count = 0, used = 0, length = 0;
        for (size_t at = 0; at < bytes; at += used) {
            codes[count++] = tol_utf8_read(text + at, bytes - at, &used);
        }
        tol_pre_divide(cases[i].rule, codes, count, ends);
        for (size_t at = 0; at < count; at++) {
            length++;
            if (ends[at] == 0 && at + 1 < count) continue;
            snprintf(found + strlen(found), sizeof found - strlen(found), "%s%zu",
                     found[0] != '\0' ? " " : "", length);
            length = 0;
        }
        cr_assert(strcmp(found, cases[i].words) == 0, "rule %d, text %d: %s, not %s",
                  (int)cases[i].rule, cases[i].text, found, cases[i].words);
    }
}

/* A rule that measures a whole run for each of its words would take hours for these. */
Test(pre_tokenize, runs_of_a_million_are_divided, .timeout = 300) {
    static const uint32_t runs[][2] = {{'7', '7'},     {' ', ' '}, {'a', 'a'},    {'!', '!'},
                                       {'\n', '\n'},   {'A', 'A'}, {0xc9, 'A'},   {' ', '\n'},
                                       {0x301, 0x301}, {'a', ' '}, {0x4e2d, '1'}, {'/', '\n'}};
    enum { COUNT = 1000000 };
    uint32_t *codes = malloc(COUNT * sizeof *codes);
    unsigned char *ends = malloc(COUNT);
    cr_assert(codes != NULL && ends != NULL);
    for (size_t run = 0; run < sizeof runs / sizeof runs[0]; run++) {
        for (size_t i = 0; i < COUNT; i++) codes[i] = runs[run][i % 2];
        codes[COUNT - 1] = 'x';
        for (int rule = 0; rule < RULES; rule++) {
            tol_pre_divide((enum tol_pre)rule, codes, COUNT, ends);
            cr_assert(ends[COUNT - 1] == 1);
        }
    }
    free(codes);
    free(ends);
}

Test(pre_tokenize, names_have_rules) {
    static const struct {
        const char *name;
        enum tol_pre rule;
        bool adds; /* bos, and whole words */
    } cases[] = {
        {"falcon3", TOL_PRE_LLAMA3, true},   {"pixtral", TOL_PRE_LLAMA3, true},
        {"dbrx", TOL_PRE_LLAMA3, false},     {"kormo", TOL_PRE_QWEN2, false},
        {"tekken", TOL_PRE_TEKKEN, true},    {"smollm", TOL_PRE_SMOLLM, false},
        {"phi-2", TOL_PRE_GPT2, false},      {"deepseek-coder", TOL_PRE_DEEPSEEK_CODER, false},
        {"default", TOL_PRE_DEFAULT, false}, {"deepseek-llm", TOL_PRE_DEEPSEEK_LLM, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tol_pre_kind *kind = tol_pre_find(cases[i].name, strlen(cases[i].name));
        cr_assert(kind != NULL && kind->rule == cases[i].rule, "%s", cases[i].name);
        cr_assert(kind->adds_bos == cases[i].adds && kind->ignores_merges == cases[i].adds);
    }
    cr_assert_null(tol_pre_find("llama", 5));
    cr_assert_null(tol_pre_find("smollm2", 7));
}
