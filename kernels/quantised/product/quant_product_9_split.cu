// quant product, step 9: few columns by wgmma and TMA, with split-K.
// Target: compute_90a
//
// The idea: the pipeline of quant_product_split.cuh, and its prologue, which rounds x as that of
// step 8 does and sets the tickets to 0.
// Owner: as quant_product_wgmma.cuh and quant_product_split.cuh say.
// Registers: ptxas 13.0 gives 168 per thread at the launch and spills none; a producer keeps 40,
// and a consumer gets 232, 16, 32 or 64 of which are sums. Shared memory: 226 KiB at most.
// Bound by: weights from memory, x from the L2 cache, and the conversion of weights, about equally.
// Requires, of quant_product_halves_split: as quant_product_halves, and memory for the tickets; of
// the others as quant_product_split.cuh says.
#include "quant_product_split.cuh"

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __launch_bounds__(WARPGROUP)
    quant_product_halves_split(const __grid_constant__ kn_quant_product_arguments a) {
    let_next_begin();
    if (blockIdx.x == 0 && blockIdx.y == 0) {
        for (uint32_t i = threadIdx.x; i < KN_QUANT_SPLIT_TICKETS; i += WARPGROUP) {
            ((uint32_t *)a.scales)[i] = 0;
        }
    }
    round_x(a);
}

#define QUANT_SPLIT_ALL(blocks)                                                                    \
    QUANT_SPLIT(quant_product_split_##blocks##_128x32, deep_##blocks, 32)                          \
    QUANT_SPLIT(quant_product_split_##blocks##_128x64, deep_##blocks, 64)                          \
    QUANT_SPLIT(quant_product_split_##blocks##_128x128, deep_##blocks, 128)
QUANT_SPLIT_ALL(q4_k)
QUANT_SPLIT_ALL(q6_k)
QUANT_SPLIT_ALL(q8_0)
#endif
