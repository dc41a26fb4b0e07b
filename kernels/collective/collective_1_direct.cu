// direct: targets[j][i] = sources[0][i] + sources[1][i] + ..., rounded once, for all targets j.
// With one source it copies bits. Sources and targets are memory of any devices that reach each
// other.
//
// The idea: the rank that owns a chunk loads it from all ranks and stores the sum to all, so every
// byte crosses a link once in each direction. Sums are in the order of the sources, whatever the
// grid is. All loads of a thread are in flight at once, since a link's latency is a microsecond.
// Owner: thread t of the grid owns pieces t, t + threads, ... A target may be a source.
// Bound by: the links. Requires: any grid and block; addresses aligned to an element; without
// is_wide it goes element by element.
#include "direct.cuh"

extern "C" __global__ void direct_f32(collective_direct x) { direct<float>(x); }
extern "C" __global__ void direct_f16(collective_direct x) { direct<__half>(x); }
extern "C" __global__ void direct_bf16(collective_direct x) { direct<__nv_bfloat16>(x); }
