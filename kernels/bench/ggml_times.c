/*
 * Line by line, without the escape sequences that colour a terminal.
 */
#include "ggml_times.h"

#include "core/check.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LINE = 1024 };

/* Takes out what begins with an escape and ends with an m. */
static void ggml_times_uncolour(char *line) {
    char *to = line;
    for (const char *from = line; *from != '\0'; from++) {
        if (*from == '\033') {
            from += strcspn(from, "m");
            if (*from == '\0') break;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

static bool begins_with(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* What follows the text, if the line has it here; NULL otherwise, and where line is NULL. */
static const char *ggml_times_text_after(const char *line, const char *text) {
    return line != NULL && begins_with(line, text) ? line + strlen(text) : NULL;
}

/* Takes a word up to a comma. */
static const char *take_word(const char *line, char *word, size_t bytes) {
    const size_t length = line != NULL ? strcspn(line, ",") : bytes;
    if (length >= bytes) return NULL;
    memcpy(word, line, length);
    word[length] = '\0';
    return line + length;
}

static const char *take_size(const char *line, size_t *size) {
    char *end = NULL;
    if (line == NULL) return NULL;
    *size = strtoul(line, &end, 10);
    return end != line ? end : NULL;
}

/* ": 1491 runs - 671.02 us/run - ..."; 0: the backend does not support it. */
static double ggml_times_time_of(const char *line) {
    const char *runs = strstr(line, " runs - ");
    char *end = NULL;
    if (runs == NULL) return 0;
    const double us = strtod(runs + strlen(" runs - "), &end);
    return us > 0 && begins_with(end, " us/run") ? us : 0;
}

static void take_product(const char *line, struct kn_ggml_times *times) {
    char a[16], b[16];
    size_t m = 0, n = 0, k = 0;
    line =
        take_word(ggml_times_text_after(line + strspn(line, " "), "MUL_MAT(type_a="), a, sizeof a);
    line = take_word(ggml_times_text_after(line, ",type_b="), b, sizeof b);
    line = take_size(ggml_times_text_after(line, ",m="), &m);
    line = take_size(ggml_times_text_after(line, ",n="), &n);
    line = take_size(ggml_times_text_after(line, ",k="), &k);
    line = ggml_times_text_after(line, ",bs=[1,1],nr=[1,1]");
    if (line == NULL || strcmp(b, "f32") != 0 || times->count == KN_GGML_TIMES_MAX) return;
    const double us = ggml_times_time_of(line);
    if (us == 0) return;
    memcpy(times->rows[times->count].type, a, sizeof a);
    times->rows[times->count].m = m, times->rows[times->count].n = n;
    times->rows[times->count].k = k, times->rows[times->count].us = us;
    times->count++;
}

/* The name of the backend whose lines follow; NULL: the line says none. */
static const char *backend_of(const char *line) {
    line = ggml_times_text_after(line + strspn(line, " "), "Backend ");
    const char *colon = line != NULL ? strstr(line, ": ") : NULL;
    if (colon == NULL || strspn(line, "0123456789/") != (size_t)(colon - line)) return NULL;
    return colon + 2;
}

tol_status kn_ggml_times_read(const char *path, struct kn_ggml_times *times) {
    tol_status status = TOL_OK;
    char line[LINE];
    bool is_cuda = true;
    FILE *file = fopen(path, "r");
    times->count = 0;
    TOL_CHECK(file != NULL, TOL_UNREADABLE, "%s: %s", path, strerror(errno));
    while (fgets(line, sizeof line, file) != NULL) {
        ggml_times_uncolour(line);
        const char *backend = backend_of(line);
        if (backend != NULL) {
            is_cuda = begins_with(backend, "CUDA");
        } else if (is_cuda) {
            take_product(line, times);
        }
    }
    TOL_CHECK(times->count > 0, TOL_INVALID_FILE,
              "%s has no product of test-backend-ops perf -o MUL_MAT on a CUDA device", path);
out:
    if (file != NULL) fclose(file);
    return status;
}

double kn_ggml_times_us(const struct kn_ggml_times *times, const char *type, size_t m, size_t n,
                        size_t k) {
    for (size_t i = 0; i < times->count; i++) {
        if (strcasecmp(times->rows[i].type, type) == 0 && times->rows[i].m == m &&
            times->rows[i].n == n && times->rows[i].k == k) {
            return times->rows[i].us;
        }
    }
    return 0;
}
