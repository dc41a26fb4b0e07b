// grouped, step 4: two blocks share what they read of B, for e4m3.
// Target: compute_90a
//
// The idea: the pipeline of grouped_pair.cuh.
// Owner and requirements: as grouped_pair.cuh says. Tiles of 128 x 192 a block, five stages.
// Bound by: wgmma, and what the L2 cache gives.
#include "grouped_pair.cuh"

#if __CUDA_ARCH__ >= 900
GROUPED_PAIR_KERNEL(grouped_wgmma_pair_e4m3_nt, 192)
#endif
