// What steps 2 and 3 of sealed memory share: y[m] = sum_k W[m][k] x[k] for one column and Q4_K that
// is encrypted.
//
// The idea: nine units of 64 bytes are four blocks of 144. So a lane that owns four blocks of a row
// makes the nine blocks of key stream that it needs and no others, decrypts its own bytes in its
// registers and multiplies them there: plain weights are in no memory, not even a shared one. Which
// of the 36 pieces of 16 bytes are headers depends on the unit alone, so a warp never diverges. x
// is rounded to bytes in shared memory as by quant_product_5_staged, once a multiprocessor, while
// the first weights are in flight and after the first block of key stream, which needs neither.
// Owner: a block has some rows, and a lane a group of four blocks of one of them. A scheduler of a
// multiprocessor would have one warp of groups more than another one: so the last warps' groups are
// cut in halves of five units, of which the middle one is decrypted twice.
// Bound by: logic and shifts, which run at half the rate of other instructions on an H100: 64 bytes
// take 1,280 of its cycles for 20 rounds of 32 lanes, and some 150 for the product.
// Requires: blockDim.x = 32 (wholes + 2 (warps' groups - wholes)) up to 512; k + k / 4 bytes of
// dynamic shared memory, a sixteenth more and 80, and at least 8 for each group of a block; rows
// that begin at multiples of 64 bytes; x at a multiple of 16.
#pragma once

#include "../quantised/product/quant_product_staged.cuh"
#include "chacha.cuh"
#include "sealed_product_arguments.h"

enum { GROUP_BLOCKS = 4, GROUP_UNITS = 9, GROUP_ITEMS = 16, BLOCK_PIECES = 9, HALF_UNIT = 4 };

// As staged_x, with a gap after 16 items, which are a group's. Neighbouring lanes read 17 items
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
// PIECE % 4 is the place in a unit. What precedes block first and what follows block blocks - 1 is
// left out; only in unit 4, which halves share, two blocks meet of which one is another half's.
template <int PIECE, int LAST> struct pieces {
    static __device__ inline void add(sealed_block &block, float &sum, const uint4 (&data)[4],
                                      const chacha_block &key, const group_x &x, uint32_t first,
                                      uint32_t blocks) {
        enum { BLOCK = PIECE / BLOCK_PIECES, OF_BLOCK = PIECE % BLOCK_PIECES, IN_UNIT = PIECE % 4 };
        const uint4 &in = data[IN_UNIT];
        const uint32_t *stream = key.word + 4 * IN_UNIT;
        if (BLOCK >= blocks) return;
        if (PIECE / 4 == HALF_UNIT && BLOCK < first) {
        } else if (OF_BLOCK == 0) {
            block.read_header(
                {in.x ^ stream[0], in.y ^ stream[1], in.z ^ stream[2], in.w ^ stream[3]});
        } else {
            enum { WHICH = OF_BLOCK > 0 ? OF_BLOCK - 1 : 0 };
            sum += multiply<WHICH>(block, in, stream, x, 4 * BLOCK + WHICH / 2);
        }
        pieces<PIECE + 1, LAST>::add(block, sum, data, key, x, first, blocks);
    }
};
template <int PAST> struct pieces<PAST, PAST - 1> {
    static __device__ inline void add(sealed_block &, float &, const uint4 (&)[4],
                                      const chacha_block &, const group_x &, uint32_t, uint32_t) {}
};

__device__ inline void load_unit(uint4 (&data)[4], const uint8_t *at) {
#pragma unroll
    for (int i = 0; i < 4; i++) data[i] = load_global_16(at + 16 * i);
}

// What a lane has to do: a group of blocks of a row, or a half of one.
struct sealed_item {
    uint32_t index;       // of the block's groups; past the last one it is computed, not counted
    uint32_t half;        // 1: the second half
    uint32_t group, row;  // the row is the matrix's
    uint32_t first, past; // blocks of the group
    uint32_t begin, end;  // units of the group, at least one; the last of them may be the row's last

    __device__ inline sealed_item(const sealed_product_arguments &a, uint32_t first_row,
                                  uint32_t items) {
        const uint32_t slot = threadIdx.x / WARP, cut = slot < a.wholes ? 0 : slot - a.wholes;
        const bool is_whole = slot < a.wholes;
        index = (is_whole ? slot : a.wholes + cut / 2) * WARP + threadIdx.x % WARP;
        half = is_whole ? 0 : cut % 2;
        const uint32_t there = min(index, items - 1), of_block = there / a.groups;
        group = there - of_block * a.groups;
        row = first_row + of_block;
        const uint32_t units = a.row_units - group * GROUP_UNITS;
        first = half * (GROUP_BLOCKS / 2);
        past = min(a.blocks - group * GROUP_BLOCKS,
                   is_whole || half > 0 ? GROUP_BLOCKS + 0u : GROUP_BLOCKS / 2u);
        begin = half * HALF_UNIT;
        end = min(units, is_whole || half > 0 ? GROUP_UNITS + 0u : HALF_UNIT + 1u);
        if (end <= begin) end = begin + 1; // nothing is there of this half
    }
};

// Rounds x to bytes, with all threads of the block.
__device__ inline void stage_all(const sealed_product_arguments &a, const staged_groups &x) {
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < a.k / 8; i += blockDim.x) {
        const float *from = (const float *)a.x + (size_t)8 * i;
        stage_eight(x.around(i / 8), i, load_global_16(from), load_global_16(from + 4));
    }
    __syncthreads();
}

// The sum of a lane. The key stream is made in one place, and each unit of the nine has code of its
// own after it, in which all places are constants. Warps do not diverge. PREPARE is what a kernel
// does between the first block of key stream and the first use of memory.
template <int ROUNDS, typename PREPARE>
__device__ inline float sum_of(const sealed_product_arguments &a, const sealed_item &item,
                               const staged_groups &all, PREPARE prepare) {
    const group_x x(all, item.group);
    const uint32_t row_unit = item.row * a.row_units, group_unit = item.group * GROUP_UNITS;
    const uint32_t last = a.row_units - 1 - group_unit;
    const uint8_t *group = (const uint8_t *)a.weights +
                           ((uint64_t)row_unit + group_unit) * SEAL_UNIT_BYTES;
    sealed_block block;
    float sum = 0;
    uint4 data[4];
    prepare.ask(group + (uint64_t)min(item.begin, last) * SEAL_UNIT_BYTES);
#pragma unroll 1
    for (uint32_t unit = item.begin; unit < item.end; unit++) {
        const bool is_first = unit == item.begin;
        const uint8_t *at = group + (uint64_t)min(unit, last) * SEAL_UNIT_BYTES;
        if (!is_first) load_unit(data, at);
        const chacha_block key =
            chacha_at<ROUNDS, ROUNDS / 2>(a.stream, a.first_unit + row_unit + group_unit + unit);
        if (is_first) {
            prepare.wait();
            load_unit(data, at);
            stage_all(a, all);
        }
#define UNIT(u)                                                                                    \
    case u:                                                                                        \
        pieces<4 * u, 4 * u + 3>::add(block, sum, data, key, x, item.first, item.past);            \
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

// What rows without blocks sum up to.
__device__ inline void write_zeros(const sealed_product_arguments &a, uint32_t first_row,
                                   uint32_t rows) {
    for (uint32_t row = threadIdx.x; row < rows; row += blockDim.x) {
        ((float *)a.y)[first_row + row] = 0;
    }
}

// The sums of lanes meet where x was, in the order of the row.
template <int ROUNDS, typename PREPARE>
__device__ inline void sealed_product(const sealed_product_arguments &a, PREPARE prepare) {
    extern __shared__ int4 shared[];
    const uint32_t first_row = blockIdx.x * a.block_rows,
                   rows = min(a.block_rows, a.rows - first_row), items = rows * a.groups;
    if (items == 0) return write_zeros(a, first_row, rows);
    const sealed_item item(a, first_row, items);
    const float sum = sum_of<ROUNDS>(a, item, staged_groups(shared, a.k), prepare);
    prepare.leave();
    float *sums = (float *)shared;
    __syncthreads();
    if (item.index < items) {
        sums[2 * item.index + item.half] = sum;
        if (threadIdx.x / WARP < a.wholes) sums[2 * item.index + 1] = 0;
    }
    __syncthreads();
    for (uint32_t row = threadIdx.x; row < rows; row += blockDim.x) {
        float total = 0;
        for (uint32_t i = 0; i < 2 * a.groups; i++) total += sums[2 * row * a.groups + i];
        ((float *)a.y)[first_row + row] = total;
    }
}
