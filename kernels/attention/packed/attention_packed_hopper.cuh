// attention over packed sequences by the pipeline of attention_hopper.cuh.
//
// The idea: the maps describe the rows of all sequences, so boxes begin at rows of one sequence and
// may end in the next. Its keys are masked; its values become zeros in shared memory before they are
// multiplied; of a box of out whose rows are not all the sequence's own, these leave from shared
// memory as pieces of 16 bytes. Zeros and masks are what a map of the one sequence gives, so its bits
// are those of attention_7_hopper.
// Owner: block (t, h, s) owns tile t of the rows of one head of sequence s, with causal the last
// tile first. Bound and requirements: as attention_hopper.cuh says, except that a sequence may have
// no key, and gridDim = (tiles of the longest sequence, heads, sequences).
#pragma once

#include "../forward/attention_hopper.cuh"
#include "attention_packed.cuh"

#if __CUDA_ARCH__ >= 900
template <typename T, int D, attention_behind BEHIND>
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
    attention_hopper<T, D, BEHIND>(x, q, k, v, out, rows.begin, first_key);
}

#define PACKED_HOPPER(name, T, D, BEHIND)                                                          \
    extern "C" __global__ void __launch_bounds__(attention_shape<D>::THREADS, 1)                   \
        attention_packed_##name(                                                                   \
            const __grid_constant__ tensor_map q, const __grid_constant__ tensor_map k,            \
            const __grid_constant__ tensor_map v, const __grid_constant__ tensor_map out,          \
            const __grid_constant__ attention_packed_arguments p) {                                \
        attention_packed_hopper<T, D, BEHIND>(p, &q, &k, &v, &out);                                \
    }
#endif
