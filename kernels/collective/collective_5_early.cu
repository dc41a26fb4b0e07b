// flags, step 5: step 2, which begins while the kernel in front ends.
// Target: compute_90
//
// The next call's blocks are on the device when this one's end, so that calls in a row do not wait
// for each other's launch. Owner, bound and requirements: as step 2. It may be launched
// programmatically.
#define EARLY
#include "copies.cuh"
#include "sums.cuh"

extern "C" __global__ void flags_early_f32(collective_flags x) { flags<float>(x); }
extern "C" __global__ void flags_early_f16(collective_flags x) { flags<__half>(x); }
extern "C" __global__ void flags_early_bf16(collective_flags x) { flags<__nv_bfloat16>(x); }
extern "C" __global__ void flags_early_copy(collective_flags x) { copy_by_flags(x); }
