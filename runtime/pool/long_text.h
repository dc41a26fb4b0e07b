/*
 * Long text: grows as it is written. Internal: not installed.
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
    bool is_cut; /* host memory was out: what was written since is lost */
};

void tol_long_text_add(struct tol_long_text *text, const char *format, ...) TOL_PRINTF(2, 3);

/* A string as JSON has it, in quotes. */
void tol_long_text_quote(struct tol_long_text *text, const char *string);

/* Gives the text away, or says that host memory was out. Either way it is empty then. */
tol_status tol_long_text_end(struct tol_long_text *text, char **result);

#endif
