// attention over paged sequences, step 3: Hopper's own instructions, for fp16 and bf16.
// Target: compute_90a
//
// The idea: attention_7_hopper, with boxes of pages. Blocks after the last row of a sequence end at
// once.
// Registers and shared memory: as attention_7_hopper says; ptxas 13.0 spills none.
// Owner, bound and requirements: as attention_paged_hopper.cuh says.
#include "attention_paged_hopper.cuh"

#if __CUDA_ARCH__ >= 900
PAGED_HOPPER(wgmma_f16_64, __half, 64, NEXT_SEQUENCE, PAGED_RIGHT)
PAGED_HOPPER(wgmma_f16_128, __half, 128, NEXT_SEQUENCE, PAGED_RIGHT)
PAGED_HOPPER(wgmma_f16_256, __half, 256, NEXT_SEQUENCE, PAGED_RIGHT)
PAGED_HOPPER(wgmma_bf16_64, __nv_bfloat16, 64, NEXT_SEQUENCE, PAGED_RIGHT)
PAGED_HOPPER(wgmma_bf16_128, __nv_bfloat16, 128, NEXT_SEQUENCE, PAGED_RIGHT)
PAGED_HOPPER(wgmma_bf16_256, __nv_bfloat16, 256, NEXT_SEQUENCE, PAGED_RIGHT)
#endif
