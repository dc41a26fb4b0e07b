// attention over numbers of 8 bits, step 2: Hopper's own instructions.
// Target: compute_90a
//
// The idea: the pipeline of attention_hopper.cuh; q and k are multiplied as e4m3, and values are
// converted to fp16, as attention_e4m3_hopper.cuh says.
// Registers: as attention_7_hopper says; ptxas 13.0 spills none.
// Owner, bound and requirements: as attention_e4m3_hopper.cuh says.
#include "attention_e4m3_hopper.cuh"

#if __CUDA_ARCH__ >= 900
ATTENTION_E4M3(wgmma_f16_64, __half, 64, E4M3_RIGHT)
ATTENTION_E4M3(wgmma_f16_128, __half, 128, E4M3_RIGHT)
ATTENTION_E4M3(wgmma_f16_256, __half, 256, E4M3_RIGHT)
ATTENTION_E4M3(wgmma_bf16_64, __nv_bfloat16, 64, E4M3_RIGHT)
ATTENTION_E4M3(wgmma_bf16_128, __nv_bfloat16, 128, E4M3_RIGHT)
ATTENTION_E4M3(wgmma_bf16_256, __nv_bfloat16, 256, E4M3_RIGHT)
#endif
