// heads, step 1: makes the heads of q, k and v of each row ready for attention.
//
// Heads of q and k are divided by their root mean square and weighted, if the model does that, and
// rotated by the row's position; those of q stay where they are, those of k and v go to the cache
// as halves.
//
// The idea: one kernel for what would be five small ones. A warp owns a head; a lane keeps a pair
// of elements that are rotated together.
// Owner: warp w of block (i, r) owns head HEADS i + w of row r, counted over q, k and v.
// Bound by: latency.
// Requires: blockDim = (32 HEADS, 1, 1), gridDim = (heads / HEADS rounded up, rows); head_size up
// to 256 and a multiple of 8, rotated even.
#include "paged.cuh"

enum { HEADS = 4 };

// The elements that a lane has: pair i is two elements that are rotated, or two neighbours behind.
__device__ inline int2 pair_of(const heads_arguments &x, int i) {
    const int pairs = x.rotated / 2;
    if (i >= pairs || !x.halves) return {2 * i, 2 * i + 1};
    return {i, i + pairs};
}

__device__ inline void write_element(const heads_arguments &x, int head, int position,
                                     uint64_t page, float *own, int i, float value) {
    if (head < x.heads) {
        own[i] = value;
    } else if (head < x.heads + x.kv_heads) {
        key_at(x.cache, page, head - x.heads, x.head_size, position, i / KEY_PIECE)[i % KEY_PIECE] =
            __float2half_rn(value);
    } else {
        value_at(x.cache, page, head - x.heads - x.kv_heads, x.head_size, position)[i] =
            __float2half_rn(value);
    }
}

extern "C" __global__ void heads_warp(heads_arguments x) {
    const int head = blockIdx.x * HEADS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const int row = blockIdx.y;
    if (head >= x.heads + 2 * x.kv_heads) return;
    const bool is_value = head >= x.heads + x.kv_heads;
    const int position = ((const int *)x.cache.positions)[row];
    const uint64_t page = head < x.heads ? 0 : pages_of(x.cache, row)[position / PAGE];
    float *own = (float *)x.rows_at + row * x.row_stride + (uint64_t)head * x.head_size;
    const float *weight = (const float *)(is_value ? 0 : head < x.heads ? x.q_norm : x.k_norm);
    float scale = 1;
    if (weight != nullptr) {
        float squares = 0;
        for (int i = lane; i < x.head_size; i += WARP) squares = fmaf(own[i], own[i], squares);
        scale = 1 / sqrtf(warp_sum(squares) / (float)x.head_size + x.epsilon);
    }
    for (int i = lane; i < x.head_size / 2; i += WARP) {
        const int2 at = pair_of(x, i);
        float a = own[at.x] * scale, b = own[at.y] * scale;
        if (weight != nullptr) a *= weight[at.x], b *= weight[at.y];
        if (!is_value && i < x.rotated / 2) {
            float sine, cosine;
            sincosf((float)position * ((const float *)x.frequencies)[i], &sine, &cosine);
            sine *= x.magnitude, cosine *= x.magnitude;
            const float turned = a * cosine - b * sine;
            b = a * sine + b * cosine;
            a = turned;
        }
        write_element(x, head, position, page, own, at.x, a);
        write_element(x, head, position, page, own, at.y, b);
    }
}
