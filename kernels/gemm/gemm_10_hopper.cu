// gemm, step 10: Hopper's own instructions, for fp16 and bf16.
// Target: compute_90a
//
// The idea: the pipeline of gemm_hopper.cuh. wgmma reads either order of 16-bit elements, so all
// four transpositions cost the same.
// Owner and requirements: as gemm_hopper.cuh says. A tile of 128 x 256 in clusters of two with four
// stages, one of 128 x 128 by itself with six.
// Registers: ptxas 13.0 gives 168 a thread at the launch and spills none; 40 are left to those
// that copy, and 232 are given to those that multiply, 128 or 64 of which are sums. Shared memory:
// 224 KiB of stages and boxes of C, and what aligning them takes.
// Bound by: wgmma; at 128 x 256 each byte that a block copies is used for 128 multiplications.
#include "gemm_hopper.cuh"

#if __CUDA_ARCH__ >= 900
#define GEMM_HOPPER(type, T, which, transpose_a, transpose_b)                                      \
    GEMM_HOPPER_KERNEL(gemm_wgmma_256_##type##_##which, __cluster_dims__(2, 1, 1), T, transpose_a, \
                       transpose_b, 256, 2)                                                        \
    GEMM_HOPPER_KERNEL(gemm_wgmma_128_##type##_##which, , T, transpose_a, transpose_b, 128, 1)
#define GEMM_HOPPER_ALL(type, T)                                                                   \
    GEMM_HOPPER(type, T, nn, false, false)                                                         \
    GEMM_HOPPER(type, T, nt, false, true)                                                          \
    GEMM_HOPPER(type, T, tn, true, false)                                                          \
    GEMM_HOPPER(type, T, tt, true, true)
GEMM_HOPPER_ALL(f16, __half)
GEMM_HOPPER_ALL(bf16, __nv_bfloat16)
#endif
