// columns by flags, step 4: step 3, which begins while the kernel in front ends.
// Target: compute_90
//
// The next kernel begins when this one's blocks run, and loads what is constant while this one
// waits for the other ranks. Owner, bound and requirements: as step 3. It may be launched
// programmatically.
#define EARLY
#include "columns.cuh"

extern "C" __global__ void columns_flags_early(collective_columns x) { exchange_columns(x); }
