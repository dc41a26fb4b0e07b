/*
 * The distance is that of Damerau and Levenshtein, restricted to swaps of letters that nothing else
 * changes.
 */
#include "nearest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LETTERS = HYP_OPTION_BYTES - 1, FAR = 3 };

static size_t nearest_least(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t nearest_distance(const char *a, const char *b) {
    size_t rows[LETTERS + 1][LETTERS + 1];
    const size_t m = strlen(a), n = strlen(b);
    if (m > LETTERS || n > LETTERS) return FAR;
    for (size_t i = 0; i <= m; i++) rows[i][0] = i;
    for (size_t j = 0; j <= n; j++) rows[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        for (size_t j = 1; j <= n; j++) {
            size_t best = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            best = nearest_least(best, nearest_least(rows[i - 1][j], rows[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                best = nearest_least(best, rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    return rows[m][n];
}

/* The distance, or FAR. */
static size_t nearest_far(const char *word, const char *name) {
    const size_t far = nearest_distance(word, name);
    /* If all letters of one change, it is another word. */
    return far < nearest_least(strlen(word), strlen(name)) ? nearest_least(far, FAR) : FAR;
}

const char *hyp_nearest(const char *word, const char *const names[], size_t count) {
    const char *found = NULL;
    size_t best = FAR;
    for (size_t i = 0; i < count; i++) {
        const size_t far = nearest_far(word, names[i]);
        if (far >= best) continue;
        best = far;
        found = names[i];
    }
    return found;
}

static const char letters[] = "abcdefghijklmnopqrstuvwxyz-";

/* The length of the option that begins at `at`; 0: none does. */
static size_t nearest_option_at(const char *help, size_t at, size_t bytes) {
    const bool begins = at == 0 || strchr(" \n[", help[at - 1]) != NULL;
    const size_t length = strspn(help + at, letters);
    const bool fits = length > 1 && length <= LETTERS && at + length <= bytes;
    return begins && help[at] == '-' && fits ? length : 0;
}

/* An option without its dashes and its value. */
static void nearest_core(const char *word, char core[HYP_OPTION_BYTES]) {
    const char *name = word + strspn(word, "-");
    snprintf(core, HYP_OPTION_BYTES, "%.*s", (int)strcspn(name, "="), name);
}

/* The beginning of an option is as near to it as a word with one other letter. */
static size_t nearest_option_far(const char *word, const char *name) {
    enum { BEGINNING = 3 };
    const size_t length = strlen(word), far = nearest_far(word, name);
    const bool begins = length >= BEGINNING && strncmp(word, name, length) == 0;
    return begins ? nearest_least(far, 1) : far;
}

void hyp_nearest_option(const char *word, const char *help, size_t bytes,
                        char option[HYP_OPTION_BYTES]) {
    char wanted[HYP_OPTION_BYTES], name[HYP_OPTION_BYTES], core[HYP_OPTION_BYTES];
    size_t best = FAR;
    nearest_core(word, wanted);
    option[0] = '\0';
    for (size_t at = 0, length = 0; at < bytes; at += length + 1) {
        length = nearest_option_at(help, at, bytes);
        if (length == 0) continue;
        snprintf(name, sizeof name, "%.*s", (int)length, help + at);
        nearest_core(name, core);
        const size_t far = nearest_option_far(wanted, core);
        if (far >= best) continue;
        best = far;
        memcpy(option, name, sizeof name);
    }
}
