// y = W x of one column and Q4_K blocks, as quant_product_5_staged.cu has it, but it begins while
// the kernel in front of it ends: until that has ended it asks for weights to come to the L2 cache,
// which is all that may be done with what another kernel may still be writing. So the memory has
// work between two kernels.
// Target: compute_90
#include "quant_product_staged.cuh"

// The first 4 KiB of each row. More might push out what the kernel in front has yet to read.
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

template <int ROWS, int DEPTH> __device__ inline void early(const kn_quant_product_arguments &a) {
    const staged_rows<ROWS> rows(a);
    ask_for(a, rows);
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    staged_product<ROWS, DEPTH>(a, rows);
}

#define EARLY(name, rows, depth, blocks)                                                           \
    extern "C" __global__ void __launch_bounds__(STAGED_THREADS, blocks)                           \
        quant_product_##name(kn_quant_product_arguments a) {                                       \
        early<rows, depth>(a);                                                                     \
    }

EARLY(early_1, 1, 2, 2)
EARLY(early_2, 2, 3, 1)
