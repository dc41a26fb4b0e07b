// grouped, step 1: one thread per element.
//
// The idea: the definition. A thread finds the group of its row, and adds up its products in their
// order.
// Owner: a thread owns one element of C; blocks walk the rows.
// Requires: blockDim = (128, 1, 1), gridDim.x = columns / 128, rounded up; any gridDim.y.
#include "grouped.cuh"

template <typename T> __device__ inline void grouped_naive(const grouped_arguments &x) {
    const int column = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (column >= x.n) return;
    grouped_walk walk(x);
    for (int row = blockIdx.y; row < x.m; row += gridDim.y) {
        if (row < walk.begin) continue;
        while (row >= walk.end && walk.group + 1 < x.groups) {
            walk.group++;
            walk.begin = walk.end;
            walk.end = grouped_walk::bound(x, walk.group + 1, walk.begin);
        }
        if (row >= walk.end) return;
        const T *a = (const T *)x.a + row * x.lda;
        const T *b = (const T *)x.b + walk.group * x.group_b + column * (x.transpose_b ? x.ldb : 1);
        const long long b_step = x.transpose_b ? 1 : x.ldb;
        float sum[1] = {0};
        for (int l = 0; l < x.k; l++) {
            sum[0] = fmaf(to_float(a[l]), to_float(b[l * b_step]), sum[0]);
        }
        grouped_finish<1>(x, grouped_columns<1>(x, walk.group, column), row, column, sum);
    }
}

extern "C" __global__ void __launch_bounds__(128) grouped_naive_f16(grouped_arguments x) {
    grouped_naive<__half>(x);
}
extern "C" __global__ void __launch_bounds__(128) grouped_naive_bf16(grouped_arguments x) {
    grouped_naive<__nv_bfloat16>(x);
}
extern "C" __global__ void __launch_bounds__(128) grouped_naive_e4m3(grouped_arguments x) {
    grouped_naive<e4m3>(x);
}
