// Step 10 of gemm with one defect a kernel: what judges gemm must notice each.
// Target: compute_90a
//
// The idea: the pipeline of gemm_hopper.cuh with one mistake, for bf16, as wgmma_256. No table
// offers these kernels but that of planted defects.
// Owner and requirements: as gemm_hopper.cuh says.
#include "gemm_hopper.cuh"

#if __CUDA_ARCH__ >= 900
#define GEMM_PLANTED(name, defect)                                                                 \
    GEMM_HOPPER_KERNEL(gemm_##name##_bf16, __cluster_dims__(2, 1, 1), __nv_bfloat16, false, false, \
                       256, 2, defect)
GEMM_PLANTED(early_release, HOPPER_EARLY_RELEASE)
GEMM_PLANTED(lost_consumer, HOPPER_LOST_CONSUMER)
GEMM_PLANTED(lost_block, HOPPER_LOST_TILE)
GEMM_PLANTED(wrong_half, HOPPER_WRONG_HALF)
GEMM_PLANTED(lost_stage, HOPPER_LOST_STAGE)
#endif
