/*
 * Looks up blocks by their names and by addresses.
 */
#include "pool_name.h"
#include "core/site.h"

#include <string.h>

CUdeviceptr tol_pool_address(const struct tol_pool *pool, struct tol_block block) {
    const struct tol_span *span = pool != NULL ? tol_block_record(pool, block) : NULL;
    return span != NULL && tol_block_is_live(span, block) ? tol_span_address(span) : 0;
}

size_t tol_pool_bytes(const struct tol_pool *pool, struct tol_block block) {
    const struct tol_span *span = pool != NULL ? tol_block_record(pool, block) : NULL;
    return span != NULL && tol_block_is_live(span, block) ? tol_span_requested(span) : 0;
}

struct visit {
    struct tol_pool *pool;
    void (*visit)(void *user, const struct tol_pool_live *live);
    void *user;
    bool is_large;
};

static void visit_span(void *user, struct tol_span *span) {
    struct visit *v = user;
    /* A magazine's block may be handed out meanwhile, which takes another lock. */
    const uint32_t tag = atomic_load_explicit(&span->tag, memory_order_relaxed);
    struct tol_pool_live live = {.block = tol_block_of(v->pool, span, v->is_large),
                                 .address = tol_span_address(span),
                                 .bytes = tol_span_requested(span),
                                 .tag = v->pool->tags[tag].name,
                                 .site = atomic_load_explicit(&span->site, memory_order_relaxed)};
    v->visit(v->user, &live);
}

void tol_pool_each(struct tol_pool *pool,
                   void (*visit)(void *user, const struct tol_pool_live *live), void *user) {
    if (pool == NULL || visit == NULL) return;
    struct visit v = {pool, visit, user, false};
    pthread_mutex_lock(&pool->lock);
    tol_spans_each(&pool->spans, visit_span, &v);
    v.is_large = true;
    tol_spans_each(&pool->large_spans, visit_span, &v);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- whose an address is ---- */

static const char *tag_text(const struct tol_pool *pool, unsigned tag) {
    const char *name = pool->tags[tag < TOL_POOL_TAGS ? tag : 0].name;
    return name[0] != '\0' ? name : "(none)";
}

tol_status tol_pool_refuse(struct tol_pool *pool, struct tol_block block) {
    char site[TOL_SITE_BYTES], freed_site[TOL_SITE_BYTES];
    struct tol_freed freed;
    const struct tol_span *span = tol_block_record(pool, block);
    const unsigned long long name = block.name;
    if (span == NULL || name == 0) {
        return tol_fail(__FILE__, __LINE__, TOL_INVALID_ARGUMENT,
                        "block %#llx does not belong to this pool", name);
    }
    if (tol_freed_by_name(pool, block.name, &freed)) {
        return tol_fail(__FILE__, __LINE__, TOL_INVALID_ARGUMENT,
                        "block %#llx was freed before, from %s; it had %llu bytes under the tag "
                        "%s, allocated from %s",
                        name, tol_site_text(freed.freed_site, freed_site),
                        (unsigned long long)freed.bytes, tag_text(pool, freed.tag),
                        tol_site_text(freed.site, site));
    }
    const struct tol_pool_label label = tol_span_label(span);
    return tol_fail(__FILE__, __LINE__, TOL_INVALID_ARGUMENT,
                    "block %#llx was freed long ago, or never existed; its record was last used "
                    "under the tag %s, allocated from %s",
                    name, tag_text(pool, label.tag), tol_site_text(label.site, site));
}

struct search {
    CUdeviceptr address;
    struct tol_pool_live nearest;
    uint64_t distance;
};

/* The distance of an address from a block; 0: it is inside. */
static uint64_t distance_to(const struct tol_pool_live *live, CUdeviceptr address) {
    if (address < live->address) return live->address - address;
    uint64_t offset = address - live->address;
    return offset < live->bytes ? 0 : offset - live->bytes + 1;
}

static void pool_ask_compare(void *user, const struct tol_pool_live *live) {
    struct search *search = user;
    uint64_t distance = distance_to(live, search->address);
    if (distance >= search->distance) return;
    search->distance = distance;
    search->nearest = *live;
}

tol_status tol_pool_find(struct tol_pool *pool, CUdeviceptr address, struct tol_pool_found *found) {
    tol_status status = TOL_OK;
    struct search search = {.address = address, .distance = UINT64_MAX};
    struct tol_freed freed;
    TOL_CHECK(pool != NULL && found != NULL, TOL_INVALID_ARGUMENT,
              "tol_pool_find: an argument is NULL");
    *found = (struct tol_pool_found){.whose = TOL_POOL_WHOSE_NONE};
    tol_pool_each(pool, pool_ask_compare, &search);
    if (search.distance > 0 && tol_freed_by_address(pool, address, &freed)) {
        found->whose = TOL_POOL_WHOSE_FREED;
        found->block = (struct tol_pool_live){.block = {freed.block},
                                              .address = freed.address,
                                              .bytes = (size_t)freed.bytes,
                                              .tag = pool->tags[freed.tag].name,
                                              .site = freed.site};
        found->freed_site = freed.freed_site;
    } else if (search.distance < UINT64_MAX) {
        found->whose = search.distance == 0 ? TOL_POOL_WHOSE_LIVE : TOL_POOL_WHOSE_NEAR;
        found->block = search.nearest;
    }
    if (found->whose != TOL_POOL_WHOSE_NONE) {
        found->offset = (int64_t)(address - found->block.address);
    }
out:
    return status;
}

tol_status tol_pool_check(struct tol_pool *pool, CUdeviceptr address, size_t bytes) {
    char site[TOL_SITE_BYTES], freed_site[TOL_SITE_BYTES];
    struct tol_pool_found found = {.whose = TOL_POOL_WHOSE_NONE};
    tol_status status = tol_pool_find(pool, address, &found);
    if (status != TOL_OK) return status;
    const struct tol_pool_live *live = &found.block;
    const unsigned long long at = address, begin = live->address;
    const char *tag = live->tag != NULL && live->tag[0] != '\0' ? live->tag : "(none)";
    tol_site_text(live->site, site);
    switch (found.whose) {
    case TOL_POOL_WHOSE_LIVE:
        if (bytes > 0 && bytes <= live->bytes - (size_t)found.offset) return TOL_OK;
        return tol_fail(__FILE__, __LINE__, TOL_OUT_OF_RANGE,
                        "%zu bytes at %#llx are not inside the block of %zu bytes at %#llx, "
                        "allocated under the tag %s from %s",
                        bytes, at, live->bytes, begin, tag, site);
    case TOL_POOL_WHOSE_FREED:
        return tol_fail(__FILE__, __LINE__, TOL_OUT_OF_RANGE,
                        "%#llx is %lld bytes into the block of %zu bytes at %#llx, which was freed "
                        "from %s; it was allocated under the tag %s from %s",
                        at, (long long)found.offset, live->bytes, begin,
                        tol_site_text(found.freed_site, freed_site), tag, site);
    case TOL_POOL_WHOSE_NEAR: {
        const bool is_before = found.offset < 0;
        return tol_fail(__FILE__, __LINE__, TOL_OUT_OF_RANGE,
                        "%#llx is in no block; the nearest, of %zu bytes at %#llx, allocated under "
                        "the tag %s from %s, %s %llu bytes %s",
                        at, live->bytes, begin, tag, site, is_before ? "begins" : "ends",
                        (unsigned long long)(is_before ? begin - at : at - begin - live->bytes),
                        is_before ? "after it" : "before it");
    }
    case TOL_POOL_WHOSE_NONE:
        break;
    }
    return tol_fail(__FILE__, __LINE__, TOL_OUT_OF_RANGE,
                    "%#llx is in no block, and no block is live", at);
}
