// quant product, step 5: one column of Q4_K in one kernel.
//
// The idea: each block rounds x to bytes itself, in shared memory, as quant_product_staged.cuh
// says. A warp owns one row, or two that share what is read of x.
// Owner, bound and requirements: as quant_product_staged.cuh says.
#include "quant_product_staged.cuh"

#define STAGED(name, rows, depth, blocks)                                                          \
    extern "C" __global__ void __launch_bounds__(STAGED_THREADS, blocks)                           \
        quant_product_##name(kn_quant_product_arguments a) {                                       \
        staged_product<rows, depth>(a, staged_rows<rows>(a));                                      \
    }

STAGED(staged_1, 1, 2, 2)
STAGED(staged_2, 2, 3, 1)
