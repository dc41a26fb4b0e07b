// Attention of one row of q, or a few: the steps of attention_4_decode.
//
// The idea: nothing reuses keys and values, so they are spread over all threads. In a warp, LANES
// lanes share a key and load 16 bytes each, the widest load there is, and each group of lanes has
// ABREAST keys and values in flight. Each group runs its own online softmax. The parts of the
// groups are merged in the warp, those of the warps in the block, and those of blocks that split
// the keys by attention_5_combine.
// Owner: block (s, h, r) owns part s of the keys, for head h and row r of q; its warps take the
// keys of the part in turn.
// Bound by: reads of k and v.
// Requires: blockDim = (32 DECODE_WARPS, 1, 1), gridDim = (splits, heads, batch * q_length); the
// head size is D; each row of q, k, v and out begins at a multiple of 16 bytes.
#pragma once

#include "attention.cuh"

enum { DECODE_WARPS = 4, DECODE_THREADS = DECODE_WARPS * WARP };
enum { ABREAST = 4 }; // keys that a group has in flight

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

// The lanes that share a key of `pieces` pieces.
__host__ __device__ constexpr int lanes_of(int pieces) {
    return pieces > 16 ? 32 : pieces > 8 ? 16 : 8;
}

// How a row of D elements is spread: N elements per piece, ALL pieces and LANES lanes per row,
// PIECES pieces per lane; GROUPS rows per warp and STEP rows per block at a time.
template <typename T, int D> struct decode_spread {
    static constexpr int N = PIECE<T>, ALL = D / N, LANES = lanes_of(ALL);
    static constexpr int PIECES = ceil_div(ALL, LANES);
    static constexpr int GROUPS = WARP / LANES, STEP = DECODE_WARPS * GROUPS;
};

// The softmax of some keys: the largest score, the sum of weights, and of weights times values.
template <typename T, int D> struct decode_part {
    static constexpr int PIECES = decode_spread<T, D>::PIECES, N = decode_spread<T, D>::N;
    float largest, sum, sums[PIECES][N];

    // Scales the sums to a maximum, which is that of this part or larger.
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

// Loads the lane's pieces of a row of q, scaled.
template <typename T, int D>
__device__ inline void load_query(float (&query)[decode_spread<T, D>::PIECES][PIECE<T>], const T *q,
                                  float scale) {
    using spread = decode_spread<T, D>;
    const int own = threadIdx.x % WARP % spread::LANES;
#pragma unroll
    for (int p = 0; p < spread::PIECES; p++) {
        const int piece = p * spread::LANES + own;
        const uint4 bytes = piece < spread::ALL ? ((const uint4 *)q)[piece] : uint4{};
#pragma unroll
        for (int i = 0; i < spread::N; i++) query[p][i] = piece_element<T>(bytes, i) * scale;
    }
}

// Loads the lane's pieces of ABREAST keys and values, from key `at` of the warp on; keys from `end`
// on are not read and become 0.
template <typename T, int D>
__device__ inline void load_keys(uint4 (&keys)[ABREAST][decode_spread<T, D>::PIECES],
                                 uint4 (&values)[ABREAST][decode_spread<T, D>::PIECES],
                                 const attention_arguments &x, const T *k, const T *v, int at,
                                 int end) {
    using spread = decode_spread<T, D>;
    const int lane = threadIdx.x % WARP, own = lane % spread::LANES;
#pragma unroll
    for (int a = 0; a < ABREAST; a++) {
        const int key = at + a * spread::STEP + lane / spread::LANES;
#pragma unroll
        for (int p = 0; p < spread::PIECES; p++) {
            const int piece = p * spread::LANES + own;
            const bool there = key < end && piece < spread::ALL;
            const uint4 *key_row = (const uint4 *)(k + key * x.k_strides.row);
            const uint4 *value_row = (const uint4 *)(v + key * x.v_strides.row);
            keys[a][p] = there ? key_row[piece] : uint4{};
            values[a][p] = there ? value_row[piece] : uint4{};
        }
    }
}

// The scores of these keys, in all lanes of their groups. Returns the largest of them and of
// `most`.
template <typename T, int D>
__device__ inline float
score_keys(float (&scores)[ABREAST], const float (&query)[decode_spread<T, D>::PIECES][PIECE<T>],
           const uint4 (&keys)[ABREAST][decode_spread<T, D>::PIECES], int at, int end, float most) {
    using spread = decode_spread<T, D>;
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int a = 0; a < ABREAST; a++) {
        float score = 0;
#pragma unroll
        for (int p = 0; p < spread::PIECES; p++) {
#pragma unroll
            for (int i = 0; i < spread::N; i++) {
                score = fmaf(query[p][i], piece_element<T>(keys[a][p], i), score);
            }
        }
        for (int lanes = spread::LANES / 2; lanes > 0; lanes /= 2) {
            score += __shfl_xor_sync(~0u, score, lanes);
        }
        scores[a] = at + a * spread::STEP + lane / spread::LANES < end ? score : -INFINITE;
        most = fmaxf(most, scores[a]);
    }
    return most;
}

// Adds the values of these keys, with the weights of their scores.
template <typename T, int D>
__device__ inline void add_values(decode_part<T, D> &part, const float (&scores)[ABREAST],
                                  const uint4 (&values)[ABREAST][decode_spread<T, D>::PIECES],
                                  float most) {
    using spread = decode_spread<T, D>;
#pragma unroll
    for (int a = 0; a < ABREAST; a++) {
        const float weight = exp2f(scores[a] - finite_base(most));
        part.sum += weight;
#pragma unroll
        for (int p = 0; p < spread::PIECES; p++) {
#pragma unroll
            for (int i = 0; i < spread::N; i++) {
                part.sums[p][i] = fmaf(weight, piece_element<T>(values[a][p], i), part.sums[p][i]);
            }
        }
    }
}

// Merges the parts of the groups of a warp. Lanes that hold the same elements are LANES apart.
template <typename T, int D> __device__ inline void merge_groups(decode_part<T, D> &part) {
    using spread = decode_spread<T, D>;
    float most = part.largest;
    for (int lanes = spread::LANES; lanes < WARP; lanes *= 2) {
        most = fmaxf(most, __shfl_xor_sync(~0u, most, lanes));
    }
    part.raise(most);
    for (int lanes = spread::LANES; lanes < WARP; lanes *= 2) {
        part.sum += __shfl_xor_sync(~0u, part.sum, lanes);
#pragma unroll
        for (int p = 0; p < spread::PIECES; p++) {
#pragma unroll
            for (int i = 0; i < spread::N; i++) {
                part.sums[p][i] += __shfl_xor_sync(~0u, part.sums[p][i], lanes);
            }
        }
    }
}

// Writes the part of a warp to shared memory: sums of D elements, the largest score, the sum of
// weights.
template <typename T, int D>
__device__ inline void leave_part(const decode_part<T, D> &part, float (&merged)[D + 2]) {
    using spread = decode_spread<T, D>;
    const int lane = threadIdx.x % WARP;
    if (lane >= spread::LANES) return;
#pragma unroll
    for (int p = 0; p < spread::PIECES; p++) {
        const int piece = p * spread::LANES + lane;
#pragma unroll
        for (int i = 0; i < spread::N; i++) {
            if (piece < spread::ALL) merged[piece * spread::N + i] = part.sums[p][i];
        }
    }
    if (lane == 0) merged[D] = part.largest, merged[D + 1] = part.sum;
}

template <typename T, int D> __device__ inline void attention_decode(const attention_arguments &x) {
    using spread = decode_spread<T, D>;
    __shared__ float merged[DECODE_WARPS][D + 2];
    const int warp = threadIdx.x / WARP, split = blockIdx.x, head = blockIdx.y;
    const int row = blockIdx.z % x.q_length, batch = blockIdx.z / x.q_length;
    const T *q = attention_row<T>(x.q, x.q_strides, batch, head, row);
    const T *k = attention_row<T>(x.k, x.k_strides, batch, head / x.group, 0);
    const T *v = attention_row<T>(x.v, x.v_strides, batch, head / x.group, 0);
    float query[spread::PIECES][spread::N];
    decode_part<T, D> part = {-INFINITE, 0, {}};
    load_query<T, D>(query, q, x.scale_log2);
    const int seen = keys_seen(x, row), each = ceil_div(seen, x.splits);
    const int begin = min(seen, split * each), end = min(seen, begin + each);
    for (int at = begin + warp * spread::GROUPS; at < end; at += spread::STEP * ABREAST) {
        uint4 keys[ABREAST][spread::PIECES], values[ABREAST][spread::PIECES];
        float scores[ABREAST];
        load_keys<T, D>(keys, values, x, k, v, at, end);
        const float most = score_keys<T, D>(scores, query, keys, at, end, part.largest);
        part.raise(most);
        add_values(part, scores, values, most);
    }
    merge_groups(part);
    leave_part(part, merged[warp]);
    __syncthreads(); // the parts of all warps are written
    merge_warps<T, D, DECODE_WARPS, D + 2>(x, merged[0], batch, head, row, threadIdx.x,
                                           DECODE_THREADS);
}
