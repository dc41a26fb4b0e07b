/*
 * Order faults: calls of the driver that lose, move or answer something, which the attacks on the
 * claims must notice. Most are hooks in the interposer. Those inside the pool are steps that the
 * attacks on Q2 make in the pool's place. Those of Q3 are in the driver's own table, below the
 * interposer: what counts calls sees one that succeeded, and the driver never gets it.
 */
#ifndef HYP_ORDER_FAULTS_H
#define HYP_ORDER_FAULTS_H

#include "harness/plugin.h"

extern const struct hyp_fault order_faults[];

/* The faults of Q2 are off until an attack has begun. */
void order_fault_begin(const struct hyp_attack *attack);

/* Whether the named fault, of one call in a given number, occurs now. Thread-safe. */
bool order_fault_now(const char *base);

/* tol_pool_free; and if the tickets are off by one, then the work of this free counts as done where
 * that of the free before it on the same stream does. */
tol_status order_fault_free(struct tol_pool *pool, struct tol_block block,
                            struct tol_stream *stream);

/* A pass of compaction begins or ends. */
void order_fault_compaction(bool is_under_way);

/* Begins, and plants the fault of Q3 that the attack runs under in the driver's table. */
void order_fault_plant(const struct hyp_attack *attack, const struct tol_driver_table *table);

#endif
