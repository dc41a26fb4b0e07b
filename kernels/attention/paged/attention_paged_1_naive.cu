// attention over paged sequences, step 1: a warp for each row of q.
//
// The idea: attention_1_naive, which looks up the page of each key.
// Owner: block (t, h, s) owns blockDim.y rows of one head of sequence s, one per warp.
// Bound by: reads of k and v, which are repeated for every row of q.
// Requires: blockDim = (32, rows, 1), gridDim = (rows of the longest sequence / rows, rounded up;
// heads; sequences); head_size at most 256; any alignment.
#include "../forward/attention_naive.cuh"
#include "attention_paged.cuh"

// Iterates over the keys and values of a sequence. Pages after its last position are not looked up.
template <typename T> struct paged_walk {
    const attention_paged_arguments &p;
    const uint64_t *pages;
    int head, position;
    const T *k, *v;

    __device__ inline paged_walk(const attention_arguments &x, int batch, int head,
                                 const attention_paged_arguments &p)
        : p(p), pages(pages_of(p, batch)), head(head / x.group) {}
    __device__ inline void begin(int key) { position = key; }
    __device__ inline void arrive() {
        const uint64_t page = pages[position >> p.page_shift];
        k = paged_key<T>(p, page, head, position), v = paged_value<T>(p, page, head, position);
    }
    __device__ inline void advance() { position++; }
    __device__ inline float key(int d) const { return to_float(k[d / 8 * p.k_piece + d % 8]); }
    __device__ inline float value(int d) const { return to_float(v[d / 8 * p.v_piece + d % 8]); }
};

template <typename T>
__device__ inline void attention_paged_naive(const attention_paged_arguments &p) {
    const attention_arguments x = paged_sequence_of<T>(p, blockIdx.z, blockIdx.y);
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= x.q_length) return;
    attention_naive_row<T, paged_walk<T>>(x, blockIdx.z, blockIdx.y, row, p);
}

extern "C" __global__ void attention_paged_naive_f32(attention_paged_arguments p) {
    attention_paged_naive<float>(p);
}
extern "C" __global__ void attention_paged_naive_f16(attention_paged_arguments p) {
    attention_paged_naive<__half>(p);
}
extern "C" __global__ void attention_paged_naive_bf16(attention_paged_arguments p) {
    attention_paged_naive<__nv_bfloat16>(p);
}
