// quant product, step 8: many columns by wgmma and TMA.
// Target: compute_90a
//
// The idea: the pipeline of quant_product_wgmma.cuh, and its prologue, which rounds x to halves and
// stores them in the order of its fragments: a group of 64 is four products s of 16 steps, each the
// two halves h of a fragment, each four lanes t, each two neighbours.
// Owner, of quant_product_halves: a thread owns eight halves that are stored as one word of 16
// bytes; of the others as quant_product_wgmma.cuh says.
// Registers: ptxas 13.0 gives 168 per thread at the launch and spills none; the producer keeps 40,
// and a consumer gets 232, 64 or 128 of which are sums. Shared memory: 198 to 214 KiB, and what
// aligning it takes.
// Bound by: wgmma, and the conversion of weights under it; quant_product_halves by memory.
// Requires, of quant_product_halves: blockDim = (128, 1, 1), gridDim = (k / 1024 rounded up,
// columns), k a multiple of 64, x and its columns at multiples of 8 bytes; of the others as
// quant_product_wgmma.cuh says.
#include "quant_product_wgmma.cuh"

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __launch_bounds__(WARPGROUP)
    quant_product_halves(const __grid_constant__ kn_quant_product_arguments a) {
    let_next_begin();
    round_x(a);
}

QUANT_WGMMA(quant_product_wgmma_q4_k_128, chunk_q4_k, 128)
QUANT_WGMMA(quant_product_wgmma_q4_k_256, chunk_q4_k, 256)
QUANT_WGMMA(quant_product_wgmma_q6_k_128, chunk_q6_k, 128)
QUANT_WGMMA(quant_product_wgmma_q6_k_256, chunk_q6_k, 256)
QUANT_WGMMA(quant_product_wgmma_q8_0_128, chunk_q8_0, 128)
QUANT_WGMMA(quant_product_wgmma_q8_0_256, chunk_q8_0, 256)
#endif
