// paged attention, step 2: merges the parts of a row's spans, in their order.
//
// The idea: a span's sums are relative to its own largest score; exp2 of the difference to the
// row's largest makes them comparable. Spans of which the row sees nothing were not written and are
// left out, so the result does not depend on the number of spans in the grid.
// Owner: block (h, r) owns head h of row r; a thread owns elements. The kernel that rounds the row
// to bytes: block (c, r) owns its chunk c of 256 elements, a thread one of them.
// Requires: gridDim = (heads, rows); or (heads * head_size / 256, rows) and blockDim = (256, 1, 1).
#include "paged_merge.cuh"

extern "C" __global__ void paged_merge(paged_arguments x) {
    merge(x);
}
extern "C" __global__ void __launch_bounds__(LINEAR_CHUNK) paged_merge_rounded(paged_arguments x) {
    merge_rounded(x);
}
