/*
 * Staging: pinned blocks of one size that pageable data passes through, kept for the next copy.
 *
 * They lie on the NUMA node that is nearest to the device. A block whose copy did not end in time
 * is lost until it has: nobody may write where a copy still reads. Internal: not installed.
 * Thread-safe.
 */
#ifndef TOLLENS_STAGING_H
#define TOLLENS_STAGING_H

#include "core/stream_state.h"
#include "objects/buffer_state.h"
#include "objects/pinned_state.h"
#include "retry.h"

struct tol_stage {
    struct tol_event done; /* behind the copy that uses it */
    char *data;
    bool is_lost;
    struct tol_stage *next;
};

struct tol_stages {
    struct tol_context *context;
    const struct tol_retry_policy *retry;
    size_t block_bytes;
    unsigned count_max;
    int node; /* of NUMA; -1: any */
    pthread_mutex_t lock;
    pthread_cond_t given;
    struct tol_stage *free;
    unsigned count; /* that there are, free or taken */
};

void tol_stages_open(struct tol_stages *stages, struct tol_context *context, size_t block_bytes,
                     unsigned count_max, const struct tol_retry_policy *retry);

/* Frees the blocks, but for those that a copy still uses after TOL_DEADLINE_MS. */
void tol_stages_close(struct tol_stages *stages);

/* A block: one that is free, or a new one, or the next that is given back within deadline_ms. With
 * 0 it does not wait, and gives TOL_NOT_READY without a message where there is none. */
tol_status tol_stages_take(struct tol_stages *stages, unsigned deadline_ms,
                           struct tol_stage **stage);

/* Gives it back; is_lost: a copy may still use it. */
void tol_stages_give(struct tol_stages *stages, struct tol_stage *stage, bool is_lost);

#endif
