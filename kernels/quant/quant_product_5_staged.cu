// y = W x of one column and Q4_K blocks, in one kernel: each block of threads rounds x to bytes
// itself, in shared memory. A warp has one row, or two that share what is read of x.
#include "quant_product_staged.cuh"

#define STAGED(name, rows, depth, blocks)                                                          \
    extern "C" __global__ void __launch_bounds__(STAGED_THREADS, blocks)                           \
        quant_product_##name(kn_quant_product_arguments a) {                                       \
        staged_product<rows, depth>(a, staged_rows<rows>(a));                                      \
    }

STAGED(staged_1, 1, 2, 2)
STAGED(staged_2, 2, 3, 1)
