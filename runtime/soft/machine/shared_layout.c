/*
 * The swizzle that each 16 bytes of shared memory were written with.
 */
#include "shared_layout.h"

#include "base/options.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 16, SHARED_MAX = 228 * 1024 };

/* sum: of the bytes; swizzle 0: no box has come here. */
struct noted {
    uint32_t sum, swizzle;
};

struct soft_layouts {
    bool used; /* since the CTA began */
    struct noted chunks[SHARED_MAX / CHUNK];
};

static uint32_t shared_layout_sum_of(const uint8_t *bytes) {
    uint64_t words[2];
    memcpy(words, bytes, sizeof words);
    uint64_t mixed = (words[0] ^ 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 29 ^ words[1]) * 0x94d049bb133111eb;
    return (uint32_t)(mixed >> 32);
}

void soft_layout_note(struct soft_cta *cta, uint32_t offset, unsigned swizzle) {
    if (!soft_options()->check_sync || offset >= SHARED_MAX) return;
    if (cta->layouts == NULL) cta->layouts = calloc(1, sizeof *cta->layouts);
    if (cta->layouts == NULL) return; /* one finding less */
    cta->layouts->used = true;
    cta->layouts->chunks[offset / CHUNK] =
        (struct noted){.sum = shared_layout_sum_of(cta->shared + offset), .swizzle = swizzle};
}

unsigned soft_layout_at(const struct soft_cta *cta, uint32_t offset) {
    if (cta->layouts == NULL || offset >= SHARED_MAX) return 0;
    const struct noted *noted = &cta->layouts->chunks[offset / CHUNK];
    return noted->swizzle != 0 && noted->sum == shared_layout_sum_of(cta->shared + offset)
               ? noted->swizzle
               : 0;
}

void soft_layout_begin(struct soft_cta *cta) {
    if (cta->layouts != NULL && cta->layouts->used) memset(cta->layouts, 0, sizeof *cta->layouts);
}

void soft_layout_drop(struct soft_cta *cta) {
    free(cta->layouts);
    cta->layouts = NULL;
}
