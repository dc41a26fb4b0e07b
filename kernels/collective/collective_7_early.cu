// met, step 7: step 6, which begins while the kernel in front ends.
// Target: compute_90
//
// Owner, bound and requirements: as step 6. It may be launched programmatically.
#define EARLY
#include "met.cuh"

extern "C" __global__ void met_early_f32(collective_met x) { met<float>(x); }
extern "C" __global__ void met_early_f16(collective_met x) { met<__half>(x); }
extern "C" __global__ void met_early_bf16(collective_met x) { met<__nv_bfloat16>(x); }
