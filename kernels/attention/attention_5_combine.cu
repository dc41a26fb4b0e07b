// Puts together what attention_4_decode or attention_6_grouped left of each share of the keys:
// rows of out that are right for the share, and the logarithm of its sum of weights. Block (h, r)
// has head h of row r, and a thread the elements threadIdx.x, threadIdx.x + blockDim.x, ...
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
