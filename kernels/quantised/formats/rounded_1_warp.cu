// rounded, step 1: columns of floats as bytes, for the bytes kernels of linear; either as they are
// or after a norm by the root mean square with a weight.
//
// The idea: the product needs x once, rounded; so it is rounded where it is made and not in each
// block that reads it.
// Owner: rounded: warp w of block (i, j) owns chunk 16 i + w of column j. rounded_norm: block i
// owns column i.
// Bound by: latency.
// Requires: blockDim = (512, 1, 1), gridDim = (k / 4096 rounded up, columns) or columns; k a
// multiple of 256, with a norm up to 16384; x, its columns and the weight at multiples of 16 bytes.
#include "rounded_row.cuh"

extern "C" __global__ void __launch_bounds__(ROUNDED_THREADS) rounded(rounded_arguments a) {
    round_row(a);
}
extern "C" __global__ void __launch_bounds__(ROUNDED_THREADS) rounded_norm(rounded_arguments a) {
    norm_row(a);
}
