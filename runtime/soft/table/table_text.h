/*
 * A text that grows as it is written.
 */
#ifndef SOFT_TABLE_TEXT_H
#define SOFT_TABLE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Begins with all zero. */
struct table_text {
    char *bytes;
    size_t used, room;
    bool failed; /* there was no memory: what is put from then on is dropped */
};

void table_put(struct table_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The text, which the caller frees; NULL: there was no memory. */
char *table_text_end(struct table_text *text);

#endif
