// best, step 2: step 1 by PDL.
// Target: compute_90
//
// Idea, owner, bound and requirements: as step 1. It may be launched by PDL.
#define EARLY
#include "best.cuh"

extern "C" __global__ void __launch_bounds__(BEST_THREADS) best_parts_early(best_arguments a) {
    best_of_part(a);
}
extern "C" __global__ void __launch_bounds__(32) best_merge_early(best_arguments a) {
    best_of_parts(a);
}
