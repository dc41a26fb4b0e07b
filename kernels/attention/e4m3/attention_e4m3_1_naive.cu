// attention over numbers of 8 bits, step 1: a warp for each row of q.
//
// The idea: attention_1_naive, which converts elements to floats as it reads them.
// Owner: block (t, h, b) owns blockDim.y rows of one head of batch b, one per warp.
// Bound by: reads of k and v, which are repeated for every row of q.
// Requires: blockDim = (32, rows, 1), gridDim = (rows of q / rows, rounded up; heads; batches);
// head_size at most 256; any alignment.
#include "../forward/attention_naive.cuh"
#include "../../e4m3.cuh"
#include "attention_e4m3.cuh"

struct e4m3_walk {
    const attention_arguments &x;
    const e4m3 *k, *v;
    float scale;

    __device__ inline e4m3_walk(const attention_arguments &x, int batch, int head, float scale)
        : x(x), k(attention_row<e4m3>(x.k, x.k_strides, batch, head / x.group, 0)),
          v(attention_row<e4m3>(x.v, x.v_strides, batch, head / x.group, 0)), scale(scale) {}
    __device__ inline void begin(int key) {
        k += key * x.k_strides.row, v += key * x.v_strides.row;
    }
    __device__ inline void arrive() {}
    __device__ inline void advance() { k += x.k_strides.row, v += x.v_strides.row; }
    __device__ inline float key(int d) const { return to_float(k[d]); }
    __device__ inline float value(int d) const { return to_float(v[d]) * scale; }
};

template <typename OUT>
__device__ inline void attention_e4m3_naive(const attention_e4m3_arguments &p) {
    const int head = blockIdx.y, batch = blockIdx.z;
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= p.x.q_length) return;
    const attention_arguments x = scaled_for(p, batch, head);
    attention_naive_row<OUT, e4m3_walk, e4m3>(x, batch, head, row, value_scale_of(p, batch, head));
}

extern "C" __global__ void attention_e4m3_naive_f16(attention_e4m3_arguments p) {
    attention_e4m3_naive<__half>(p);
}
extern "C" __global__ void attention_e4m3_naive_bf16(attention_e4m3_arguments p) {
    attention_e4m3_naive<__nv_bfloat16>(p);
}
