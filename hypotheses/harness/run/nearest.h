/*
 * Nearest: the word that a mistyped one was most likely meant to be.
 */
#ifndef HYP_NEAREST_H
#define HYP_NEAREST_H

#include <stddef.h>

enum { HYP_OPTION_BYTES = 33 };

/* The one of names[0..count) that needs the fewest changes of a letter, two at most: one inserted,
 * removed or replaced, or two neighbours swapped. NULL: none is near. */
const char *hyp_nearest(const char *word, const char *const names[], size_t count);

/* The same among the options that a help mentions, which are its words that begin with '-'. The
 * dashes of both, and a value after '=', do not count; a word may be the beginning of the option.
 * "": none is near. */
void hyp_nearest_option(const char *word, const char *help, size_t bytes,
                        char option[HYP_OPTION_BYTES]);

#endif
