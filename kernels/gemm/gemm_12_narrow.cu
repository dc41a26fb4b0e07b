// gemm, step 12: tiles of 64 columns, for fp16 and bf16 products of few tiles.
// Target: compute_90a
//
// The idea: the pipeline of gemm_hopper.cuh with tiles of 64 columns, so that a product of few
// rows, or of a thousand cubed, has about as many blocks as the device has multiprocessors, and all
// of them read. k2: the two blocks of a cluster share the steps of a tile.
// Owner and requirements: as gemm_hopper.cuh says. There are eight stages.
// Bound by: what it reads.
#include "gemm_hopper.cuh"

#if __CUDA_ARCH__ >= 900
#define GEMM_NARROW(type, T, which, transpose_a, transpose_b)                                      \
    GEMM_HOPPER_KERNEL(gemm_wgmma_64_##type##_##which, , T, transpose_a, transpose_b, 64)          \
    GEMM_HOPPER_KERNEL(gemm_wgmma_64_k2_##type##_##which, __cluster_dims__(2, 1, 1), T,            \
                       transpose_a, transpose_b, 64, 2)
#define GEMM_NARROW_ALL(type, T)                                                                   \
    GEMM_NARROW(type, T, nn, false, false)                                                         \
    GEMM_NARROW(type, T, nt, false, true)                                                          \
    GEMM_NARROW(type, T, tn, true, false)                                                          \
    GEMM_NARROW(type, T, tt, true, true)
GEMM_NARROW_ALL(f16, __half)
GEMM_NARROW_ALL(bf16, __nv_bfloat16)
#endif
