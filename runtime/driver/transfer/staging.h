/*
 * Staging: pinned blocks of one size that carry pageable data, kept for later copies.
 *
 * They are on the NUMA node nearest to the device. A block whose copy did not complete in time is
 * lost until it does: its memory must not be written while a copy may read it.
 * Thread-safe.
 */
#ifndef TOLLENS_STAGING_H
#define TOLLENS_STAGING_H

#include "core/stream_state.h"
#include "objects/buffer_state.h"
#include "objects/pinned_state.h"
#include "retry.h"

struct tol_stage {
    struct tol_event done; /* recorded after the copy that uses it */
    char *data;
    bool is_lost;
    struct tol_stage *next;
};

struct tol_stages {
    struct tol_context *context;
    const struct tol_retry_policy *retry;
    size_t block_bytes;
    unsigned count_max;
    int node; /* the NUMA node; -1: any */
    pthread_mutex_t lock;
    pthread_cond_t given;
    struct tol_stage *free;
    unsigned count; /* of all blocks, free or taken */
};

void tol_stages_open(struct tol_stages *stages, struct tol_context *context, size_t block_bytes,
                     unsigned count_max, const struct tol_retry_policy *retry);

/* Frees the blocks, except those that a copy still uses after TOL_DEADLINE_MS. */
void tol_stages_close(struct tol_stages *stages);

/* The NUMA node of the pages of free blocks, as far as the kernel reports it; -1: it reports
 * none, or they are on several. The caller holds the lock. */
int tol_stages_node(const struct tol_stages *stages);

/* Takes a free block, a new one, or the next that is given back within deadline_ms. With 0 it does
 * not wait and returns TOL_NOT_READY, without a message, if there is none. */
tol_status tol_stages_take(struct tol_stages *stages, unsigned deadline_ms,
                           struct tol_stage **stage);

/* Gives a block back. is_lost: a copy may still use it. */
void tol_stages_give(struct tol_stages *stages, struct tol_stage *stage, bool is_lost);

#endif
