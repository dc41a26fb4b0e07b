// attention's backward pass, step 1: a warp for each row of d_q, and for each row of d_k and d_v.
//
// The formulas are those of attention_backward.cuh.
//
// The idea: attention_figures, the prologue, reduces what is needed of each row of q to two
// floats. Then no warp needs a sum of another: the warp of a row of q iterates over the keys that
// the row sees, and the warp of a key over the rows that see it, of all heads that share the key.
// Each score is computed twice, and sums have one order: there are no atomics, and the bits are
// always the same.
// Owner: attention_figures: a warp owns the figures of a row of q. attention_backward_naive: warp i
// owns key i of all heads of k, and the warps after those own the rows of q; lane l owns elements
// l, l + 32, ...
// Bound by: reads of rows, which are repeated for every warp.
// Requires: attention_figures: blockDim = (32, rows, 1), gridDim = (figures_pitch / rows, heads,
// batch). attention_backward_naive: blockDim = (32, rows, 1), gridDim.x = keys and rows of all
// heads / rows, rounded up. head_size at most 256; any alignment.
#include "attention_backward.cuh"

template <typename T>
__device__ inline void attention_figures(const attention_backward_arguments &b) {
    const attention_arguments &x = b.x;
    const int lane = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y;
    const int head = blockIdx.y, batch = blockIdx.z;
    const long long heads = (long long)batch * x.heads + head;
    float delta = 0, base = INFINITE;
    if (row < x.q_length) {
        const T *out = attention_row<T>(x.out, x.out_strides, batch, head, row);
        const T *d_out = attention_row<T>(b.d_out, b.d_out_strides, batch, head, row);
        for (int d = lane; d < x.head_size; d += WARP) {
            delta = fmaf(to_float(out[d]), to_float(d_out[d]), delta);
        }
        delta = warp_sum(delta);
        const float lse = ((const float *)x.lse)[heads * x.q_length + row];
        base = lse == -INFINITE ? INFINITE : lse * (1 / LN_2);
    }
    if (lane == 0) ((float2 *)b.figures)[heads * b.figures_pitch + row] = {base, delta};
}

// A row of elements, or the sums of one, over a warp.
struct spread_row {
    static constexpr int MOST = 256 / WARP;
    float of[MOST];

    template <typename T> __device__ inline void load(const T *row, int head_size) {
#pragma unroll
        for (int i = 0; i < MOST; i++) {
            const int d = i * WARP + threadIdx.x;
            of[i] = d < head_size ? to_float(row[d]) : 0;
        }
    }
    __device__ inline void clear() {
#pragma unroll
        for (int i = 0; i < MOST; i++) of[i] = 0;
    }
    __device__ inline float times(const spread_row &other) const {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < MOST; i++) sum = fmaf(of[i], other.of[i], sum);
        return warp_sum(sum);
    }
    __device__ inline void add(float factor, const spread_row &other) {
#pragma unroll
        for (int i = 0; i < MOST; i++) of[i] = fmaf(factor, other.of[i], of[i]);
    }
    template <typename T> __device__ inline void store(T *row, int head_size, float scale) const {
#pragma unroll
        for (int i = 0; i < MOST; i++) {
            const int d = i * WARP + threadIdx.x;
            if (d < head_size) row[d] = from_float<T>(of[i] * scale);
        }
    }
};

// The weight of a pair of a row and a key, and the gradient of its score.
struct pair_of {
    float weight, gradient;
    __device__ inline pair_of(const attention_backward_arguments &b, const spread_row &q,
                              const spread_row &k, const spread_row &v, const spread_row &d_out,
                              float2 figures) {
        weight = exp2f(fmaf(q.times(k), b.x.scale_log2, -figures.x));
        gradient = weight * (d_out.times(v) - figures.y);
    }
};

template <typename T>
__device__ inline void gradient_of_row(const attention_backward_arguments &b, long long index) {
    const attention_arguments &x = b.x;
    const int row = (int)(index % x.q_length), head = (int)(index / x.q_length % x.heads);
    const long long batch_of = index / x.q_length / x.heads;
    if (batch_of >= x.batch) return;
    const int batch = (int)batch_of;
    spread_row q, k, v, d_out, sum;
    q.load(attention_row<T>(x.q, x.q_strides, batch, head, row), x.head_size);
    d_out.load(attention_row<T>(b.d_out, b.d_out_strides, batch, head, row), x.head_size);
    sum.clear();
    const float2 figures =
        ((const float2 *)b.figures)[((long long)batch * x.heads + head) * b.figures_pitch + row];
    for (int key = first_key_seen(x, row); key < keys_seen(x, row); key++) {
        k.load(attention_row<T>(x.k, x.k_strides, batch, head / x.group, key), x.head_size);
        v.load(attention_row<T>(x.v, x.v_strides, batch, head / x.group, key), x.head_size);
        sum.add(pair_of(b, q, k, v, d_out, figures).gradient, k);
    }
    sum.store((T *)attention_row<T>(b.d_q, b.d_q_strides, batch, head, row), x.head_size, b.scale);
}

template <typename T>
__device__ inline void gradient_of_key(const attention_backward_arguments &b, long long index) {
    const attention_arguments &x = b.x;
    const int kv_heads = x.heads / x.group;
    const int key = (int)(index % x.kv_length), kv_head = (int)(index / x.kv_length % kv_heads);
    const int batch = (int)(index / x.kv_length / kv_heads);
    spread_row q, k, v, d_out, d_k, d_v;
    k.load(attention_row<T>(x.k, x.k_strides, batch, kv_head, key), x.head_size);
    v.load(attention_row<T>(x.v, x.v_strides, batch, kv_head, key), x.head_size);
    d_k.clear(), d_v.clear();
    const rows_that_see rows = rows_of_keys(x, key, key);
    for (int head = kv_head * x.group; head < (kv_head + 1) * x.group; head++) {
        const float2 *figures =
            (const float2 *)b.figures + ((long long)batch * x.heads + head) * b.figures_pitch;
        for (int row = rows.begin; row < rows.end; row++) {
            q.load(attention_row<T>(x.q, x.q_strides, batch, head, row), x.head_size);
            d_out.load(attention_row<T>(b.d_out, b.d_out_strides, batch, head, row), x.head_size);
            const pair_of pair(b, q, k, v, d_out, figures[row]);
            d_v.add(pair.weight, d_out);
            d_k.add(pair.gradient, q);
        }
    }
    d_k.store((T *)attention_row<T>(b.d_k, b.d_k_strides, batch, kv_head, key), x.head_size,
              b.scale);
    d_v.store((T *)attention_row<T>(b.d_v, b.d_v_strides, batch, kv_head, key), x.head_size, 1);
}

template <typename T>
__device__ inline void attention_backward_naive(const attention_backward_arguments &b) {
    const long long index = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    const long long keys = (long long)b.x.batch * (b.x.heads / b.x.group) * b.x.kv_length;
    if (index < keys) {
        gradient_of_key<T>(b, index);
    } else {
        gradient_of_row<T>(b, index - keys);
    }
}

#define ATTENTION_BACKWARD_NAIVE(name, T)                                                          \
    extern "C" __global__ void attention_figures_##name(attention_backward_arguments b) {          \
        attention_figures<T>(b);                                                                   \
    }                                                                                              \
    extern "C" __global__ void attention_backward_naive_##name(attention_backward_arguments b) {   \
        attention_backward_naive<T>(b);                                                            \
    }
ATTENTION_BACKWARD_NAIVE(f32, float)
ATTENTION_BACKWARD_NAIVE(f16, __half)
ATTENTION_BACKWARD_NAIVE(bf16, __nv_bfloat16)
