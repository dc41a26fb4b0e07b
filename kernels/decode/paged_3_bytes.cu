// paged attention, step 3: step 1 over a cache of bytes.
//
// The idea: keys and values are bytes, and 32 elements have a scale, as in Q8_0: half as much is
// read. A thread multiplies by the scale as it reads; all else is step 1's.
// Owner, bound and requirements: as step 1; head_size is a multiple of 32.
#include "paged_span.cuh"

#define SPAN(group)                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS) paged_bytes_##group(paged_arguments x) { \
        span<cached_bytes, group>(x);                                                              \
    }
SPAN(1)
SPAN(2)
SPAN(4)
SPAN(8)
