// Steps 10, 13 and 14 of gemm with one defect per kernel: what judges gemm must notice each.
// Target: compute_90a
//
// The idea: the pipeline of gemm_hopper.cuh with one mistake, for bf16, as wgmma_128 or wgmma_k4;
// and those of steps 13 and 14. No table offers these kernels but that of planted defects.
// Owner and requirements: as gemm_hopper.cuh says.
#include "gemm_hopper_parts.cuh"
#include "gemm_hopper_words.cuh"

#if __CUDA_ARCH__ >= 900
#define GEMM_PLANTED(name, defect)                                                                 \
    GEMM_HOPPER_KERNEL(gemm_##name##_bf16, , __nv_bfloat16, false, false, 128, 1, defect)
GEMM_PLANTED(early_release, HOPPER_EARLY_RELEASE)
GEMM_PLANTED(lost_consumer, HOPPER_LOST_CONSUMER)
GEMM_PLANTED(wrong_stage, HOPPER_WRONG_STAGE)
GEMM_PLANTED(lost_stage, HOPPER_LOST_STAGE)
GEMM_HOPPER_KERNEL(gemm_lost_block_bf16, __cluster_dims__(4, 1, 1), __nv_bfloat16, false, false,
                   128, 4, HOPPER_LOST_BLOCK)
GEMM_HOPPER_WORDS(gemm_wrong_words_tf32, C_IS_TURNED, 128, HOPPER_WRONG_WORDS)
GEMM_HOPPER_PARTS(gemm_lost_part_f32, false, false, HOPPER_LOST_PART)
GEMM_HOPPER_PARTS(gemm_lost_mend_f32, false, false, HOPPER_LOST_MEND)
#endif
