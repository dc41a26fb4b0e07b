// The prologue and the epilogue of step 4 of attention's backward pass.
//
// The idea: the prologue, ordered_begin, computes the figures of rows, as that of step 1 does, with
// loads of 16 bytes, and sets the turns and the ticket to zero. The epilogue, ordered_finish, turns
// the sums of d_q, which are pieces of fragments, into rows of the type.
// Owner: ordered_begin: D / 8 threads own a row. ordered_finish: a warp owns 16 rows, 32 columns.
// Bound by: what they read and write.
// Requires: gridDim = (figures_pitch / 64, heads, batch), blockDim = (ORDERED_THREADS or 4 D, 1,
// 1).
#pragma once

#include "attention_backward_ordered.cuh"

// Of a block of ordered_begin.
constexpr int ORDERED_THREADS = 256;

#if __CUDA_ARCH__ >= 900
// The figures of a tile of rows, and its turn; the first block also sets the ticket to zero. D / 8
// threads per row.
template <typename T, int D>
__device__ inline void ordered_begin(const attention_backward_arguments &g) {
    enum { LANES = D / 8, STEP = ORDERED_THREADS / LANES, TURNS = ATTENTION_TURN_ROWS / STEP };
    const attention_arguments &x = g.x;
    const int lane = threadIdx.x % LANES, tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int first = tile * ATTENTION_TURN_ROWS + threadIdx.x / LANES;
    const long long heads = (long long)batch * x.heads + head;
    uint4 outs[TURNS], d_outs[TURNS];
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
        const int row = min(first + i * STEP, x.q_length - 1);
        outs[i] = ((const uint4 *)attention_row<T>(x.out, x.out_strides, batch, head, row))[lane];
        d_outs[i] =
            ((const uint4 *)attention_row<T>(g.d_out, g.d_out_strides, batch, head, row))[lane];
    }
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
        const int row = first + i * STEP;
        const bool is_there = row < x.q_length;
        const T *out = (const T *)&outs[i], *d_out = (const T *)&d_outs[i];
        float delta = 0;
#pragma unroll
        for (int e = 0; e < 8; e++) delta = fmaf(to_float(out[e]), to_float(d_out[e]), delta);
#pragma unroll
        for (int by = 1; by < LANES; by *= 2) delta += __shfl_xor_sync(0xffffffff, delta, by);
        if (lane != 0) continue;
        const float lse = is_there ? ((const float *)x.lse)[heads * x.q_length + row] : -INFINITE;
        ((float2 *)g.figures)[heads * g.figures_pitch + row] = {
            lse == -INFINITE ? INFINITE : lse * (1 / LN_2), is_there ? delta : 0};
    }
    if (threadIdx.x != 0) return;
    uint32_t *turns = (uint32_t *)g.turns;
    turns[ordered_index(g, batch, head, tile)] = 0;
    if (tile == 0 && heads == 0) turns[ordered_index(g, x.batch, 0, 0)] = 0;
}

// Of a word from each of four lanes and each of their four, word i of each lane to lane i.
__device__ inline void turn_words(uint32_t (&words)[4]) {
#pragma unroll
    for (int bit = 1; bit <= 2; bit *= 2) {
        const bool is_upper = threadIdx.x & bit;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i & bit) continue;
            const uint32_t given = is_upper ? words[i] : words[i + bit];
            const uint32_t taken = __shfl_xor_sync(0xffffffff, given, bit);
            if (is_upper)
                words[i] = taken;
            else
                words[i + bit] = taken;
        }
    }
}

template <typename T, int D>
__device__ inline void ordered_finish(const attention_backward_arguments &g) {
    const int lane = threadIdx.x % WARP, thread = threadIdx.x % WARPGROUP;
    const int tile = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int pieces = threadIdx.x / WARPGROUP * 4; // the first of four, of 8 columns each
    const long long index = ordered_index(g, batch, head, tile);
    const float4 *from = (const float4 *)g.sums + (index * (D / 8) + pieces) * WARPGROUP + thread;
    // Nobody has added to a tile whose rows see no key.
    const bool is_there = ((const uint32_t *)g.turns)[index] != 0;
    uint32_t words[2][4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float4 sums = is_there ? from[i * WARPGROUP] : float4{};
        words[0][i] = pack<T>(sums.x * g.scale, sums.y * g.scale);
        words[1][i] = pack<T>(sums.z * g.scale, sums.w * g.scale);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        turn_words(words[h]);
        const int row = tile * ATTENTION_TURN_ROWS + thread / WARP * 16 + h * 8 + lane / 4;
        if (row >= g.x.q_length) continue;
        T *to = (T *)attention_row<T>(g.d_q, g.d_q_strides, batch, head, row);
        *(uint4 *)(to + (pieces + lane % 4) * 8) = {words[h][0], words[h][1], words[h][2],
                                                    words[h][3]};
    }
}
#endif
