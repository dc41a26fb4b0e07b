// Step 6 of softmax with one defect per kernel: its tests must notice each.
// Target: compute_90
//
// The idea: softmax_cluster.cuh with one mistake, for bf16 and clusters of four. No table of the
// library offers these kernels.
// Owner and requirements: as softmax_6_cluster.cu says.
#include "softmax_cluster.cuh"

#if __CUDA_ARCH__ >= 900
#define SOFTMAX_PLANTED(name, defect)                                                              \
    extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(512, 2)                 \
        softmax_##name(softmax_arguments x) {                                                      \
        softmax_cluster<__nv_bfloat16, 4, 4, defect>(x);                                           \
    }
SOFTMAX_PLANTED(lost_block, CLUSTER_LOST_BLOCK)
SOFTMAX_PLANTED(own_base, CLUSTER_OWN_BASE)
SOFTMAX_PLANTED(own_largest, CLUSTER_OWN_LARGEST)
#endif
