// attention over numbers of 8 bits with one defect in each kernel, for sabotage: tests must find
// each.
// Target: compute_90a
//
// The idea: attention_e4m3_2_hopper with results in fp16 and heads of 64 elements, with one
// mistake. The defects of the ring show with three tiles of keys or more. They are in no table from
// which calls choose; tests force them by name.
// Owner and requirements: as attention_e4m3_hopper.cuh says.
#include "attention_e4m3_hopper.cuh"

#if __CUDA_ARCH__ >= 900
ATTENTION_E4M3(neighbours_scale, __half, 64, E4M3_NEIGHBOURS_SCALE)
ATTENTION_E4M3(early_bytes, __half, 64, E4M3_EARLY_BYTES)
ATTENTION_E4M3(old_halves, __half, 64, E4M3_OLD_HALVES)
#endif
