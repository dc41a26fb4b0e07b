// seal_product_*: y[m] = sum_k W[m][k] x[k] for one column and Q4_K that is encrypted.
//
// The idea: nine units of 64 bytes are four blocks of 144. So a lane that owns four blocks of a row
// makes the nine blocks of key stream that it needs and no others, decrypts its own bytes in its
// registers and multiplies them there: plain weights are in no memory, not even a shared one. Which
// of the 36 pieces of 16 bytes are headers depends on the unit alone, so a warp never diverges. x
// is rounded to bytes in shared memory as by quant_product_5_staged.
// Owner: 1, 2, 4, ... or 32 neighbouring lanes own a row, and every so many groups of four blocks.
// Bound by: integer instructions; of 64 bytes 20 rounds take about 1,000, the product 200.
// Requires: blockDim.x a multiple of 32 up to 512; k + k / 4 bytes of dynamic shared memory, a
// sixteenth more and 80; rows that begin at multiples of 64 bytes; x at a multiple of 16.
#include "../quant/quant_product_staged.cuh"
#include "chacha.cuh"
#include "sealed_product_arguments.h"

enum { GROUP_BLOCKS = 4, GROUP_UNITS = 9, BLOCK_PIECES = 9 };

// As staged_x, with a gap behind 16 items. Neighbouring lanes read 16 items apart, and so they do
// from different banks.
struct spaced_x {
    staged_x x; // its items are those with the gaps

    __device__ inline spaced_x(void *shared, uint32_t k) : x(shared, k) {
        x.items += x.items / 16;
        x.scales = (float4 *)(x.quants + 4 * x.items);
    }

    // What has the item where staged_x has it.
    __device__ inline staged_x around(uint32_t item) const {
        staged_x moved = x;
        moved.quants += item / 16;
        moved.scales += item / 16;
        return moved;
    }

    __device__ inline int4 quants(uint32_t part, uint32_t item) const {
        return x.quants[part * x.items + item + item / 16];
    }
    __device__ inline float4 scales(uint32_t item) const { return x.scales[item + item / 16]; }
};

// The blocks of a lane's group that there are, and what is known of the one being read.
struct sealed_group {
    uint32_t first, blocks; // in its row
    uint4 header;
    float sum;
};

// A piece of 16 bytes of quants: the low halves are of one half item, the high ones of the other.
// which is from 0 to 7 in a block, the same in all lanes.
__device__ inline void multiply(sealed_group &group, const uint4 &quants, const spaced_x &x,
                                uint32_t block, uint32_t which) {
    const uint32_t item = block * 4 + which / 2, half = which % 2;
    const staged_group of(which / 2);
    const q4_k_scales s = of.scales_of(group.header);
    const float2 d = q4_k_d(group.header);
    const float4 d_x = x.scales(item);
    const int low = dot_16(quants, 0x0f0f0f0fu, x.quants(half, item), 0);
    const int high = dot_16(quants, 0xf0f0f0f0u, x.quants(2 + half, item), 0) >> 4;
    const float plus = d_x.x * (float)(low * (int)(s.scales & 0xff)) +
                       d_x.y * (float)(high * (int)(s.scales >> 8));
    group.sum += d.x * plus;
    // The minimums are those of both pieces of an item.
    if (half == 0) {
        group.sum -= d.y * ((float)(s.minimums & 0xff) * d_x.z + (float)(s.minimums >> 8) * d_x.w);
    }
}

template <int ROUNDS>
__device__ inline void add_group(sealed_group &group, const sealed_product_arguments &a,
                                 const spaced_x &x, const uint8_t *row, uint32_t row_unit) {
    const uint32_t first_unit = group.first / GROUP_BLOCKS * GROUP_UNITS;
#pragma unroll 1
    for (uint32_t u = 0; u < GROUP_UNITS; u++) {
        const uint32_t unit = first_unit + u;
        if (unit >= a.row_units) break;
        const uint8_t *at = row + (uint64_t)unit * SEAL_UNIT_BYTES;
        seal_unit data;
#pragma unroll
        for (int i = 0; i < 4; i++) data.piece[i] = load_global_16(at + 16 * i);
        data.add(chacha_at<ROUNDS>(a.stream, a.first_unit + row_unit + unit));
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t piece = 4 * u + i, block = piece / BLOCK_PIECES;
            if (block >= group.blocks) break;
            if (piece % BLOCK_PIECES == 0) {
                group.header = data.piece[i];
            } else {
                multiply(group, data.piece[i], x, group.first + block, piece % BLOCK_PIECES - 1);
            }
        }
    }
}

template <int ROUNDS> __device__ inline void sealed_product(const sealed_product_arguments &a) {
    extern __shared__ int4 shared[];
    const spaced_x x(shared, a.k);
    for (uint32_t i = threadIdx.x; i < a.k / 8; i += blockDim.x) {
        const float *from = (const float *)a.x + (size_t)8 * i;
        stage_eight(x.around(i / 8), i, load_global_16(from), load_global_16(from + 4));
    }
    __syncthreads();
    const uint32_t lanes = a.row_lanes, lane = threadIdx.x % lanes;
    const uint32_t m = (blockIdx.x * blockDim.x + threadIdx.x) / lanes;
    float sum = 0;
    if (m < a.rows) {
        const uint32_t row_unit = m * a.row_units;
        const uint8_t *row = (const uint8_t *)a.weights + (uint64_t)row_unit * SEAL_UNIT_BYTES;
#pragma unroll 1
        for (uint32_t first = lane * GROUP_BLOCKS; first < a.blocks;
             first += lanes * GROUP_BLOCKS) {
            sealed_group group = {first, min(a.blocks - first, (uint32_t)GROUP_BLOCKS), {}, sum};
            add_group<ROUNDS>(group, a, x, row, row_unit);
            sum = group.sum;
        }
    }
    for (uint32_t apart = lanes / 2; apart > 0; apart /= 2) {
        sum += __shfl_xor_sync(~0u, sum, apart);
    }
    if (lane == 0 && m < a.rows) ((float *)a.y)[m] = sum;
}

#define SEALED(rounds)                                                                             \
    extern "C" __global__ void __launch_bounds__(512)                                              \
        seal_product_##rounds(sealed_product_arguments a) {                                        \
        sealed_product<rounds>(a);                                                                 \
    }

SEALED(20)
SEALED(12)
SEALED(8)
