/*
 * Nearest: the word that a mistyped one was most likely meant to be.
 */
#ifndef HYP_NEAREST_H
#define HYP_NEAREST_H

#include <stddef.h>

/* The one of names[0..count) that needs the fewest changes of a letter, two at most: one inserted,
 * removed or replaced, or two neighbours swapped. NULL: none is near. */
const char *hyp_nearest(const char *word, const char *const names[], size_t count);

#endif
