// quant product, step 8: many columns by Hopper's own instructions.
// Target: compute_90a
//
// The idea: the pipeline of quant_product_wgmma.cuh, and the kernel in front of it, which rounds x
// to halves and stores them in the order of its fragments: a group of 64 is four products s of 16
// steps, each the two halves h of a fragment, each four lanes t, each two neighbours.
// Owner, of quant_product_halves: a thread owns eight halves that are stored as one word of 16
// bytes; of the others as quant_product_wgmma.cuh says.
// Registers: ptxas 13.0 gives 168 a thread at the launch and spills none; 40 are left to those that
// copy, and 232 are given to those that multiply, 64 or 128 of which are sums. Shared memory: 198
// to 214 KiB, and what aligning it takes.
// Bound by: wgmma, and the conversion of weights under it; quant_product_halves by memory.
// Requires, of quant_product_halves: blockDim = (128, 1, 1), gridDim = (k / 1024 rounded up,
// columns), k a multiple of 64, x and its columns at multiples of 8 bytes; of the others as
// quant_product_wgmma.cuh says.
#include "quant_product_wgmma.cuh"

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __launch_bounds__(WARPGROUP)
    quant_product_halves(const __grid_constant__ kn_quant_product_arguments a) {
    const uint32_t piece = blockIdx.x * WARPGROUP + threadIdx.x, inside = piece % 8;
    let_next_begin();
    if (piece >= a.k / 8) return;
    const uint32_t step = inside / 2, h = inside % 2;
    const float *from = (const float *)a.x + blockIdx.y * a.x_stride + piece / 8 * GROUP +
                        step / 2 * 32 + step % 2 * 4 + 2 * h;
    uint32_t words[4];
#pragma unroll
    for (int t = 0; t < 4; t++) {
        const float2 two = __ldg((const float2 *)(from + 8 * t));
        words[t] = two_halves(two.x, two.y);
    }
    ((uint4 *)a.quants)[(uint64_t)blockIdx.y * (a.k / 8) + piece] = {words[0], words[1], words[2],
                                                                     words[3]};
}

QUANT_WGMMA(quant_product_wgmma_q4_k_128, chunk_q4_k, 128)
QUANT_WGMMA(quant_product_wgmma_q4_k_256, chunk_q4_k, 256)
QUANT_WGMMA(quant_product_wgmma_q6_k_128, chunk_q6_k, 128)
QUANT_WGMMA(quant_product_wgmma_q6_k_256, chunk_q6_k, 256)
QUANT_WGMMA(quant_product_wgmma_q8_0_128, chunk_q8_0, 128)
QUANT_WGMMA(quant_product_wgmma_q8_0_256, chunk_q8_0, 256)
#endif
