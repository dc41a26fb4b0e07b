// best, step 1: the column of the largest element of each row, the first of equal ones.
//
// The idea: one block would read the logits of a row for longer than a layer takes. Therefore
// BEST_PARTS blocks read a row, and a second kernel compares their keys (row/argmax_key.cuh).
// Owner: block (i, r) of best_parts owns every BEST_PARTS-th piece of row r; block r of best_merge
// owns row r.
// Bound by: latency. Requires: blockDim = (256, 1, 1), gridDim = (BEST_PARTS, rows); (32, 1, 1) and
// rows.
#include "best.cuh"

extern "C" __global__ void __launch_bounds__(BEST_THREADS) best_parts(best_arguments a) {
    best_of_part(a);
}
extern "C" __global__ void __launch_bounds__(32) best_merge(best_arguments a) {
    best_of_parts(a);
}
