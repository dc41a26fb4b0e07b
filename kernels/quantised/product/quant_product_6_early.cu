// quant product, step 6: step 5 by PDL.
// Target: compute_90
//
// The idea: before the preceding kernel has ended, nothing that it may still write can be read, but
// weights can be prefetched to the L2 cache, which stays coherent. So the memory is busy between
// two kernels.
// Owner and bound: as quant_product_staged.cuh says.
// Requires: the same, and a launch by PDL.
#include "quant_product_staged.cuh"

// Prefetches the first 4 KiB of each row. More might evict what the previous kernel has yet to
// read.
template <int ROWS>
__device__ inline void ask_for(const kn_quant_product_arguments &a, const staged_rows<ROWS> &rows) {
    enum { LINE = 128 };
    const uint32_t at = threadIdx.x % WARP * LINE;
    if (at >= a.blocks * Q4_K_BYTES) return;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(rows.row[r] + at)));
    }
}

extern "C" __global__ void __launch_bounds__(STAGED_THREADS, 2)
    quant_product_early_1(kn_quant_product_arguments a) {
    const staged_rows<1> rows(a);
    ask_for(a, rows);
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    staged_product<1, 2>(a, rows);
}
