// fill: out[i] = value for i < count. The smallest kernel that does something.
//
// Owner: thread i of the grid owns out[i]. Bound by writes: 4 bytes per element.
// Requires: gridDim.x * blockDim.x at least count.
extern "C" __global__ void fill(unsigned *out, unsigned value, unsigned long long count) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < count) out[i] = value;
}
