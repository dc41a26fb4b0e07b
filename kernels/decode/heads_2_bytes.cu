// heads, step 2: step 1 into a cache of bytes.
//
// The idea: 32 elements of k or v have a scale, their largest magnitude over 127, and are rounded
// to multiples of it, ties away from zero, as llama.cpp does for Q8_0. A warp keeps its head in
// shared memory until all of it is rotated; then a lane has an element of each 32.
// Owner, bound and requirements: as step 1; head_size is a multiple of 32.
#include "heads.cuh"

extern "C" __global__ void heads_bytes(heads_arguments x) {
    heads_ready<stored_bytes>(x);
}
