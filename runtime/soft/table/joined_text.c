/*
 * Cuts a file into its texts in place. The NUL replaces the first slash of the next text's line,
 * which nobody reads, so that each text keeps its last newline: some errors are at a text's end.
 */
#include "joined_text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char mark[] = "//// ";

/* What begins a line; of a text that was cut, the first slash is gone. */
static char *joined_text_find(char *text) {
    if (strncmp(text, mark, sizeof mark - 1) == 0) return text;
    char *line = strstr(text, "\n//// ");
    return line != NULL ? line + 1 : NULL;
}

char *joined_text_first(char *file) {
    return joined_text_find(file);
}

char *joined_text_cut(char *place, struct joined_text *one) {
    const char *name = place + sizeof mark - 1;
    const size_t length = strcspn(name, ":\n");
    place[0] = '/';
    assert(strncmp(place, mark, sizeof mark - 1) == 0);
    char *next = joined_text_find(place + 1);
    if (next != NULL) next[0] = '\0';
    snprintf(one->name, sizeof one->name, "%.*s", (int)length, name);
    one->text = place;
    return next;
}
