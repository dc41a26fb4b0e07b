// gemm, step 13: step 10 for floats, rounded to tf32 by the copies.
// Target: compute_90a
//
// The idea: the pipeline of gemm_hopper_words.cuh. nt reads both factors from shared memory. tt
// loads A, whose steps are not contiguous, to registers; nn does so with B, as the A of the
// transpose of C. For tn step 11 transposes B first, and the kernel is that of tt.
// Owner and requirements: as gemm_hopper_words.cuh says. Tiles of 128 x 256 have four stages, those
// of 128 x 128 six.
// Bound by: wgmma.
#include "gemm_hopper_words.cuh"

#if __CUDA_ARCH__ >= 900
GEMM_HOPPER_WORDS(gemm_wgmma_256_tf32_nn, C_IS_TURNED, 256)
GEMM_HOPPER_WORDS(gemm_wgmma_256_tf32_nt, A_K_MAJOR, 256)
GEMM_HOPPER_WORDS(gemm_wgmma_256_tf32_tt, A_MN_MAJOR, 256)
GEMM_HOPPER_WORDS(gemm_wgmma_128_tf32_nn, C_IS_TURNED, 128)
GEMM_HOPPER_WORDS(gemm_wgmma_128_tf32_nt, A_K_MAJOR, 128)
GEMM_HOPPER_WORDS(gemm_wgmma_128_tf32_tt, A_MN_MAJOR, 128)
#endif
