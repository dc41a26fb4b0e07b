// heads, step 1: makes the heads of q, k and v of each row ready for attention.
//
// Heads of q and k are divided by their root mean square and weighted, if the model does that, and
// rotated by the row's position. Heads of q are changed in place; heads of k and v are stored in
// the cache as halves.
//
// The idea: one kernel for what would be five small ones. A warp owns a head; a lane keeps a pair
// of elements that are rotated together.
// Owner: warp w of block (i, r) owns head HEADS i + w of row r, counted over q, k and v.
// Bound by: latency.
// Requires: blockDim = (32 HEADS, 1, 1), gridDim = (heads / HEADS rounded up, rows); head_size up
// to 256 and a multiple of 8, rotated even.
#include "heads.cuh"

extern "C" __global__ void heads_warp(heads_arguments x) {
    heads_ready<stored_halves>(x);
}
