// vector_add: c[i] = a[i] + b[i] for i < count.
//
// Owner: thread i of the grid owns c[i]. Bound by memory: 12 bytes and one addition an element.
// Requires: gridDim.x * blockDim.x at least count.
extern "C" __global__ void vector_add(const float *a, const float *b, float *c, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) c[i] = a[i] + b[i];
}
