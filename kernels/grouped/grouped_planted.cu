// Steps 3 and 4 of grouped with one defect per kernel: what judges grouped must notice each.
// Target: compute_90a
//
// The idea: the pipelines of grouped_hopper.cuh and grouped_pair.cuh with one mistake. No table
// offers these kernels but that of planted defects.
// Owner and requirements: as those files say.
#include "grouped_pair.cuh"

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
GROUPED_PAIR_KERNEL(grouped_lost_half_e4m3, 192, GROUPED_LOST_HALF)
#endif
