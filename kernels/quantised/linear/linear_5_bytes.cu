// linear, step 5: x rounded to bytes, and quants multiplied as the bytes that they are.
// Target: compute_80
//
// The idea, owner and bound: linear_bytes.cuh.
// Requires: blockDim = (256, 1, 1), gridDim = (rows / 16 TILES, columns / 8 NT), rounded up, of 16
// rows for the gated ones; LINEAR_BYTES_SHARED of dynamic shared memory; x rounded by
// rounded_1_warp; Q4_K and Q5_K at multiples of 16 bytes, Q6_K of 2.
#include "linear_bytes.cuh"

LINEAR_BYTES(, q4_k, bytes_k<false>)
LINEAR_BYTES(, q5_k, bytes_k<true>)
LINEAR_BYTES(, q6_k, bytes_q6_k)
