// paged attention, step 1: the part of each span of 128 positions in the attention of a row.
//
// The idea: a row of q sees the keys of its session, up to its own position, in pages. A block
// takes a span of positions and all heads of q that share its keys. First two threads share a key:
// pieces of eight elements of 16 keys are stored together, so a warp's loads are of whole lines,
// and many are in flight. Then the weights of the span are in shared memory, and a thread owns four
// elements of the values. Spans begin at multiples of 128, so the parts of a row, and their bits,
// depend neither on other rows nor on the number of spans in the grid.
// Owner: block (s, g, r) owns span s of row r, for heads GROUP g on. It ends at once if the row
// sees nothing of its span.
// Bound by: reads of keys and values.
// Requires: blockDim = (256, 1, 1), gridDim = (splits, kv_heads * ceil(heads of a key / GROUP),
// rows); head_size up to 256 and a multiple of 8.
#include "paged_span.cuh"

#define SPAN(group)                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS) paged_span_##group(paged_arguments x) {  \
        span<cached_halves, group>(x);                                                             \
    }
SPAN(1)
SPAN(2)
SPAN(4)
SPAN(8)
