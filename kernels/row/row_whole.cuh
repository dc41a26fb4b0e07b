// What the kernels of whole rows share. A whole row begins at a multiple of 16 bytes and consists
// of pieces of 16 bytes, so no code tests single elements. For rows of 16-bit elements that test is
// half of the other kernels' time.
#pragma once

#include "row.cuh"

constexpr float LOG2_E = 1.44269504f;

// A word of infinities, of two 16-bit elements or one float; and of their sign bits.
template <typename T> constexpr uint32_t INFINITE_BITS = 0x7f800000u;
template <> constexpr uint32_t INFINITE_BITS<__half> = 0x7c007c00u;
template <> constexpr uint32_t INFINITE_BITS<__nv_bfloat16> = 0x7f807f80u;
template <typename T> constexpr uint32_t SIGN_BITS = sizeof(T) == 2 ? 0x80008000u : 0x80000000u;

template <typename T> __device__ inline int whole_pieces(long long columns) {
    return (int)columns / PIECE<T>;
}
// The piece of a row that is piece p of this thread.
__device__ inline int piece_of_thread(int p) {
    return (int)threadIdx.x + p * (int)blockDim.x;
}

// Loads the pieces of a thread. Pieces past the row are not read and become `fill`.
template <typename T, int PIECES>
__device__ inline void load_whole(uint4 (&bits)[PIECES], const void *row, int count,
                                  uint32_t fill) {
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        bits[p] = make_uint4(fill, fill, fill, fill);
        if (piece_of_thread(p) < count) bits[p] = ((const uint4 *)row)[piece_of_thread(p)];
    }
}

// Two elements of 16 bits, or one of 32, as floats; and back.
__device__ inline void unpack_word(float *x, uint32_t word, float) {
    x[0] = __uint_as_float(word);
}
__device__ inline void unpack_word(float *x, uint32_t word, __nv_bfloat16) {
    x[0] = __uint_as_float(word << 16);
    x[1] = __uint_as_float(word & 0xffff0000u);
}
__device__ inline void unpack_word(float *x, uint32_t word, __half) {
    x[0] = __half2float(__ushort_as_half((unsigned short)word));
    x[1] = __half2float(__ushort_as_half((unsigned short)(word >> 16)));
}
__device__ inline uint32_t pack_word(const float *x, float) {
    return __float_as_uint(x[0]);
}
__device__ inline uint32_t pack_word(const float *x, __nv_bfloat16) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(x[0], x[1]);
    return (uint32_t)__bfloat16_as_ushort(pair.y) << 16 | __bfloat16_as_ushort(pair.x);
}
__device__ inline uint32_t pack_word(const float *x, __half) {
    const __half2 pair = __floats2half2_rn(x[0], x[1]);
    return (uint32_t)__half_as_ushort(__high2half(pair)) << 16 | __half_as_ushort(__low2half(pair));
}

template <typename T> __device__ inline void unpack_piece(float (&x)[PIECE<T>], const uint4 &bits) {
    const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
    for (int w = 0; w < 4; w++) unpack_word(x + w * PIECE<T> / 4, words[w], T());
}

template <typename T, int PIECES>
__device__ inline void store_whole(const float (&x)[PIECES][PIECE<T>], void *row, int count) {
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        uint32_t words[4];
#pragma unroll
        for (int w = 0; w < 4; w++) words[w] = pack_word(x[p] + w * PIECE<T> / 4, T());
        if (piece_of_thread(p) < count) {
            ((uint4 *)row)[piece_of_thread(p)] = make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
}

// As row_reduce, with one barrier instead of two. Reductions alternate between two sets of parts:
// when a thread writes a set again, all have passed the barrier of the reduction between, and so
// have read the set.
struct row_reducer {
    float (*parts)[WARP];
    int turn;
    template <typename COMBINE>
    __device__ inline float over_row(float x, float neutral, COMBINE combine) {
#pragma unroll
        for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
            x = combine(x, __shfl_xor_sync(~0u, x, lanes));
        }
        if (blockDim.x == WARP) return x;
        const int warps = (int)blockDim.x / WARP, lane = (int)threadIdx.x % WARP;
        float *part = parts[turn];
        turn ^= 1;
        if (lane == 0) part[threadIdx.x / WARP] = x;
        __syncthreads();
        // Up to four warps, the usual case, take two steps: every four lanes read all parts.
        const int from = lane % (warps <= 4 ? 4 : WARP);
        x = from < warps ? part[from] : neutral;
        if (warps > 4) {
#pragma unroll
            for (int lanes = WARP / 2; lanes > 2; lanes /= 2) {
                x = combine(x, __shfl_xor_sync(~0u, x, lanes));
            }
        }
#pragma unroll
        for (int lanes = 2; lanes > 0; lanes /= 2) {
            x = combine(x, __shfl_xor_sync(~0u, x, lanes));
        }
        return x;
    }
    __device__ inline float sum(float x) {
        return over_row(x, 0, [](float a, float b) { return a + b; });
    }
    __device__ inline float max(float x) {
        return over_row(x, -INFINITE, [](float a, float b) { return fmaxf(a, b); });
    }
};
