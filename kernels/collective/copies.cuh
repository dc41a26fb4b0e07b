// The copies by flags, for steps 2 and 5.
#pragma once

#include "../bulk.cuh"

#include "collective_arguments.h"
#include "flags.cuh"
#include "lines.cuh"

// A rank without data sends its first line all the same: that it came is what the others must know
// before they use its slot again.
static __device__ inline void copy_by_flags(const collective_flags &x) {
#if defined EARLY && __CUDA_ARCH__ >= 900
    let_next_begin();
    wait_for_kernel_in_front();
#endif
    const unsigned long long line = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    const unsigned long long at = line * COLLECTIVE_LINE_BYTES;
    if (at >= x.bytes) return;
    const unsigned inside = line_bytes(at, x.bytes);
    const bool sends = (x.senders >> x.rank & 1) != 0;
    const unsigned long long to = x.out + x.rank * x.out_stride;
    const unsigned long long own = sends ? load_line(x.in + at, inside) : 0;
    for (unsigned r = 0; r < x.ranks; r++) {
        if (r != x.rank && (sends || line == 0)) send(x.outboxes[r], line, own, x.epoch);
    }
    if (sends && x.in != to) store_line(to + at, inside, own);
    for (unsigned r = 0; r < x.ranks; r++) {
        const bool has_data = (x.senders >> r & 1) != 0;
        unsigned long long other;
        if (r == x.rank || (!has_data && line != 0)) continue;
        if (!receive(x.inbox + r * x.slot_bytes, line, r, x.epoch, x.status, x.patience_ns,
                     other)) {
            return;
        }
        if (has_data) store_line(x.out + r * x.out_stride + at, inside, other);
    }
}
