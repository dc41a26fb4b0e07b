// gemm, step 10: Hopper's own instructions, for fp16 and bf16.
// Target: compute_90a
//
// The idea: the pipeline of gemm_hopper.cuh. wgmma reads either order of 16-bit elements, so all
// four transpositions cost the same.
// Owner and requirements: as gemm_hopper.cuh says. Tiles of 128 x 256 have four stages, those of
// 128 x 128 six; k4 has tiles of 128 x 128 whose steps four blocks share.
// Registers: ptxas 13.0 gives 168 a thread at the launch and spills none; 40 are left to those
// that copy, and 232 are given to those that multiply, 128 or 64 of which are sums. Shared memory:
// 192 KiB of stages, and what aligning them takes.
// Bound by: wgmma; k4 by what it reads.
#include "gemm_hopper.cuh"

#if __CUDA_ARCH__ >= 900
#define GEMM_HOPPER(type, T, which, transpose_a, transpose_b)                                      \
    GEMM_HOPPER_KERNEL(gemm_wgmma_256_##type##_##which, , T, transpose_a, transpose_b, 256)        \
    GEMM_HOPPER_KERNEL(gemm_wgmma_128_##type##_##which, , T, transpose_a, transpose_b, 128)        \
    GEMM_HOPPER_KERNEL(gemm_wgmma_k4_##type##_##which, __cluster_dims__(4, 1, 1), T, transpose_a,  \
                       transpose_b, 128, 4)
#define GEMM_HOPPER_ALL(type, T)                                                                   \
    GEMM_HOPPER(type, T, nn, false, false)                                                         \
    GEMM_HOPPER(type, T, nt, false, true)                                                          \
    GEMM_HOPPER(type, T, tn, true, false)                                                          \
    GEMM_HOPPER(type, T, tt, true, true)
GEMM_HOPPER_ALL(f16, __half)
GEMM_HOPPER_ALL(bf16, __nv_bfloat16)
#endif
