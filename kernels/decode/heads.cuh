// Makes the heads of a row ready and stores k and v, as halves or as bytes.
#pragma once

#include "../pdl.cuh"
#include "paged.cuh"

enum { HEADS = 4, HEAD_ELEMENTS = 256 }; // warps that store heads

// The elements of a lane: pair i is two elements that are rotated, or two neighbours after these.
__device__ inline int2 pair_of(const heads_arguments &x, int i) {
    const int pairs = x.rotated / 2;
    if (i >= pairs || !x.halves) return {2 * i, 2 * i + 1};
    return {i, i + pairs};
}

const float HALF_END = 65520; // this and what is larger is rounded to infinity as fp16

// Where elements of k and v go: to the cache as they come, or through shared memory, since the
// scale of 32 elements needs all of them.
struct stored_halves {
    static __device__ inline bool holds(float size) { return size < HALF_END; }
    static __device__ inline void element(const heads_arguments &x, int head, int position,
                                          uint64_t page, int i, float value) {
        const int of = head - x.heads;
        if (of < x.kv_heads) {
            key_at(x.cache, page, of, x.head_size, position, i / KEY_PIECE)[i % KEY_PIECE] =
                __float2half_rn(value);
        } else {
            value_at(x.cache, page, of - x.kv_heads, x.head_size, position)[i] =
                __float2half_rn(value);
        }
    }
    static __device__ inline void finish(const heads_arguments &, int, int, uint64_t) {}
};

struct stored_bytes {
    static __device__ inline bool holds(float size) { return size / 127 < HALF_END; }
    static __device__ inline float *mine() {
        __shared__ float rows[HEADS][HEAD_ELEMENTS];
        return rows[threadIdx.x / WARP];
    }
    static __device__ inline void element(const heads_arguments &, int, int, uint64_t, int i,
                                          float value) {
        mine()[i] = value;
    }
    // A lane has an element of each 32; the largest of them becomes 127.
    static __device__ inline void finish(const heads_arguments &x, int head, int position,
                                         uint64_t page) {
        const int lane = threadIdx.x % WARP, of = head - x.heads;
        const bool is_key = of < x.kv_heads;
        const int own = is_key ? of : of - x.kv_heads;
        __half *scales = scales_at(page, is_key ? x.cache.key_scales_at : x.cache.value_scales_at,
                                   own, x.head_size, position);
        __syncwarp(); // all elements of the head are there
        for (int block = 0; block < x.head_size / SCALED; block++) {
            const int i = block * SCALED + lane;
            const float value = mine()[i], scale = warp_max(fabsf(value)) / 127;
            const int byte = scale > 0 ? (int)roundf(value / scale) : 0;
            if (is_key) {
                key_bytes_at(x.cache, page, own, x.head_size, position,
                             i / KEY_PIECE)[i % KEY_PIECE] = (int8_t)byte;
            } else {
                value_bytes_at(x.cache, page, own, x.head_size, position)[i] = (int8_t)byte;
            }
            if (lane == 0) scales[block] = __float2half_rn(scale);
        }
    }
};

// Makes head `head` of a row ready: its lanes call take(i, value) for each element. A warp calls
// it.
template <class TAKE>
__device__ inline void make_ready(const heads_arguments &x, int head, int position,
                                  const float *own, TAKE take) {
    const int lane = threadIdx.x % WARP;
    const bool is_value = head >= x.heads + x.kv_heads;
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
        take(at.x, a);
        take(at.y, b);
    }
}

// A lane's elements of a head of k or v, which it stores, and whether the cache can hold them.
template <class STORED> struct head_store {
    const heads_arguments &x;
    int row, head, position;
    uint64_t page;
    bool fits = true, is_finite = true;

    __device__ inline void element(int i, float value) {
        STORED::element(x, head, position, page, i, value);
        fits &= STORED::holds(fabsf(value)); // NaN is not less than anything
        is_finite &= fabsf(value) < INFINITY;
    }
    __device__ inline void finish() {
        STORED::finish(x, head, position, page);
        if (x.notices == 0 || fits) return;
        const int slot = ((const int *)x.cache.slots)[row];
        atomicMin((unsigned long long *)x.notices + slot,
                  (uint64_t)x.layer << NOTICE_LAYER_BIT |
                      (uint64_t)position << NOTICE_POSITION_BIT |
                      (head >= x.heads + x.kv_heads ? NOTICE_VALUE : 0) |
                      (is_finite ? 0 : NOTICE_NOT_FINITE));
    }
};

template <class STORED> __device__ inline void heads_ready(const heads_arguments &x) {
    const int head = blockIdx.x * HEADS + threadIdx.x / WARP, row = blockIdx.y;
    if (head >= x.heads + 2 * x.kv_heads) return pdl_wait();
    const int position = ((const int *)x.cache.positions)[row];
    const uint64_t page = head < x.heads ? 0 : pages_of(x.cache, row)[position / PAGE];
    float *own = (float *)x.rows_at + row * x.row_stride + (uint64_t)head * x.head_size;
    pdl_release();
    pdl_wait(); // positions, slots and pages were there before
    if (head < x.heads) {
        make_ready(x, head, position, own, [&](int i, float value) { own[i] = value; });
    } else {
        head_store<STORED> store = {x, row, head, position, page};
        make_ready(x, head, position, own, [&](int i, float value) { store.element(i, value); });
        store.finish();
    }
}
