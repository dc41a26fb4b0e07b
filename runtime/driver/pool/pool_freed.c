/*
 * Searches what all threads freed.
 */
#include "freed.h"

#include "pool_state.h"

struct freed_search {
    uint64_t wanted;
    bool by_name, is_found;
    struct tol_freed *found;
};

static bool pool_freed_fits(const struct freed_search *search, const struct tol_freed *freed) {
    if (search->by_name) return freed->block == search->wanted;
    return search->wanted - freed->address < freed->bytes;
}

static void pool_freed_look(void *user, struct tol_magazine *magazine) {
    struct freed_search *search = user;
    const struct tol_freed_list *list = &magazine->freed;
    uint64_t known = list->count < TOL_FREED_KNOWN ? list->count : TOL_FREED_KNOWN;
    for (uint64_t i = 1; i <= known; i++) {
        const struct tol_freed *freed = &list->blocks[(list->count - i) % TOL_FREED_KNOWN];
        if (!pool_freed_fits(search, freed)) continue;
        if (search->is_found && search->found->epoch >= freed->epoch) return;
        *search->found = *freed;
        search->is_found = true;
        return;
    }
}

static bool search_all(struct tol_pool *pool, struct freed_search search) {
    tol_magazine_each(pool, pool_freed_look, &search);
    return search.is_found;
}

bool tol_freed_by_name(struct tol_pool *pool, uint64_t block, struct tol_freed *freed) {
    return search_all(pool,
                      (struct freed_search){.wanted = block, .by_name = true, .found = freed});
}

bool tol_freed_by_address(struct tol_pool *pool, uint64_t address, struct tol_freed *freed) {
    return search_all(pool, (struct freed_search){.wanted = address, .found = freed});
}
