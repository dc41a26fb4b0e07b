// attention over packed sequences with one defect in each kernel, for sabotage: tests must find
// each.
// Target: compute_90a
//
// The idea: attention_packed_3_hopper for fp16 and heads of 64 elements, with one mistake at the
// end of a sequence. They are in no table from which calls choose; tests force them by name.
// Owner and requirements: as attention_packed_hopper.cuh says.
#include "attention_packed_hopper.cuh"

#if __CUDA_ARCH__ >= 900
PACKED_HOPPER(next_key_seen, __half, 64, NEXT_KEY_SEEN)
PACKED_HOPPER(next_values_kept, __half, 64, NEXT_VALUES_KEPT)
PACKED_HOPPER(next_rows_written, __half, 64, NEXT_ROWS_WRITTEN)
PACKED_HOPPER(next_lse_written, __half, 64, NEXT_LSE_WRITTEN)
#endif
