// attention over packed sequences by the pipeline of attention_hopper.cuh.
//
// The idea: the tensor maps describe the rows of all sequences, so a box begins at a row of one
// sequence and may end in the next. Keys of the next sequence are masked, and its values are
// overwritten by zeros in shared memory before they are multiplied (0 times NaN is NaN). If a box
// of out contains rows of the next sequence, the sequence's own rows are stored from shared memory
// in pieces of 16 bytes instead. Masks and zeros are what a map of one sequence would give, so the
// bits are those of attention_7_hopper.
// Owner: block (t, h, s) owns tile t of the rows of one head of sequence s, with causal the last
// tile first. Bound and requirements: as attention_hopper.cuh says, except that a sequence may have
// no key, and gridDim = (tiles of the longest sequence, heads, sequences).
#pragma once

#include "../forward/attention_hopper.cuh"
#include "attention_packed.cuh"

#if __CUDA_ARCH__ >= 900
template <typename T, int D, attention_after AFTER>
__device__ inline void attention_packed_hopper(const attention_packed_arguments &p,
                                               const tensor_map *q, const tensor_map *k,
                                               const tensor_map *v, const tensor_map *out) {
    const attention_arguments x = sequence_of<T>(p, blockIdx.z, blockIdx.y);
    const int tile = x.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    if (tile * attention_shape<D>::QUERIES >= x.q_length) return;
    const packed_rows rows = packed_rows_of(p.q_begins, blockIdx.z, p.q_rows, p.x.q_length);
    const packed_rows keys = packed_rows_of(p.kv_begins, blockIdx.z, p.kv_rows, p.x.kv_length);
    // The problem has the last keys of these, all or those that a single row sees.
    const int first_key = keys.begin + keys.count - x.kv_length;
    attention_hopper<T, D, AFTER>(x, q, k, v, out, rows.begin, first_key);
}

#define PACKED_HOPPER(name, T, D, AFTER)                                                          \
    extern "C" __global__ void __launch_bounds__(attention_shape<D>::THREADS, 1)                   \
        attention_packed_##name(                                                                   \
            const __grid_constant__ tensor_map q, const __grid_constant__ tensor_map k,            \
            const __grid_constant__ tensor_map v, const __grid_constant__ tensor_map out,          \
            const __grid_constant__ attention_packed_arguments p) {                                \
        attention_packed_hopper<T, D, AFTER>(p, &q, &k, &v, &out);                                \
    }
#endif
