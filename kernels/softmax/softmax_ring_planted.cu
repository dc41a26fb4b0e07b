// Step 7 of softmax with one defect a kernel: its tests must notice each.
// Target: compute_90
//
// The idea: softmax_cluster_ring.cuh with one mistake, for bf16 and clusters of four. No table of
// the library offers these kernels.
// Owner and requirements: as softmax_7_cluster_ring.cu says.
#include "softmax_cluster_ring.cuh"

#if __CUDA_ARCH__ >= 900
#define SOFTMAX_RING_PLANTED(name, defect)                                                         \
    extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(512, 2)                 \
        softmax_ring_##name(softmax_arguments x) {                                                 \
        softmax_cluster_ring<__nv_bfloat16, 4, 4, defect>(x);                                      \
    }
SOFTMAX_RING_PLANTED(early_release, RING_EARLY_RELEASE)
SOFTMAX_RING_PLANTED(wrong_phase, RING_WRONG_PHASE)
SOFTMAX_RING_PLANTED(no_wait, RING_NO_WAIT)
SOFTMAX_RING_PLANTED(no_meeting, RING_NO_MEETING)
#endif
