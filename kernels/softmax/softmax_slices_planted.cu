// Steps 8 and 9 of softmax with one defect per kernel: their tests must notice each.
// Target: compute_90
//
// The idea: softmax_slices.cuh with one mistake, for bf16 and clusters of two (step 8) and eight.
// No table of the library offers these kernels.
// Owner and requirements: as softmax_8_slices.cu and softmax_9_behind.cu say.
#include "softmax_slices.cuh"

#if __CUDA_ARCH__ >= 900
#define SOFTMAX_SLICES_PLANTED(step, name, blocks, defect)                                         \
    extern "C" __global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(512, 1)            \
        softmax_##step##_##name(softmax_arguments x) {                                             \
        softmax_##step<__nv_bfloat16, 8, blocks, defect>(x);                                       \
    }
SOFTMAX_SLICES_PLANTED(slices, early_refill, 2, SLICES_EARLY_REFILL)
SOFTMAX_SLICES_PLANTED(slices, early_store, 2, SLICES_EARLY_STORE)
SOFTMAX_SLICES_PLANTED(slices, wrong_phase, 2, SLICES_WRONG_PHASE)
SOFTMAX_SLICES_PLANTED(slices, no_wait, 2, SLICES_NO_WAIT)
SOFTMAX_SLICES_PLANTED(slices, unheard, 2, SLICES_UNHEARD)
SOFTMAX_SLICES_PLANTED(behind, early_before, 8, SLICES_EARLY_BEFORE)
#endif
