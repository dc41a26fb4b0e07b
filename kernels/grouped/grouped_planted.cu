// Step 3 of grouped with one defect a kernel: what judges grouped must notice each.
// Target: compute_90a
//
// The idea: the pipeline of grouped_hopper.cuh with one mistake. No table offers these kernels but
// that of planted defects.
// Owner and requirements: as grouped_hopper.cuh says.
#include "grouped_hopper.cuh"

#if __CUDA_ARCH__ >= 900
#define GROUPED_PLANTED(name, defect)                                                              \
    GROUPED_HOPPER_KERNEL(grouped_##name##_bf16, __nv_bfloat16, true, 128, defect)
GROUPED_PLANTED(early_release, GROUPED_EARLY_RELEASE)
GROUPED_PLANTED(wrong_group, GROUPED_WRONG_GROUP)
GROUPED_PLANTED(over_end, GROUPED_OVER_END)
GROUPED_PLANTED(lost_consumer, GROUPED_LOST_CONSUMER)
GROUPED_PLANTED(lost_scale, GROUPED_LOST_SCALE)
GROUPED_HOPPER_KERNEL(grouped_no_promotion_e4m3, e4m3, true, 128, GROUPED_NO_PROMOTION)
GROUPED_HOPPER_KERNEL(grouped_lost_stage_e4m3, e4m3, true, 128, GROUPED_LOST_STAGE)
#endif
