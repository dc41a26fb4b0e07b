/*
 * Long text: grows as it is written.
 */
#ifndef TOLLENS_LONG_TEXT_H
#define TOLLENS_LONG_TEXT_H

#include "core/check.h"

#include <stdbool.h>
#include <stddef.h>

/* All zero is an empty one. */
struct tol_long_text {
    char *at;
    size_t length, room;
    bool is_cut; /* host memory ran out: later output is lost */
};

void tol_long_text_add(struct tol_long_text *text, const char *format, ...) TOL_PRINTF(2, 3);

/* Adds a string as a JSON string, in quotes. */
void tol_long_text_quote(struct tol_long_text *text, const char *string);

/* Hands the text to the caller, or returns TOL_OUT_OF_HOST_MEMORY. The text is empty after both. */
tol_status tol_long_text_end(struct tol_long_text *text, char **result);

#endif
