/*
 * Reads suppressions and compares findings with them.
 */
#include "suppress.h"

#include <assert.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUPPRESS_PARTS = 3 };

/* The patterns of a line, which owns their characters. */
struct suppression {
    char *line;
    const char *parts[SUPPRESS_PARTS]; /* kind, kernel, place */
};

static struct {
    struct suppression *all;
    size_t count;
} suppressions;

static void suppress_clear(void) {
    for (size_t i = 0; i < suppressions.count; i++) free(suppressions.all[i].line);
    free(suppressions.all);
    suppressions.all = NULL;
    suppressions.count = 0;
}

/* Without the blanks around it. */
static char *suppress_trim(char *text) {
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL) length--;
    text[length] = '\0';
    return text;
}

/* Splits a line at its semicolons. false: it has not three parts. */
static bool suppress_split(struct suppression *suppression) {
    char *rest = suppression->line, *part = NULL;
    for (int i = 0; i < SUPPRESS_PARTS; i++) {
        part = i + 1 < SUPPRESS_PARTS ? strsep(&rest, ";") : rest;
        if (part == NULL) return false;
        suppression->parts[i] = suppress_trim(part);
        if (suppression->parts[i][0] == '\0') return false;
    }
    return true;
}

/* Takes the line, or frees it. NULL: it is well; else what is wrong. */
static const char *suppress_add(char *line) {
    struct suppression one = {.line = line};
    const char *text = line + strspn(line, " \t\r\n");
    if (*text == '\0' || *text == '#') {
        free(line);
        return NULL;
    }
    if (!suppress_split(&one)) {
        free(line);
        return "expected KIND; KERNEL; PLACE";
    }
    struct suppression *more =
        realloc(suppressions.all, (suppressions.count + 1) * sizeof *suppressions.all);
    if (more == NULL) {
        free(line);
        return "out of memory";
    }
    suppressions.all = more;
    suppressions.all[suppressions.count++] = one;
    return NULL;
}

bool soft_suppress_read(const char *path, char *why, size_t bytes) {
    suppress_clear();
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        snprintf(why, bytes, "%s", strerror(errno));
        return false;
    }
    const char *wrong = NULL;
    size_t number = 0;
    while (wrong == NULL) {
        char *line = NULL;
        size_t room = 0;
        number++;
        if (getline(&line, &room, file) < 0) {
            free(line);
            break;
        }
        wrong = suppress_add(line);
    }
    if (wrong == NULL && ferror(file)) wrong = strerror(errno);
    fclose(file);
    if (wrong == NULL) return true;
    suppress_clear();
    snprintf(why, bytes, "line %zu: %s", number, wrong);
    assert(suppressions.count == 0);
    return false;
}

bool soft_suppress(const char *kind, const char *kernel, const char *source, uint32_t ptx_line) {
    char line[32];
    snprintf(line, sizeof line, "PTX line %u", ptx_line);
    const char *parts[SUPPRESS_PARTS] = {kind, kernel, source[0] != '\0' ? source : line};
    for (size_t i = 0; i < suppressions.count; i++) {
        bool fits = true;
        for (int p = 0; p < SUPPRESS_PARTS; p++) {
            fits = fits && fnmatch(suppressions.all[i].parts[p], parts[p], 0) == 0;
        }
        if (fits) return true;
    }
    return false;
}
