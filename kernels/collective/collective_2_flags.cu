// flags: an all-reduce of few bytes in one launch a rank, which run at once: out = the sum of all
// ranks' `in`, in the order of the ranks, rounded once.
//
// The idea: data and the number of the call, the epoch, are stored in one word of 8 bytes, which
// arrives whole, so a rank stores its elements to all others and reads its own inbox until the
// epoch is there: one crossing of the link, and no barrier. A slot is used by every second epoch: a
// rank that begins epoch e + 2 has read epoch e + 1 of all, so all are done with epoch e.
// Waiting is bounded: after patience_ns, or once another thread gave up, a thread notes in `status`
// which rank was missing, and ends without its result.
// Owner: thread t of the grid owns line t, 8 bytes of `in` and `out`. out may be in.
// Bound by: the latency of a link. Requires: at least bytes / 8 threads; in and out aligned to 8.
#include "collective.cuh"
#include "flags.cuh"

template <typename T> static __device__ void flags(const collective_flags &x) {
    enum { PIECE = COLLECTIVE_LINE_BYTES / sizeof(T) };
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

extern "C" __global__ void flags_f32(collective_flags x) { flags<float>(x); }
extern "C" __global__ void flags_f16(collective_flags x) { flags<__half>(x); }
extern "C" __global__ void flags_bf16(collective_flags x) { flags<__nv_bfloat16>(x); }
