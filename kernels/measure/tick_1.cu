// tick_1: *count += 1. The smallest launch that can be counted afterwards, which shows a launch
// that was timed and never made.
//
// Owner: one thread. Requires: gridDim = blockDim = (1, 1, 1); launches follow each other on one
// stream.
extern "C" __global__ void tick_1(unsigned *count) {
    *count += 1;
}
