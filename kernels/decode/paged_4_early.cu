// paged attention, step 4: heads and steps 1 to 3 by PDL.
// Target: compute_90
//
// Idea, owner, bound and requirements: as heads_1_warp, heads_2_bytes, and steps 1 to 3. Positions,
// slots and tables of pages are read before the preceding kernel has ended. So at least one kernel
// that is not launched by PDL must lie between their writer and these.
#define EARLY
#include "heads.cuh"
#include "paged_merge.cuh"
#include "paged_span.cuh"

extern "C" __global__ void heads_warp_early(heads_arguments x) {
    heads_ready<stored_halves>(x);
}
extern "C" __global__ void heads_bytes_early(heads_arguments x) {
    heads_ready<stored_bytes>(x);
}

#define SPAN(name, cache, group)                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        paged_##name##_##group##_early(paged_arguments x) {                                        \
        span<cache, group>(x);                                                                     \
    }
#define SPANS(name, cache)                                                                         \
    SPAN(name, cache, 1) SPAN(name, cache, 2) SPAN(name, cache, 4) SPAN(name, cache, 8)
SPANS(span, cached_halves)
SPANS(bytes, cached_bytes)

extern "C" __global__ void paged_merge_early(paged_arguments x) {
    merge(x);
}
extern "C" __global__ void __launch_bounds__(LINEAR_CHUNK)
    paged_merge_rounded_early(paged_arguments x) {
    merge_rounded(x);
}
