/*
 * The types of tensor maps, and their values in copies and reductions.
 */
#ifndef SOFT_TABLE_CASE_VALUE_H
#define SOFT_TABLE_CASE_VALUE_H

#include "case.h"

struct case_type {
    const char *name;
    int number;
    unsigned bytes;
    char kind; /* u, s, f */
};

/* NULL: there is none of that name. */
const struct case_type *case_type_of(const char *name);

/* Fills shared or global memory with the values of a line. */
void case_fill(const struct case_line *line, const struct case_type *type, uint8_t *bytes,
               size_t size, bool shared);

#endif
