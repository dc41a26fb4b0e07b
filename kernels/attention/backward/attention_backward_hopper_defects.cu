// attention's backward pass by Hopper's instructions with one defect in each kernel, for sabotage:
// tests must find each.
// Target: compute_90a
//
// The idea: attention_backward_3_hopper for bf16 and heads of 64 elements, with one mistake. They
// are in no table from which calls choose; tests force them by name.
// Owner and requirements: as attention_backward_hopper.cuh says.
#include "attention_backward_hopper.cuh"

#if __CUDA_ARCH__ >= 900
#define GRADIENT_DEFECT(name, defect)                                                              \
    extern "C" __global__ void __launch_bounds__(gradient_shape<64>::THREADS, 1)                   \
        attention_backward_##name(                                                                 \
            const __grid_constant__ tensor_map q, const __grid_constant__ tensor_map k,            \
            const __grid_constant__ tensor_map v, const __grid_constant__ tensor_map d_out,        \
            const __grid_constant__ tensor_map d_q, const __grid_constant__ tensor_map d_k,        \
            const __grid_constant__ tensor_map d_v,                                                \
            const __grid_constant__ attention_backward_arguments g) {                              \
        attention_backward_hopper<__nv_bfloat16, 64, defect>(                                      \
            g, {&q, &k, &v, &d_out, &d_q, &d_k, &d_v});                                            \
    }
GRADIENT_DEFECT(lost_consumer, LOST_CONSUMER)
GRADIENT_DEFECT(lost_step, LOST_STEP)
GRADIENT_DEFECT(wrong_head, WRONG_HEAD)
#endif
