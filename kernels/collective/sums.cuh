// The sums by flags, for steps 2 and 5.
#pragma once

#include "../bulk.cuh"

#include "collective.cuh"
#include "flags.cuh"
#include "lines.cuh"

template <typename T> static __device__ inline void flags(const collective_flags &x) {
    enum { PIECE = COLLECTIVE_LINE_BYTES / sizeof(T) };
#if defined EARLY && __CUDA_ARCH__ >= 900
    let_next_begin();
    wait_for_kernel_in_front();
#endif
    const unsigned long long line = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    const unsigned long long at = line * COLLECTIVE_LINE_BYTES;
    if (at >= x.bytes) return;
    const unsigned inside = line_bytes(at, x.bytes);
    piece<T, COLLECTIVE_LINE_BYTES, unsigned long long> own, other, out;
    own.word = load_line(x.in + x.rank * x.in_stride + at, inside);
    for (unsigned r = 0; r < x.ranks; r++) {
        if (r == x.rank) continue;
        const unsigned long long sent =
            x.in_stride == 0 ? own.word : load_line(x.in + r * x.in_stride + at, inside);
        send(x.outboxes[r], line, sent, x.epoch);
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
    for (int i = 0; i < PIECE; i++) round_to(out.elements[i], sums[i]);
    store_line(x.out + at, inside, out.word);
}
