// flags: a call of few bytes in one launch per rank, which run at once. Of an all-reduce and a
// reduce-scatter out = the sum of what all ranks have for this one, in the order of the ranks,
// rounded once; of an all-gather and a broadcast a copy of what each rank has, or one.
//
// The idea: data and the number of the call, the epoch, are stored in one word of 8 bytes, which
// arrives whole, so a rank stores its elements to all others and reads its own inbox until the
// epoch is there: one crossing of the link, and no barrier. A slot is used by every second epoch: a
// rank that begins epoch e + 2 has read a line of epoch e + 1 from all, so all are done with e.
// Waiting is bounded: after patience_ns, or once another thread gave up, a thread notes in `status`
// which rank was missing, and ends without its result.
// Owner: thread t of the grid owns line t, 8 bytes of what goes from a rank to another. out may be
// in, or have it in its place.
// Bound by: the latency of a link, then its rate. Requires: at least bytes / 8 threads; addresses
// aligned to an element, and to 8 for speed.
#include "copies.cuh"
#include "sums.cuh"

extern "C" __global__ void flags_f32(collective_flags x) { flags<float>(x); }
extern "C" __global__ void flags_f16(collective_flags x) { flags<__half>(x); }
extern "C" __global__ void flags_bf16(collective_flags x) { flags<__nv_bfloat16>(x); }
extern "C" __global__ void flags_copy(collective_flags x) { copy_by_flags(x); }
