// paged attention, step 5: heads and a span in one kernel, for rows of different sessions.
// Target: compute_90
//
// The idea: a block that attends with heads of q makes them ready itself, in shared memory, and the
// block whose span has the row's own position stores its key and value before it reads them. A row
// of one span needs no merge. So a layer of a step has one small kernel where it had three.
// Owner: as step 1; the block of the row's own position owns the stores of its head of k and v too.
// Bound by: latency.
// Requires: as step 1, with all heads of q of a key in one block; no two rows of one session; rows
// that are rounded have whole chunks of 256 elements per block, if splits is 1.
#define EARLY
#include "paged_step.cuh"

#define STEP(name, cache, stored, group)                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        paged_step_##name##_##group(paged_step_arguments a) {                                      \
        step<cache, stored, group>(a);                                                             \
    }
#define STEPS(name, cache, stored)                                                                 \
    STEP(name, cache, stored, 1)                                                                   \
    STEP(name, cache, stored, 2) STEP(name, cache, stored, 4) STEP(name, cache, stored, 8)
STEPS(halves, cached_halves, stored_halves)
STEPS(bytes, cached_bytes, stored_bytes)
