// attention over numbers of 8 bits, step 2: Hopper's own instructions.
// Target: compute_90a
//
// The idea: the pipeline of attention_hopper.cuh, with scores of 8 bits a factor and values that
// become fp16, as attention_e4m3_hopper.cuh says.
// Registers: as attention_7_hopper says; ptxas 13.0 spills none.
// Owner, bound and requirements: as attention_e4m3_hopper.cuh says.
#include "attention_e4m3_hopper.cuh"

#if __CUDA_ARCH__ >= 900
#define ATTENTION_E4M3(type, OUT, D)                                                               \
    extern "C" __global__ void __launch_bounds__(attention_shape<D>::THREADS, 1)                   \
        attention_e4m3_wgmma_##type##_##D(                                                         \
            const __grid_constant__ tensor_map q, const __grid_constant__ tensor_map k,            \
            const __grid_constant__ tensor_map v, const __grid_constant__ tensor_map out,          \
            const __grid_constant__ attention_e4m3_arguments p) {                                  \
        attention_e4m3_hopper<OUT, D>(p, &q, &k, &v, &out);                                        \
    }
ATTENTION_E4M3(f16, __half, 64)
ATTENTION_E4M3(f16, __half, 128)
ATTENTION_E4M3(f16, __half, 256)
ATTENTION_E4M3(bf16, __nv_bfloat16, 64)
ATTENTION_E4M3(bf16, __nv_bfloat16, 128)
ATTENTION_E4M3(bf16, __nv_bfloat16, 256)
#endif
