/*
 * Mesh: compaction of a pool at unchanged addresses, and the shared pages that result from it.
 *
 * A pass first waits for all work of the context. Work that other threads queue during a pass would
 * be lost, so a program must promise to queue none (tol_pool_options.compact). Free ranges of pages
 * that share a handle are blocked, because another page's bytes may be there, until the memory has
 * no live block; then it is released. The caller holds the pool's lock.
 */
#ifndef TOLLENS_MESH_H
#define TOLLENS_MESH_H

#include "mesh_plan.h"
#include "pool_state.h"

/* State that the moves of a pass share. */
struct tol_mesher {
    struct tol_pool *pool;
    CUdeviceptr scratch; /* addresses for as many pages as the largest handle has */
    uint64_t scratch_bytes;
    uint32_t *mapped; /* room for all pages */
};

/* Makes a move; user is a struct tol_mesher. If a driver call fails, nothing has changed. */
enum tol_mesh_result tol_mesh_move(void *user, struct tol_mesh_move *move);

/* The number of bytes, up to want, that a pass would free. Calls no driver function. */
uint64_t tol_mesh_promise(struct tol_pool *pool, uint64_t want, uint64_t room);

/* Waits for all work of the context and compacts until want bytes are free, and at least a share of
 * the held bytes. Does nothing if it cannot free want. *gained is set to the bytes freed. */
tol_status tol_mesh_pass(struct tol_pool *pool, uint64_t want, uint64_t *gained);

/* Whether a block is on a shared page. */
bool tol_mesh_touches(const struct tol_pool *pool, uint64_t begin, uint64_t bytes);

/* Blocks the free ranges of shared pages between the begin of from and end; work may use them until
 * ticket. Two records per page and two more must have been reserved. */
void tol_mesh_block(struct tol_pool *pool, struct tol_span *from, uint64_t end, uint64_t streams,
                    uint64_t ticket);

/* Releases shared handles without a live block or pending work until want bytes are released, and
 * returns the bytes released. */
uint64_t tol_mesh_release(struct tol_pool *pool, uint64_t want);

#endif
