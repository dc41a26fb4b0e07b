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

enum { GROUP_BLOCKS = 4, GROUP_UNITS = 9, GROUP_ITEMS = 16, BLOCK_PIECES = 9 };

// As staged_x, with a gap behind 16 items, which are a group's. Neighbouring lanes read 17 items
// apart, and so they do from different banks.
struct staged_groups {
    staged_x x; // its items are those with the gaps

    __device__ inline staged_groups(void *shared, uint32_t k) : x(shared, k) {
        x.items += x.items / GROUP_ITEMS;
        x.scales = (float4 *)(x.quants + 4 * x.items);
    }

    // What has the item where staged_x has it.
    __device__ inline staged_x around(uint32_t item) const {
        staged_x moved = x;
        moved.quants += item / GROUP_ITEMS;
        moved.scales += item / GROUP_ITEMS;
        return moved;
    }
};

// The items of a lane's group: their four pieces, and their scales.
struct group_x {
    const int4 *quants[4];
    const float4 *scales;

    __device__ inline group_x(const staged_groups &all, uint32_t group) {
        const uint32_t first = group * (GROUP_ITEMS + 1);
#pragma unroll
        for (int part = 0; part < 4; part++) {
            quants[part] = all.x.quants + part * all.x.items + first;
        }
        scales = all.x.scales + first;
    }
};

// What a lane has of the block that it is in: the header, decoded once for eight pieces. Bytes 0 to
// 3 of a word are of sub-blocks 0 to 3, or of 4 to 7 in the second word.
struct sealed_block {
    uint32_t scales[2], minimums[2];
    float2 d;

    __device__ inline void read_header(const uint4 &header) {
        const uint32_t six = 0x3f3f3f3fu, four = 0x0f0f0f0fu, two = 0x30303030u;
        d = q4_k_d(header);
        scales[0] = header.y & six;
        minimums[0] = header.z & six;
        scales[1] = (header.w & four) | (header.y >> 2 & two);
        minimums[1] = (header.w >> 4 & four) | (header.z >> 2 & two);
    }
};

// (a ^ b) & mask: what is encrypted, its key stream and a mask, in one instruction.
__device__ inline uint32_t opened(uint32_t a, uint32_t b, uint32_t mask) {
    uint32_t result;
    asm("lop3.b32 %0, %1, %2, %3, 0x28;" : "=r"(result) : "r"(a), "r"(b), "r"(mask));
    return result;
}

// The products of bytes of x with what mask leaves of 16 bytes of quants.
__device__ inline int dot_opened(const uint4 &data, const uint32_t *stream, uint32_t mask,
                                 const int4 &x) {
    int sum = dot_4(opened(data.x, stream[0], mask), x.x, 0);
    sum = dot_4(opened(data.y, stream[1], mask), x.y, sum);
    sum = dot_4(opened(data.z, stream[2], mask), x.z, sum);
    return dot_4(opened(data.w, stream[3], mask), x.w, sum);
}

// Piece WHICH of the quants of a block, of eight: the low halves are of one half of an item, the
// high ones of the other. x is that of the lane's group.
template <int WHICH>
__device__ inline float multiply(const sealed_block &block, const uint4 &data,
                                 const uint32_t *stream, const group_x &x, int item) {
    enum { HALF = WHICH % 2, WORD = WHICH / 4, AT = WHICH / 2 % 2 * 16 };
    const uint32_t scales = block.scales[WORD] >> AT;
    const float4 d_x = x.scales[item];
    const int low = dot_opened(data, stream, 0x0f0f0f0fu, x.quants[HALF][item]);
    const int high = dot_opened(data, stream, 0xf0f0f0f0u, x.quants[2 + HALF][item]) >> 4;
    const float plus = d_x.x * (float)(low * (int)(scales & 0xff)) +
                       d_x.y * (float)(high * (int)(scales >> 8 & 0xff));
    if (HALF > 0) return block.d.x * plus;
    // The minimums are those of both pieces of an item.
    const uint32_t m = block.minimums[WORD] >> AT;
    return block.d.x * plus -
           block.d.y * ((float)(m & 0xff) * d_x.z + (float)(m >> 8 & 0xff) * d_x.w);
}

// Pieces PIECE to LAST of a group of four blocks: a header each nine pieces, then its quants.
// PIECE % 4 is the place in a unit.
template <int PIECE, int LAST> struct pieces {
    static __device__ inline void add(sealed_block &block, float &sum, const uint4 (&data)[4],
                                      const chacha_block &key, const group_x &x, uint32_t blocks) {
        enum { BLOCK = PIECE / BLOCK_PIECES, OF_BLOCK = PIECE % BLOCK_PIECES, IN_UNIT = PIECE % 4 };
        const uint4 &in = data[IN_UNIT];
        const uint32_t *stream = key.word + 4 * IN_UNIT;
        if (BLOCK >= blocks) return;
        if (OF_BLOCK == 0) {
            block.read_header(
                {in.x ^ stream[0], in.y ^ stream[1], in.z ^ stream[2], in.w ^ stream[3]});
        } else {
            enum { WHICH = OF_BLOCK > 0 ? OF_BLOCK - 1 : 0 };
            sum += multiply<WHICH>(block, in, stream, x, 4 * BLOCK + WHICH / 2);
        }
        pieces<PIECE + 1, LAST>::add(block, sum, data, key, x, blocks);
    }
};
template <int PAST> struct pieces<PAST, PAST - 1> {
    static __device__ inline void add(sealed_block &, float &, const uint4 (&)[4],
                                      const chacha_block &, const group_x &, uint32_t) {}
};

// Adds what a group of up to four blocks has. The key stream is made in one place, and each unit of
// the nine has code of its own behind it, in which all places are constants. Warps do not diverge.
template <int ROUNDS>
__device__ inline float add_group(const sealed_product_arguments &a, const group_x &x,
                                  const uint8_t *row, uint32_t row_unit, uint32_t group) {
    const uint32_t first = group * GROUP_UNITS, units = min(a.row_units - first, GROUP_UNITS + 0u);
    const uint32_t blocks = min(a.blocks - group * GROUP_BLOCKS, GROUP_BLOCKS + 0u);
    const uint8_t *at = row + (uint64_t)first * SEAL_UNIT_BYTES;
    sealed_block block;
    float sum = 0;
#pragma unroll 1
    for (uint32_t unit = 0; unit < units; unit++, at += SEAL_UNIT_BYTES) {
        uint4 data[4];
#pragma unroll
        for (int i = 0; i < 4; i++) data[i] = load_global_16(at + 16 * i);
        const chacha_block key =
            chacha_at<ROUNDS>(a.stream, a.first_unit + row_unit + first + unit);
#define UNIT(u)                                                                                    \
    case u:                                                                                        \
        pieces<4 * u, 4 * u + 3>::add(block, sum, data, key, x, blocks);                           \
        break
        switch (unit) {
            UNIT(0);
            UNIT(1);
            UNIT(2);
            UNIT(3);
            UNIT(4);
            UNIT(5);
            UNIT(6);
            UNIT(7);
            UNIT(8);
        }
#undef UNIT
    }
    return sum;
}

template <int ROUNDS> __device__ inline void sealed_product(const sealed_product_arguments &a) {
    extern __shared__ int4 shared[];
    const staged_groups x(shared, a.k);
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
        for (uint32_t group = lane; group * GROUP_BLOCKS < a.blocks; group += lanes) {
            sum += add_group<ROUNDS>(a, group_x(x, group), row, row_unit, group);
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
