/*
 * Ledger: the bytes of device memory that the driver has allocated and not freed.
 *
 * The ledger sees each call after the driver and before a saboteur changes the result. A free that
 * a fault keeps from the driver is therefore not recorded as a free. Attacks compare the ledger
 * with what the runtime reports. For the driver's own stream-ordered pools, calls are counted and
 * bytes are not, because the driver holds that memory. Threads: any, but no driver call may run
 * during hyp_ledger_open.
 */
#ifndef HYP_LEDGER_H
#define HYP_LEDGER_H

#include "tollens.h"

#include <stdint.h>

struct hyp_ledger {
    uint64_t bytes;        /* allocated and not freed, as requested */
    uint64_t made, unmade; /* numbers of allocations and frees */
    uint64_t foreign;      /* frees of unknown addresses, and double frees */
};

/* Begins an empty ledger and adds its hook to the options, whose own hooks are still called. */
void hyp_ledger_open(struct tol_interpose_options *options);

/* The current state. */
TOL_API struct hyp_ledger hyp_ledger_read(void);

/* The number of calls of functions that allocate device memory, counted by the interposer. */
TOL_API uint64_t hyp_ledger_calls(void);

#endif
