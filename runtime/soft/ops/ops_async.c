/*
 * Asynchronous copies, mbarriers and clusters: implemented in async.c, bulk.c, mbarrier.c and
 * cluster.c, which are the same at every level.
 */
#include "lower/modes.h"
#include "async/async.h"
#include "machine/cluster_barrier.h"
#include "machine/cluster_map.h"
#include "async/mbarrier.h"
#include "async/mbarrier_wait.h"
#include "op_body.h"

OP_ANY(cp_async) {
    return soft_async_copy(warp, in);
}

OP_ANY(cp_async_commit) {
    return soft_async_commit(warp, in, SOFT_COPIES_ASYNC);
}

OP_ANY(cp_async_wait) {
    return soft_async_wait(warp, in, SOFT_COPIES_ASYNC);
}

OP_ANY(cp_async_arrive) {
    return soft_async_arrival(warp, in);
}

OP_ANY(cp_bulk) {
    return soft_bulk_copy(warp, in);
}

OP_ANY(cp_bulk_commit) {
    return soft_async_commit(warp, in, SOFT_COPIES_BULK);
}

OP_ANY(cp_bulk_wait) {
    return soft_async_wait(warp, in, SOFT_COPIES_BULK);
}

OP_ANY(st_async) {
    return soft_bulk_store(warp, in);
}

OP_ANY(cp_tensor) {
    return soft_tensor_copy(warp, in);
}

OP_ANY(map_replace) {
    return soft_map_replace(warp, in);
}

OP_ANY(map_copy) {
    return soft_map_copy(warp, in);
}

OP_ANY(mbarrier) {
    return soft_mbarrier_run(warp, in);
}

OP_ANY(mbarrier_test) {
    return soft_mbarrier_test(warp, in);
}

OP_ANY(cluster_arrive) {
    return soft_cluster_arrive(warp, in);
}

OP_ANY(cluster_wait) {
    return soft_cluster_wait(warp, in);
}

/* The mode of an access: the address's width, and whether it is generic. */
OP_ANY(mapa) {
    const uint32_t *rank = SLOT(uint32_t, in->b);
    bool wide = (in->mode & SOFT_ACCESS_WIDE_ADDRESS) != 0;
    EACH_LANE(i, warp->mask) {
        uint64_t address = wide ? SLOT(uint64_t, in->a)[i] : SLOT(uint32_t, in->a)[i];
        if (!soft_cluster_map(warp, in, i, rank[i], &address)) return NULL;
        if (wide) {
            SLOT(uint64_t, in->d)[i] = address;
        } else {
            SLOT(uint32_t, in->d)[i] = (uint32_t)address;
        }
    }
    return in + 1;
}

OP_ANY(getctarank) {
    bool wide = (in->mode & SOFT_ACCESS_WIDE_ADDRESS) != 0;
    EACH_LANE(i, warp->mask) {
        uint64_t address = wide ? SLOT(uint64_t, in->a)[i] : SLOT(uint32_t, in->a)[i];
        if (!soft_cluster_rank(warp, in, i, address, &SLOT(uint32_t, in->d)[i])) return NULL;
    }
    return in + 1;
}

OP_ANY(mbarrier_pending) {
    const uint64_t *a = SLOT(uint64_t, in->a);
    EACH_LANE(i, warp->mask) SLOT(uint32_t, in->d)[i] = soft_mbarrier_pending(a[i]);
    return in + 1;
}
