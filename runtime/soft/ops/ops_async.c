/*
 * Asynchronous copies, mbarriers and clusters: what they do is in async.c, bulk.c, mbarrier.c and
 * cluster.c, which are the same at every level.
 */
#include "tollens/cuda_abi.h"
#include "machine/async.h"
#include "machine/cluster.h"
#include "machine/finding.h"
#include "machine/mbarrier.h"
#include "machine/mbarrier_wait.h"
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

/* mode: whether addresses are of 64 bits. */
OP_ANY(mapa) {
    const uint32_t *rank = SLOT(uint32_t, in->b);
    EACH_LANE(i, warp->mask) {
        if (rank[i] != 0) {
            return soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << i, 0,
                                    "block %u of a cluster of one block", rank[i]);
        }
        if (in->mode != 0) {
            SLOT(uint64_t, in->d)[i] = SLOT(uint64_t, in->a)[i];
        } else {
            SLOT(uint32_t, in->d)[i] = SLOT(uint32_t, in->a)[i];
        }
    }
    return in + 1;
}

OP_ANY(mbarrier_pending) {
    const uint64_t *a = SLOT(uint64_t, in->a);
    EACH_LANE(i, warp->mask) SLOT(uint32_t, in->d)[i] = soft_mbarrier_pending(a[i]);
    return in + 1;
}
