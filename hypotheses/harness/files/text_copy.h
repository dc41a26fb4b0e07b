/*
 * Text copy: a text from outside in an array of fixed size, cut off where it does not fit.
 */
#ifndef HYP_TEXT_COPY_H
#define HYP_TEXT_COPY_H

#include <stddef.h>

/* Copies the characters of a UTF-8 text that fit in bytes completely, and a final NUL. Half a
 * character would make a text that no writer of JSON accepts. from may be NULL. */
void hyp_text_copy(char *to, size_t bytes, const char *from);

#endif
