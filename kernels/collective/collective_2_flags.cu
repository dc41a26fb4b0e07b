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
#include "sums.cuh"

extern "C" __global__ void flags_f32(collective_flags x) { flags<float>(x); }
extern "C" __global__ void flags_f16(collective_flags x) { flags<__half>(x); }
extern "C" __global__ void flags_bf16(collective_flags x) { flags<__nv_bfloat16>(x); }
