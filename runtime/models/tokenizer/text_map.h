/*
 * Text map: from texts, or pairs of texts, to numbers. Made once, then only read, by any threads.
 *
 * It keeps addresses, not copies: the texts are the caller's and must live as long as the map.
 */
#ifndef TOLLENS_TEXT_MAP_H
#define TOLLENS_TEXT_MAP_H

#include "tollens/gguf.h"

#include <stdbool.h>

struct tol_text_map {
    struct tol_text_slot *slots;
    size_t mask; /* slots - 1, of which there are a power of two */
};

/* Room for count entries; TOL_OUT_OF_HOST_MEMORY. */
tol_status tol_text_map_create(struct tol_text_map *map, size_t count);
void tol_text_map_destroy(struct tol_text_map *map);

/* Sets the number of a pair; for one text the second is empty. A later call replaces an earlier
 * one if replaces. No more pairs than there is room for. */
void tol_text_map_set(struct tol_text_map *map, struct tol_gguf_text first,
                      struct tol_gguf_text second, int32_t number, bool replaces);

/* The number of a pair; -1: it is not there. */
int32_t tol_text_map_get(const struct tol_text_map *map, struct tol_gguf_text first,
                         struct tol_gguf_text second);

#endif
