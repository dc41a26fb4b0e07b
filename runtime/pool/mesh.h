/*
 * Mesh: compaction of a pool without changing a pointer, and the pages that it leaves behind.
 *
 * All work of the context is waited for before; what other threads queue meanwhile would be lost,
 * so a program must say that it queues none (tol_pool_options.compact). What is free in pages that
 * share a handle is blocked, since another page's bytes may be there, until nothing lives on the
 * memory; then it is released. Internal: not installed. The caller holds the pool's lock.
 */
#ifndef TOLLENS_MESH_H
#define TOLLENS_MESH_H

#include "mesh_plan.h"
#include "pool_state.h"

/* What the moves of a pass share. */
struct tol_mesher {
    struct tol_pool *pool;
    CUdeviceptr scratch; /* addresses for as many pages as the largest handle has */
    uint64_t scratch_bytes;
    uint32_t *mapped; /* room for all pages */
};

/* Makes a move; user is a tol_mesher. Where the driver refuses, nothing has changed. */
enum tol_mesh_result tol_mesh_move(void *user, struct tol_mesh_move *move);

/* How many bytes meshing would give, of those that are wanted. Calls no driver function. */
uint64_t tol_mesh_promise(struct tol_pool *pool, uint64_t want, uint64_t room);

/* Waits for all work of the context and meshes until want bytes came free, a share of what is held
 * at the least; nothing is done where want cannot be had. Gives how many did. */
tol_status tol_mesh_pass(struct tol_pool *pool, uint64_t want, uint64_t *gained);

/* Whether a block lies on a shared page. */
bool tol_mesh_touches(const struct tol_pool *pool, uint64_t begin, uint64_t bytes);

/* Blocks what is free of shared pages between from's begin and end; work that uses it ends with the
 * ticket. Two records a page, and two more, must have been reserved. */
void tol_mesh_block(struct tol_pool *pool, struct tol_span *from, uint64_t end, uint64_t streams,
                    uint64_t ticket);

/* Releases shared handles that nothing lives on and no work uses, until want bytes were; how many
 * were. */
uint64_t tol_mesh_release(struct tol_pool *pool, uint64_t want);

#endif
