// The exchange of columns by flags, for steps 3 and 4.
#pragma once

#include "../bulk.cuh"

#include "collective_arguments.h"
#include "flags.cuh"

typedef unsigned long long index_type;

static __device__ inline void exchange_columns(const collective_columns &x) {
#if defined EARLY && __CUDA_ARCH__ >= 900
    let_next_begin();
    wait_for_kernel_in_front();
#endif
    const index_type line = blockIdx.x * (index_type)blockDim.x + threadIdx.x;
    if (line >= x.count) return;
    const unsigned epoch = x.epoch + (x.epoch_at != 0 ? *(const unsigned *)x.epoch_at : 0);
    const index_type row = (x.first + line) / x.row, at = (x.first + line) % x.row * 8;
    const index_type half = (epoch & 1) * x.ranks * x.slot_bytes;
    const index_type to = x.out[0] + row * x.out_stride + at;
    const index_type own = *(const index_type *)(x.in + row * x.in_stride + at);
    for (unsigned r = 0; r < x.ranks; r++) {
        if (r != x.rank) send(x.outboxes[r] + half, line, own, epoch);
    }
    *(index_type *)(to + x.rank * x.part_bytes) = own;
    for (unsigned r = 0; r < x.ranks; r++) {
        unsigned long long other;
        if (r == x.rank) continue;
        const index_type slot = x.inboxes + half + r * x.slot_bytes;
        if (!receive(slot, line, r, epoch, x.status, x.patience_ns, other)) return;
        *(index_type *)(to + r * x.part_bytes) = other;
    }
}
