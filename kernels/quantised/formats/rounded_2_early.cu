// rounded, step 2: step 1 by PDL.
// Target: compute_90
//
// Idea, owner, bound and requirements: as step 1. It may be launched by PDL.
#define EARLY
#include "rounded_row.cuh"

extern "C" __global__ void __launch_bounds__(ROUNDED_THREADS) rounded_early(rounded_arguments a) {
    round_row(a);
}
extern "C" __global__ void __launch_bounds__(ROUNDED_THREADS)
    rounded_norm_early(rounded_arguments a) {
    norm_row(a);
}
