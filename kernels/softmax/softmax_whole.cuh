// What the kernels of softmax over whole rows share: from a thread's pieces to its results.
#pragma once

#include "../row/row_whole.cuh"

// exp(x) for x <= 0, times a factor that is the same for all x of a type and cancels in the
// quotient.
__device__ inline float exp_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline float exp_of(float x, float) {
    return expf(x);
}
__device__ inline float exp_of(float x, __half) {
    return exp_fast(x * LOG2_E);
}
// bfloat16 has numbers down to 2^-133, which ex2.ftz flushes to zero: all are scaled by 2^64.
__device__ inline float exp_of(float x, __nv_bfloat16) {
    return exp_fast(fmaf(x, LOG2_E, 64.0f));
}

// The word past the end of a row. Times the scale it is minus infinity, for either sign of the
// scale.
template <typename T> __device__ inline uint32_t softmax_fill(const softmax_arguments &x) {
    return x.scale < 0 ? INFINITE_BITS<T> : INFINITE_BITS<T> | SIGN_BITS<T>;
}

template <typename T, int PIECES>
__device__ inline void softmax_of_pieces(float (&values)[PIECES][PIECE<T>],
                                         const uint4 (&bits)[PIECES], float scale,
                                         row_reducer &reducer) {
    float largest = -INFINITE, sum = 0;
#pragma unroll
    for (int p = 0; p < PIECES; p++) unpack_piece<T>(values[p], bits[p]);
    if (scale != 1) {
#pragma unroll
        for (int i = 0; i < PIECES * PIECE<T>; i++) values[i / PIECE<T>][i % PIECE<T>] *= scale;
    }
#pragma unroll
    for (int i = 0; i < PIECES * PIECE<T>; i++) {
        largest = fmaxf(largest, values[i / PIECE<T>][i % PIECE<T>]);
    }
    largest = reducer.max(largest);
    const float base = largest == -INFINITE ? 0 : largest;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) {
            values[p][i] = exp_of(values[p][i] - base, T());
            sum += values[p][i];
        }
    }
    sum = reducer.sum(sum);
    const float share = sum == 0 ? 0 : 1 / sum;
#pragma unroll
    for (int i = 0; i < PIECES * PIECE<T>; i++) values[i / PIECE<T>][i % PIECE<T>] *= share;
}
