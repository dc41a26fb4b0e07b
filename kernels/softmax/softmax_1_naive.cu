// softmax, step 1: a warp for each row, in three passes.
//
// out[r][c] = exp(s[c] - m) / sum_c exp(s[c] - m), where s[c] = scale * in[r][c], or minus infinity
// where mask[r][c] is 0, and m is the largest of s.
//
// The idea: none; this is the definition. Each pass reads the row again.
// Owner: a warp owns row r, lane l its columns l, l + 32, ...
// Bound by: three reads of 2 or 4 bytes per element, and expf twice.
// Requires: blockDim = (32, rows of a block, 1), gridDim.x = rows / rows of a block, rounded up;
// any length, any alignment.
#include "../row/row.cuh"

template <typename T> __device__ inline void softmax_naive(const softmax_arguments &x) {
    const long long row = row_of_thread();
    if (row >= x.rows) return;
    const T *in = (const T *)x.in + row * x.in_stride;
    T *out = (T *)x.out + row * x.out_stride;
    const uint8_t *mask =
        x.mask == nullptr ? nullptr : (const uint8_t *)x.mask + row * x.mask_stride;
    auto element = [&](long long c) {
        const bool counts = mask == nullptr || mask[c] != 0;
        return counts ? x.scale * to_float(in[c]) : -INFINITE;
    };
    float largest = -INFINITE, sum = 0;
    for (long long c = threadIdx.x; c < x.columns; c += WARP) largest = fmaxf(largest, element(c));
    largest = warp_max(largest);
    // A row in which no element counts becomes zeros, and not 0 / 0.
    const float base = largest == -INFINITE ? 0 : largest;
    for (long long c = threadIdx.x; c < x.columns; c += WARP) sum += expf(element(c) - base);
    sum = warp_sum(sum);
    const float share = sum == 0 ? 0 : 1 / sum;
    for (long long c = threadIdx.x; c < x.columns; c += WARP) {
        out[c] = from_float<T>(expf(element(c) - base) * share);
    }
}

extern "C" __global__ void softmax_naive_f32(softmax_arguments x) {
    softmax_naive<float>(x);
}
extern "C" __global__ void softmax_naive_f16(softmax_arguments x) {
    softmax_naive<__half>(x);
}
extern "C" __global__ void softmax_naive_bf16(softmax_arguments x) {
    softmax_naive<__nv_bfloat16>(x);
}
