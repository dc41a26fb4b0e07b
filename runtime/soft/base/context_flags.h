/*
 * The flags of cuCtxCreate and primary contexts.
 */
#ifndef SOFT_CONTEXT_FLAGS_H
#define SOFT_CONTEXT_FLAGS_H

#include "abi.h"

#include <stdbool.h>

/* Known ones, and at most one way of waiting. The ways do not differ here: a waiting thread
 * works. */
static inline bool soft_context_flags_are(unsigned flags) {
    unsigned way = flags & (CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD | CU_CTX_SCHED_BLOCKING_SYNC);
    return (flags & ~(unsigned)CU_CTX_FLAGS_MASK) == 0 && (way & (way - 1)) == 0;
}

#endif
