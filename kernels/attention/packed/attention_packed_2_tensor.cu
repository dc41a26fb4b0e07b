// attention over packed sequences, step 2: fp16 and bf16 on tensor cores.
// Target: compute_80
//
// The idea: attention_3_tensor for the rows of one sequence. Blocks after its last row end at once,
// so a short sequence costs only its own tiles.
// Owner: block (t, h, s) owns tile t of the rows of one head of sequence s, with causal the last
// tile first. Bound and requirements: as attention_tensor.cuh says, with four warps, and gridDim =
// (tiles of the longest sequence, heads, sequences).
#include "../forward/attention_tensor.cuh"
#include "attention_packed.cuh"

template <typename T, int D, int BANDS, int KEYS>
__device__ inline void attention_packed_tensor(const attention_packed_arguments &p) {
    constexpr int WARPS = 4, QUERIES = WARPS * 16 * BANDS;
    const attention_arguments x = sequence_of<T>(p, blockIdx.z, blockIdx.y);
    const int tile = x.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    if (tile * QUERIES >= x.q_length) return;
    attention_tensor<T, D, BANDS, KEYS, WARPS, SOUND>(x);
}

#define PACKED_TENSOR(name, T, d, bands, keys, blocks)                                             \
    extern "C" __global__ void __launch_bounds__(128, blocks)                                      \
        attention_packed_tensor_##name##_##d(attention_packed_arguments p) {                       \
        attention_packed_tensor<T, d, bands, keys>(p);                                             \
    }
#define PACKED_TENSOR_OF(name, T)                                                                  \
    PACKED_TENSOR(name, T, 64, 2, 128, 2)                                                          \
    PACKED_TENSOR(name, T, 96, 2, 64, 2)                                                           \
    PACKED_TENSOR(name, T, 128, 2, 64, 2)                                                          \
    PACKED_TENSOR(name, T, 256, 1, 32, 2)
PACKED_TENSOR_OF(f16, __half)
PACKED_TENSOR_OF(bf16, __nv_bfloat16)
