// attention, step 5: merges the parts of blocks that split the keys.
//
// out[b][h][i][d] = sum_s w[s] part[s][d] / sum_s w[s], where part[s] is row i of out over share s
// alone, and w[s] = 2^part[s][head_size] is the sum of weights of that share.
//
// The idea: attention_4_decode and attention_6_grouped write rows that are right for their share,
// with the binary logarithm of the sum of weights after each row. The largest logarithm is
// subtracted first, as in softmax.
// Owner: block (h, r) owns one row of out; thread t owns elements t, t + blockDim.x, ...
// Bound by: reads of splits * (head_size + 1) floats a row of out.
// Requires: gridDim = (heads, batch * q_length, 1), any blockDim.x.
#include "attention.cuh"

template <typename T> __device__ inline void attention_combine(const attention_arguments &x) {
    const int head = blockIdx.x, row = blockIdx.y % x.q_length, batch = blockIdx.y / x.q_length;
    const long long rows = (long long)x.batch * x.heads * x.q_length;
    const long long index = ((long long)batch * x.heads + head) * x.q_length + row;
    const int width = x.head_size + 1;
    const float *part = (const float *)x.part + index * width;
    float largest = -INFINITE, sum = 0;
#pragma unroll 8
    for (int s = 0; s < x.splits; s++) {
        largest = fmaxf(largest, part[s * rows * width + x.head_size]);
    }
    const float base = finite_base(largest);
    T *out = (T *)attention_row<T>(x.out, x.out_strides, batch, head, row);
    for (int d = threadIdx.x; d < x.head_size; d += blockDim.x) {
        float value = 0;
        sum = 0;
#pragma unroll 8
        for (int s = 0; s < x.splits; s++) {
            const float *one = part + s * rows * width;
            const float weight = exp2f(one[x.head_size] - base);
            sum += weight;
            value = fmaf(weight, one[d], value);
        }
        out[d] = from_float<T>(value * share_of(sum));
    }
    if (threadIdx.x == 0) store_lse(x, batch, head, row, largest, sum);
}

extern "C" __global__ void attention_combine_f32(attention_arguments x) {
    attention_combine<float>(x);
}
extern "C" __global__ void attention_combine_f16(attention_arguments x) {
    attention_combine<__half>(x);
}
extern "C" __global__ void attention_combine_bf16(attention_arguments x) {
    attention_combine<__nv_bfloat16>(x);
}
