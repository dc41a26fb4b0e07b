/*
 * Names: the names of blocks, their records, and the fields of a record. May run concurrently with
 * any other function.
 */
#ifndef TOLLENS_POOL_NAME_H
#define TOLLENS_POOL_NAME_H

#include "pool_state.h"

/* The bits of a name: generation, pool number, whether the record is a large block's, index. */
enum { INDEX_BITS = 23, LARGE_BIT = 1 << 23, POOL_SHIFT = 24, GENERATION_SHIFT = 32 };

static inline struct tol_block tol_block_of(const struct tol_pool *pool,
                                            const struct tol_span *span, bool is_large) {
    uint64_t generation = atomic_load_explicit(&span->name, memory_order_relaxed) >> 8;
    return (struct tol_block){generation << GENERATION_SHIFT | (pool->id & 0xff) << POOL_SHIFT |
                              (is_large ? LARGE_BIT : 0) | span->index};
}

/* The record that a name refers to, which may be of an older or newer block; NULL if none. */
static inline struct tol_span *tol_block_record(const struct tol_pool *pool,
                                                struct tol_block block) {
    if ((block.name >> POOL_SHIFT & 0xff) != (pool->id & 0xff)) return NULL;
    uint32_t index = (uint32_t)block.name & ((1u << INDEX_BITS) - 1);
    return tol_spans_at((block.name & LARGE_BIT) != 0 ? &pool->large_spans : &pool->spans, index);
}

static inline bool tol_block_is_live(const struct tol_span *span, struct tol_block block) {
    uint64_t name = atomic_load_explicit(&span->name, memory_order_acquire);
    return tol_span_state_of(name) == TOL_SPAN_LIVE &&
           (uint32_t)(name >> 8) == (uint32_t)(block.name >> GENERATION_SHIFT);
}

/* Sets the message why a block cannot be freed and returns TOL_INVALID_ARGUMENT. The caller holds
 * no lock. */
tol_status tol_pool_refuse(struct tol_pool *pool, struct tol_block block);

static inline struct tol_pool_label tol_span_label(const struct tol_span *span) {
    return (struct tol_pool_label){
        .bytes = (size_t)atomic_load_explicit(&span->requested, memory_order_relaxed),
        .tag = atomic_load_explicit(&span->tag, memory_order_relaxed),
        .site = atomic_load_explicit(&span->site, memory_order_relaxed)};
}

static inline uint64_t tol_span_requested(const struct tol_span *span) {
    return atomic_load_explicit(&span->requested, memory_order_relaxed);
}

static inline uint64_t tol_span_address(const struct tol_span *span) {
    const struct tol_large *large = span->owner;
    return span->begin + (large != NULL ? large->offset : 0);
}

#endif
