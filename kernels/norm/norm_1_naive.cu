// norm, step 1: a warp for each row, in three passes.
//
// layernorm: out[r][c] = (in[r][c] - mean_r) / sqrt(var_r + epsilon) * weight[c] + bias[c], where
// var_r = (sum_c (in[r][c] - mean_r)^2) / columns. RMSNorm: the same with mean_r = 0.
//
// The idea: none; this is the definition. Each pass reads the row again.
// Owner: a warp owns row r, lane l its columns l, l + 32, ...
// Bound by: three reads of 2 or 4 bytes per element.
// Requires: blockDim = (32, rows of a block, 1), gridDim.x = rows / rows of a block, rounded up;
// any length, any alignment.
#include "norm.cuh"

template <typename T> __device__ inline void norm_naive(const norm_arguments &x) {
    const long long row = row_of_thread();
    if (row >= x.rows) return;
    const T *in = (const T *)x.in + row * x.in_stride;
    T *out = (T *)x.out + row * x.out_stride;
    float mean = 0, square = 0;
    if (x.centred) {
        for (long long c = threadIdx.x; c < x.columns; c += WARP) mean += to_float(in[c]);
        mean = warp_sum(mean) / (float)x.columns;
    }
    for (long long c = threadIdx.x; c < x.columns; c += WARP) {
        const float d = to_float(in[c]) - mean;
        square = fmaf(d, d, square);
    }
    const float share = norm_share(warp_sum(square), x);
    for (long long c = threadIdx.x; c < x.columns; c += WARP) {
        out[c] = from_float<T>(norm_affine<T>((to_float(in[c]) - mean) * share, c, x));
    }
}

extern "C" __global__ void norm_naive_f32(norm_arguments x) {
    norm_naive<float>(x);
}
extern "C" __global__ void norm_naive_f16(norm_arguments x) {
    norm_naive<__half>(x);
}
extern "C" __global__ void norm_naive_bf16(norm_arguments x) {
    norm_naive<__nv_bfloat16>(x);
}
