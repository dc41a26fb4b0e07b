// gemm, step 14: floats on tensor cores, to the error of floats.
// Target: compute_90a
//
// The idea: the pipeline of gemm_hopper_parts.cuh: six products of bf16 for one of floats, on
// tensor cores that make about fifteen in the time of one fused multiply-add.
// Owner and requirements: as gemm_hopper_parts.cuh says; six stages, two for each part.
// Bound by: wgmma.
#include "gemm_hopper_parts.cuh"

#if __CUDA_ARCH__ >= 900
GEMM_HOPPER_PARTS(gemm_parts_128_f32_nn, false, false)
GEMM_HOPPER_PARTS(gemm_parts_128_f32_nt, false, true)
GEMM_HOPPER_PARTS(gemm_parts_128_f32_tn, true, false)
GEMM_HOPPER_PARTS(gemm_parts_128_f32_tt, true, true)
#endif
