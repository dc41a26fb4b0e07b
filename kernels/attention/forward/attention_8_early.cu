// attention, step 8: step 5 by programmatic dependent launch (PDL).
// Target: compute_90
//
// The idea: its blocks are resident when the kernel before it ends, and wait for its writes by
// griddepcontrol.wait.
// Owner, bound and requirements: as step 5.
#include "../../bulk.cuh"
#include "attention_combine.cuh"

template <typename T> __device__ inline void attention_combine_early(const attention_arguments &x) {
#if __CUDA_ARCH__ >= 900
    let_next_begin();
    wait_for_kernel_in_front();
    attention_combine<T>(x);
#endif
}

#define ATTENTION_COMBINE_EARLY(name, T)                                                           \
    extern "C" __global__ void __launch_bounds__(KN_ATTENTION_COMBINE_THREADS)                     \
        attention_combine_early_##name(attention_arguments x) {                                    \
        attention_combine_early<T>(x);                                                             \
    }
ATTENTION_COMBINE_EARLY(f32, float)
ATTENTION_COMBINE_EARLY(f16, __half)
ATTENTION_COMBINE_EARLY(bf16, __nv_bfloat16)
