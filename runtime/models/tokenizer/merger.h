/*
 * The merger: joins neighbouring symbols of a text, the cheapest pair first, until no pair has a
 * cost. The two kinds of tokenizers differ in the cost of a pair.
 *
 * Of equal costs the leftmost is first. A merger keeps its memory from one text to the next. It
 * belongs to one thread.
 */
#ifndef TOLLENS_MERGER_H
#define TOLLENS_MERGER_H

#include "tollens/gguf.h"

#include <stdbool.h>

struct tol_symbol {
    uint32_t start, bytes; /* bytes 0: it was joined to the one before */
    uint32_t previous, next;
};

struct tol_pair {
    double cost;
    uint32_t left, right; /* symbols */
    uint32_t bytes;       /* of both when it was found: it is outdated if that has changed */
};

/* Whether a pair may be joined, and its cost. */
typedef bool tol_pair_cost(const void *user, struct tol_gguf_text left, struct tol_gguf_text right,
                           double *cost);

struct tol_merger {
    const char *text;
    struct tol_symbol *symbols;
    size_t count, symbol_room;
    struct tol_pair *heap; /* the least first */
    size_t waiting, heap_room;
    tol_pair_cost *cost;
    const void *user;
};

/* Begins a text of at most bytes bytes: symbols follow. TOL_OUT_OF_HOST_MEMORY. */
tol_status tol_merger_begin(struct tol_merger *merger, const char *text, size_t bytes);

/* Adds the next bytes of the text as a symbol. */
void tol_merger_add(struct tol_merger *merger, size_t bytes);

/* Joins. The symbols that remain have bytes > 0 and are in the order of the text. */
void tol_merger_run(struct tol_merger *merger);

void tol_merger_free(struct tol_merger *merger);

#endif
