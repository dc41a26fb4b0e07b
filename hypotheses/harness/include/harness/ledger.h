/*
 * Ledger: the device memory that the driver has given and not got back, to the byte.
 *
 * It hears each call after the driver and before a saboteur changes the answer, so what a fault
 * keeps from the driver is not written down as given back. What the runtime believes is compared
 * with it. The driver's own stream-ordered pools are counted by the call and not by the byte: what
 * they hold is theirs. Threads: any; opening is not beside calls.
 */
#ifndef HYP_LEDGER_H
#define HYP_LEDGER_H

#include "tollens.h"

#include <stdint.h>

struct hyp_ledger {
    uint64_t bytes;        /* given and not got back; as they were asked for */
    uint64_t made, unmade; /* how often memory was given and got back */
    uint64_t foreign;      /* given back what was never given, or given twice */
};

/* Begins an empty ledger and puts it behind the hooks that the options have, which go on being
 * called. */
void hyp_ledger_open(struct tol_interpose_options *options);

/* What it says now. */
TOL_API struct hyp_ledger hyp_ledger_read(void);

/* How often any function that makes device memory was called, by the interposer's counts. */
TOL_API uint64_t hyp_ledger_calls(void);

#endif
