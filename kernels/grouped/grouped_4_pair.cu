// grouped, step 4: tiles of 192 columns for e4m3, by pairs of blocks that share what they read of
// B, or by single blocks.
// Target: compute_90a
//
// The idea: the pipeline of grouped_pair.cuh.
// Owner and requirements: as grouped_pair.cuh says. Tiles of 128 x 192 a block, five stages.
// Bound by: wgmma, and what the L2 cache gives.
#include "grouped_pair.cuh"

#if __CUDA_ARCH__ >= 900
GROUPED_PAIR_KERNEL(grouped_wgmma_pair_e4m3_nt, 192)
GROUPED_HOPPER_KERNEL(grouped_wgmma_192_e4m3_nt, e4m3, true, 192)
#endif
