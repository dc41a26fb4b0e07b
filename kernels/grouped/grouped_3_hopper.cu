// grouped, step 3: Hopper's own instructions, for fp16, bf16 and e4m3.
// Target: compute_90a
//
// The idea: the pipeline of grouped_hopper.cuh.
// Owner and requirements: as grouped_hopper.cuh says. Tiles of 128 x 256 have four stages, those of
// 128 x 128 six.
// Bound by: wgmma; with few rows in each group by what is read of B.
#include "grouped_hopper.cuh"

#if __CUDA_ARCH__ >= 900
GROUPED_HOPPER_KERNEL(grouped_wgmma_256_f16_nn, __half, false, 256)
GROUPED_HOPPER_KERNEL(grouped_wgmma_256_f16_nt, __half, true, 256)
GROUPED_HOPPER_KERNEL(grouped_wgmma_128_f16_nn, __half, false, 128)
GROUPED_HOPPER_KERNEL(grouped_wgmma_128_f16_nt, __half, true, 128)
GROUPED_HOPPER_KERNEL(grouped_wgmma_256_bf16_nn, __nv_bfloat16, false, 256)
GROUPED_HOPPER_KERNEL(grouped_wgmma_256_bf16_nt, __nv_bfloat16, true, 256)
GROUPED_HOPPER_KERNEL(grouped_wgmma_128_bf16_nn, __nv_bfloat16, false, 128)
GROUPED_HOPPER_KERNEL(grouped_wgmma_128_bf16_nt, __nv_bfloat16, true, 128)
GROUPED_HOPPER_KERNEL(grouped_wgmma_128_e4m3_nt, e4m3, true, 128)
#endif
