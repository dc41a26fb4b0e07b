// quant product, step 5: one column of Q4_K in one kernel.
//
// The idea: each block rounds x to bytes itself, in shared memory, as quant_product_staged.cuh
// says. A warp owns one row.
// Owner, bound and requirements: as quant_product_staged.cuh says.
#include "quant_product_staged.cuh"

extern "C" __global__ void __launch_bounds__(STAGED_THREADS, 2)
    quant_product_staged_1(kn_quant_product_arguments a) {
    staged_product<1, 2>(a, staged_rows<1>(a));
}
