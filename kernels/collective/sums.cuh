// The all-reduce by flags, for steps 2 and 5.
#pragma once

#include "../bulk.cuh"

#include "collective.cuh"
#include "flags.cuh"

template <typename T> static __device__ inline void flags(const collective_flags &x) {
    enum { PIECE = COLLECTIVE_LINE_BYTES / sizeof(T) };
#if defined EARLY && __CUDA_ARCH__ >= 900
    let_next_begin();
    wait_for_kernel_in_front();
#endif
    const unsigned long long line = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    const unsigned long long at = line * COLLECTIVE_LINE_BYTES;
    if (at >= x.bytes) return;
    const unsigned inside = x.bytes - at < COLLECTIVE_LINE_BYTES
                                ? (unsigned)(x.bytes - at) / (unsigned)sizeof(T)
                                : (unsigned)PIECE; // elements of the line that there are
    piece<T, COLLECTIVE_LINE_BYTES, unsigned long long> own, other, out;
    own.word = 0;
#pragma unroll
    for (int i = 0; i < PIECE; i++) {
        if (i < inside) own.elements[i] = ((const T *)(x.in + at))[i];
    }
    for (unsigned r = 0; r < x.ranks; r++) {
        if (r != x.rank) send(x.outboxes[r], line, own.word, x.epoch);
    }
    float sums[PIECE];
    for (unsigned r = 0; r < x.ranks; r++) {
        other.word = own.word;
        if (r != x.rank && !receive(x.inbox + r * x.slot_bytes, line, r, x.epoch, x.status,
                                    x.patience_ns, other.word)) {
            return;
        }
#pragma unroll
        for (int i = 0; i < PIECE; i++) {
            sums[i] = r == 0 ? number(other.elements[i]) : sums[i] + number(other.elements[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < PIECE; i++) {
        round_to(out.elements[i], sums[i]);
        if (i < inside) ((T *)(x.out + at))[i] = out.elements[i];
    }
}
