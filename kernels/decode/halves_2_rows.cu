// halves, step 2: rows of floats as halves, between the products of a prompt.
//
// The idea: one pass does all that a row needs between two products, and the row stays in
// registers. norm adds the sums of the preceding product, stores the row, and makes the halves of
// its norm; gated makes silu(g) u, finds the largest, and scales the row by a power of two so that
// no half is infinite, however large the row.
// Owner: block r owns row r; thread t the groups of four elements t, t + THREADS, ...
// Bound by: reads and writes of the rows.
// Requires: blockDim = (512, 1, 1), gridDim.x = rows; columns in fours, up to 2048 GROUPS; rows at
// multiples of 16 bytes, and of halves of 8.
#include "../quantised/formats/weights.cuh"

#include "halves_arguments.h"

enum { THREADS = HALVES_ROW_THREADS };

__device__ inline float4 operator*(const float4 &x, float by) {
    return {x.x * by, x.y * by, x.z * by, x.w * by};
}
__device__ inline uint2 halves_of(const float4 &x) {
    const __half2 low = __floats2half2_rn(x.x, x.y), high = __floats2half2_rn(x.z, x.w);
    return {*(const uint32_t *)&low, *(const uint32_t *)&high};
}

// Joins a value of each thread, for all threads; in the same order for every row.
template <typename F> __device__ inline float join(float value, float none, F both) {
    __shared__ float parts[THREADS / WARP];
#pragma unroll
    for (int i = WARP / 2; i > 0; i /= 2) value = both(value, __shfl_xor_sync(~0u, value, i));
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = value;
    __syncthreads();
    value = threadIdx.x % WARP < THREADS / WARP ? parts[threadIdx.x % WARP] : none;
#pragma unroll
    for (int i = WARP / 2; i > 0; i /= 2) value = both(value, __shfl_xor_sync(~0u, value, i));
    return value;
}

template <int GROUPS> __device__ inline void norm(const halves_rows_arguments &a) {
    const uint32_t row = blockIdx.x, groups = a.columns / 4;
    float4 *x = (float4 *)a.x + (uint64_t)row * groups, mine[GROUPS];
    const float4 *sums = (const float4 *)a.sums + (uint64_t)row * groups;
    const float by = a.scales != 0 ? ((const float *)a.scales)[row] : 1;
    float squares = 0;
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
        const uint32_t at = i * THREADS + threadIdx.x;
        if (at >= groups) continue;
        float4 m = x[at];
        if (a.sums != 0) {
            const float4 s = sums[at];
            m = {fmaf(s.x, by, m.x), fmaf(s.y, by, m.y), fmaf(s.z, by, m.z), fmaf(s.w, by, m.w)};
            x[at] = m;
        }
        squares = fmaf(m.x, m.x, fmaf(m.y, m.y, fmaf(m.z, m.z, fmaf(m.w, m.w, squares))));
        mine[i] = m;
    }
    if (a.weight == 0) return; // all threads
    squares = join(squares, 0, [](float p, float q) { return p + q; });
    const float share = a.scale / sqrtf(squares / (float)a.columns + a.epsilon);
    const float4 *weight = (const float4 *)a.weight;
    uint2 *out = (uint2 *)a.out + (uint64_t)row * groups;
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
        const uint32_t at = i * THREADS + threadIdx.x;
        if (at >= groups) continue;
        const float4 w = weight[at], m = mine[i] * share;
        out[at] = halves_of({m.x * w.x, m.y * w.y, m.z * w.z, m.w * w.w});
    }
}

__device__ inline float gate(float g, float u) {
    return g / (1 + expf(-g)) * u;
}
// A power of two by which a row whose largest size is this fits halves: to 2^14 and below 2^15.
// None if nothing can be done: an infinite element, or a NaN, makes its row NaN anyway.
__device__ inline int fitting(float most) {
    if (!(most > 0) || most > 3e38f) return 0;
    const int exponent = (int)(__float_as_uint(most) >> 23) - 127; // -127 for the smallest
    return min(max(14 - exponent, -126), 126);
}
__device__ inline float power_of_two(int exponent) {
    return __uint_as_float((uint32_t)(exponent + 127) << 23);
}

template <int GROUPS> __device__ inline void gated(const halves_rows_arguments &a) {
    const uint32_t row = blockIdx.x, groups = a.columns / 4;
    const float4 *gates = (const float4 *)a.x + (uint64_t)row * 2 * groups, *ups = gates + groups;
    float4 mine[GROUPS];
    float most = 0;
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
        const uint32_t at = i * THREADS + threadIdx.x;
        if (at >= groups) continue;
        const float4 g = gates[at], u = ups[at];
        mine[i] = {gate(g.x, u.x), gate(g.y, u.y), gate(g.z, u.z), gate(g.w, u.w)};
        const float4 m = mine[i];
        most = fmaxf(fmaxf(fmaxf(fabsf(m.x), fabsf(m.y)), fmaxf(fabsf(m.z), fabsf(m.w))), most);
    }
    most = join(most, 0, [](float p, float q) { return fmaxf(p, q); });
    const int exponent = fitting(most);
    uint2 *out = (uint2 *)a.out + (uint64_t)row * groups;
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
        const uint32_t at = i * THREADS + threadIdx.x;
        if (at < groups) out[at] = halves_of(mine[i] * power_of_two(exponent));
    }
    if (threadIdx.x == 0) ((float *)a.scales)[row] = power_of_two(-exponent);
}

#define ROWS(groups)                                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        halves_norm_##groups(halves_rows_arguments a) {                                            \
        norm<groups>(a);                                                                           \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        halves_gated_##groups(halves_rows_arguments a) {                                           \
        gated<groups>(a);                                                                          \
    }
ROWS(2)
ROWS(8)
ROWS(16)
