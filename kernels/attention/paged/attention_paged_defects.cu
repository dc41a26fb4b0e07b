// attention over paged sequences with one defect in each kernel, for sabotage: tests must find
// each.
// Target: compute_90a
//
// The idea: attention_paged_3_hopper for fp16 and heads of 64 elements, with one mistake in the
// look-up of a page, after the last position, or in the ring. They are in no table from which calls
// choose; tests force them by name.
// Owner and requirements: as attention_paged_hopper.cuh says. "next_page" looks up one page more
// than the sequence has, so its table must have one more entry.
#include "attention_paged_hopper.cuh"

#if __CUDA_ARCH__ >= 900
PAGED_HOPPER(next_page, __half, 64, NEXT_SEQUENCE, PAGED_NEXT_PAGE)
PAGED_HOPPER(old_page, __half, 64, NEXT_SEQUENCE, PAGED_OLD_PAGE)
PAGED_HOPPER(position_too_many, __half, 64, NEXT_KEY_SEEN, PAGED_RIGHT)
PAGED_HOPPER(values_kept, __half, 64, NEXT_VALUES_KEPT, PAGED_RIGHT)
PAGED_HOPPER(early_values, __half, 64, EARLY_VALUES, PAGED_RIGHT)
PAGED_HOPPER(lost_consumer, __half, 64, LOST_CONSUMER, PAGED_RIGHT)
#endif
