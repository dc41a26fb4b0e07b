// Attention of one row of q, or a few: memory-bound, so keys and values are spread over as many
// threads as there are. Block (s, h, r) has share s of the keys for head h of row r; its warps take
// keys in turns, and in a warp LANES lanes have a key, 16 bytes each at a time, so that a load is
// as wide as it can be. Each group of lanes has an online softmax of its own, and they are merged:
// in the warp, in the block, and, where the keys were shared among blocks, by attention_5_combine.
#include "attention.cuh"

enum { DECODE_WARPS = 4, ABREAST = 4 }; // keys that a group has on the way at a time

template <typename T> constexpr int PIECE = 16 / (int)sizeof(T);

template <typename T> __device__ inline float piece_element(uint4 bytes, int i);
template <> __device__ inline float piece_element<float>(uint4 bytes, int i) {
    return __uint_as_float(i == 0 ? bytes.x : i == 1 ? bytes.y : i == 2 ? bytes.z : bytes.w);
}
__device__ inline uint16_t piece_half(uint4 bytes, int i) {
    const uint32_t word = i < 2 ? bytes.x : i < 4 ? bytes.y : i < 6 ? bytes.z : bytes.w;
    return (uint16_t)(word >> i % 2 * 16);
}
template <> __device__ inline float piece_element<__half>(uint4 bytes, int i) {
    return __half2float(__ushort_as_half(piece_half(bytes, i)));
}
template <> __device__ inline float piece_element<__nv_bfloat16>(uint4 bytes, int i) {
    return __uint_as_float((uint32_t)piece_half(bytes, i) << 16);
}

__host__ __device__ constexpr int lanes_of(int pieces) {
    return pieces > 16 ? 32 : pieces > 8 ? 16 : 8;
}

// The softmax of some keys: the largest score, the sum of weights, and of weights times values.
template <int PIECES, int N> struct part {
    float largest, sum, sums[PIECES][N];

    // Scales the sums to a maximum, that of this part or larger.
    __device__ void raise(float most) {
        const float grown = exp2f(largest - finite_base(most));
        largest = most;
        sum *= grown;
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
#pragma unroll
            for (int i = 0; i < N; i++) sums[p][i] *= grown;
        }
    }
};

template <typename T, int D> __device__ inline void attention_decode(const attention_arguments &x) {
    constexpr int N = PIECE<T>, ALL = D / N, LANES = lanes_of(ALL), PIECES = ceil_div(ALL, LANES);
    constexpr int GROUPS = WARP / LANES, STEP = DECODE_WARPS * GROUPS;
    __shared__ float merged[DECODE_WARPS][D + 2];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, own = lane % LANES;
    const int split = blockIdx.x, head = blockIdx.y;
    const int row = blockIdx.z % x.q_length, batch = blockIdx.z / x.q_length;
    const T *q = attention_row<T>(x.q, x.q_strides, batch, head, row);
    const T *k = attention_row<T>(x.k, x.k_strides, batch, head / x.group, 0);
    const T *v = attention_row<T>(x.v, x.v_strides, batch, head / x.group, 0);
    float query[PIECES][N];
    part<PIECES, N> mine = {-INFINITE, 0, {}};
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const int piece = p * LANES + own;
        const uint4 bytes = piece < ALL ? ((const uint4 *)q)[piece] : uint4{};
#pragma unroll
        for (int i = 0; i < N; i++) query[p][i] = piece_element<T>(bytes, i) * x.scale_log2;
    }
    const int seen = keys_seen(x, row), each = ceil_div(seen, x.splits);
    const int begin = min(seen, split * each), end = min(seen, begin + each);
    for (int at = begin + warp * GROUPS; at < end; at += STEP * ABREAST) {
        uint4 keys[ABREAST][PIECES], values[ABREAST][PIECES];
        float scores[ABREAST], most = mine.largest;
#pragma unroll
        for (int a = 0; a < ABREAST; a++) {
            const int key = at + a * STEP + lane / LANES;
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                const int piece = p * LANES + own;
                const bool there = key < end && piece < ALL;
                const uint4 *key_row = (const uint4 *)(k + key * x.k_strides.row);
                const uint4 *value_row = (const uint4 *)(v + key * x.v_strides.row);
                keys[a][p] = there ? key_row[piece] : uint4{};
                values[a][p] = there ? value_row[piece] : uint4{};
            }
        }
#pragma unroll
        for (int a = 0; a < ABREAST; a++) {
            float score = 0;
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
#pragma unroll
                for (int i = 0; i < N; i++) {
                    score = fmaf(query[p][i], piece_element<T>(keys[a][p], i), score);
                }
            }
            for (int lanes = LANES / 2; lanes > 0; lanes /= 2) {
                score += __shfl_xor_sync(~0u, score, lanes);
            }
            scores[a] = at + a * STEP + lane / LANES < end ? score : -INFINITE;
            most = fmaxf(most, scores[a]);
        }
        mine.raise(most);
#pragma unroll
        for (int a = 0; a < ABREAST; a++) {
            const float weight = exp2f(scores[a] - finite_base(most));
            mine.sum += weight;
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
#pragma unroll
                for (int i = 0; i < N; i++) {
                    mine.sums[p][i] =
                        fmaf(weight, piece_element<T>(values[a][p], i), mine.sums[p][i]);
                }
            }
        }
    }
    // The groups of the warp: lanes that have the same elements lie LANES apart.
    float most = mine.largest;
    for (int lanes = LANES; lanes < WARP; lanes *= 2) {
        most = fmaxf(most, __shfl_xor_sync(~0u, most, lanes));
    }
    mine.raise(most);
    for (int lanes = LANES; lanes < WARP; lanes *= 2) {
        mine.sum += __shfl_xor_sync(~0u, mine.sum, lanes);
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
#pragma unroll
            for (int i = 0; i < N; i++) {
                mine.sums[p][i] += __shfl_xor_sync(~0u, mine.sums[p][i], lanes);
            }
        }
    }
    if (lane < LANES) {
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const int piece = p * LANES + own;
#pragma unroll
            for (int i = 0; i < N; i++) {
                if (piece < ALL) merged[warp][piece * N + i] = mine.sums[p][i];
            }
        }
        if (lane == 0) merged[warp][D] = mine.largest, merged[warp][D + 1] = mine.sum;
    }
    __syncthreads(); // the warps' parts are there
    float largest = -INFINITE, sum = 0, grown[DECODE_WARPS];
#pragma unroll
    for (int w = 0; w < DECODE_WARPS; w++) largest = fmaxf(largest, merged[w][D]);
#pragma unroll
    for (int w = 0; w < DECODE_WARPS; w++) {
        grown[w] = exp2f(merged[w][D] - finite_base(largest));
        sum = fmaf(merged[w][D + 1], grown[w], sum);
    }
    const long long index = ((long long)batch * x.heads + head) * x.q_length + row;
    const long long rows = (long long)x.batch * x.heads * x.q_length;
    float *part = (float *)x.part + (split * rows + index) * (D + 1);
    T *out = (T *)attention_row<T>(x.out, x.out_strides, batch, head, row);
    for (int d = threadIdx.x; d < D; d += DECODE_WARPS * WARP) {
        float value = 0;
#pragma unroll
        for (int w = 0; w < DECODE_WARPS; w++) value = fmaf(merged[w][d], grown[w], value);
        value *= share_of(sum);
        if (x.splits == 1) {
            out[d] = from_float<T>(value);
        } else {
            part[d] = value;
        }
    }
    if (threadIdx.x != 0) return;
    if (x.splits == 1) {
        store_lse(x, batch, head, row, largest, sum);
    } else {
        part[D] = sum == 0 ? -INFINITE : largest + log2f(sum);
    }
}

#define ATTENTION_DECODE(name, T, d)                                                               \
    extern "C" __global__ void __launch_bounds__(DECODE_WARPS *WARP)                               \
        attention_decode_##name##_##d(attention_arguments x) {                                     \
        attention_decode<T, d>(x);                                                                 \
    }
#define ATTENTION_DECODE_OF(name, T)                                                               \
    ATTENTION_DECODE(name, T, 64)                                                                  \
    ATTENTION_DECODE(name, T, 80)                                                                  \
    ATTENTION_DECODE(name, T, 96)                                                                  \
    ATTENTION_DECODE(name, T, 128)                                                                 \
    ATTENTION_DECODE(name, T, 256)
ATTENTION_DECODE_OF(f32, float)
ATTENTION_DECODE_OF(f16, __half)
ATTENTION_DECODE_OF(bf16, __nv_bfloat16)
