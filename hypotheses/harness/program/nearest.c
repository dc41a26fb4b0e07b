/*
 * The distance is that of Damerau and Levenshtein, restricted to swaps of letters that nothing else
 * changes.
 */
#include "nearest.h"

#include <string.h>

enum { LETTERS = 32, FAR = 3 };

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

const char *hyp_nearest(const char *word, const char *const names[], size_t count) {
    const char *found = NULL;
    size_t best = FAR;
    for (size_t i = 0; i < count; i++) {
        const size_t far = nearest_distance(word, names[i]);
        /* Of two letters both can be others: that is another word. */
        if (far >= best || far >= strlen(word)) continue;
        best = far;
        found = names[i];
    }
    return found;
}
