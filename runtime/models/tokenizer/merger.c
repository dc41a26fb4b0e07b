/*
 * A heap of pairs over a doubly linked list of symbols. A pair stays in the heap when one of its
 * symbols changes, and is recognised as outdated when it comes out.
 */
#include "merger.h"

#include "core/check.h"

#include <stdlib.h>

static const uint32_t NONE = UINT32_MAX;

static bool merger_is_before(const struct tol_pair *a, const struct tol_pair *b) {
    return a->cost < b->cost || (a->cost == b->cost && a->left < b->left);
}

static void merger_push(struct tol_merger *merger, struct tol_pair pair) {
    size_t at = merger->waiting++;
    while (at > 0 && merger_is_before(&pair, &merger->heap[(at - 1) / 2])) {
        merger->heap[at] = merger->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    merger->heap[at] = pair;
}

static struct tol_pair merger_pop(struct tol_merger *merger) {
    struct tol_pair first = merger->heap[0], last = merger->heap[--merger->waiting];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= merger->waiting) break;
        if (child + 1 < merger->waiting &&
            merger_is_before(&merger->heap[child + 1], &merger->heap[child])) {
            child++;
        }
        if (!merger_is_before(&merger->heap[child], &last)) break;
        merger->heap[at] = merger->heap[child];
        at = child;
    }
    merger->heap[at] = last;
    return first;
}

tol_status tol_merger_begin(struct tol_merger *merger, const char *text, size_t bytes) {
    tol_status status = TOL_OK;
    merger->text = text;
    merger->count = merger->waiting = 0;
    /* Each join takes a symbol away and may add two pairs to the first n - 1. */
    size_t pairs = 3 * bytes + 1;
    if (bytes > merger->symbol_room) {
        struct tol_symbol *symbols = realloc(merger->symbols, bytes * sizeof *symbols);
        TOL_CHECK(symbols != NULL, TOL_OUT_OF_HOST_MEMORY, "tokens of %zu bytes", bytes);
        merger->symbols = symbols;
        merger->symbol_room = bytes;
    }
    if (pairs > merger->heap_room) {
        struct tol_pair *heap = realloc(merger->heap, pairs * sizeof *heap);
        TOL_CHECK(heap != NULL, TOL_OUT_OF_HOST_MEMORY, "tokens of %zu bytes", bytes);
        merger->heap = heap;
        merger->heap_room = pairs;
    }
out:
    return status;
}

void tol_merger_add(struct tol_merger *merger, size_t bytes) {
    uint32_t index = (uint32_t)merger->count++, start = 0;
    if (index > 0) {
        struct tol_symbol *before = &merger->symbols[index - 1];
        start = before->start + before->bytes;
        before->next = index;
    }
    merger->symbols[index] =
        (struct tol_symbol){start, (uint32_t)bytes, index > 0 ? index - 1 : NONE, NONE};
}

static void merger_consider(struct tol_merger *merger, uint32_t left, uint32_t right) {
    if (left == NONE || right == NONE) return;
    const struct tol_symbol *a = &merger->symbols[left], *b = &merger->symbols[right];
    struct tol_pair pair = {0, left, right, a->bytes + b->bytes};
    struct tol_gguf_text first = {merger->text + a->start, a->bytes};
    struct tol_gguf_text second = {merger->text + b->start, b->bytes};
    if (merger->cost(merger->user, first, second, &pair.cost)) merger_push(merger, pair);
}

void tol_merger_run(struct tol_merger *merger) {
    for (uint32_t i = 1; i < merger->count; i++) merger_consider(merger, i - 1, i);
    while (merger->waiting > 0) {
        struct tol_pair pair = merger_pop(merger);
        struct tol_symbol *a = &merger->symbols[pair.left], *b = &merger->symbols[pair.right];
        if (a->bytes == 0 || b->bytes == 0 || a->bytes + b->bytes != pair.bytes) continue;
        a->bytes += b->bytes;
        b->bytes = 0;
        a->next = b->next;
        if (a->next != NONE) merger->symbols[a->next].previous = pair.left;
        merger_consider(merger, a->previous, pair.left);
        merger_consider(merger, pair.left, a->next);
    }
}

void tol_merger_free(struct tol_merger *merger) {
    free(merger->symbols);
    free(merger->heap);
    merger->symbols = NULL;
    merger->heap = NULL;
}
