// gated, step 1: y = silu(g) y, for the rows of two products.
//
// The idea: none; one thread per element.
// Owner: block (r, i) owns elements i blockDim.x on of row r. Bound by: latency.
// Requires: gridDim.x = rows.
#include "decode_arguments.h"

extern "C" __global__ void gated_element(gated_arguments a) {
    const float *gate = (const float *)a.gate + blockIdx.x * a.gate_stride;
    float *y = (float *)a.y + blockIdx.x * a.y_stride;
    for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < a.columns;
         i += gridDim.y * blockDim.x) {
        y[i] = gate[i] / (1 + expf(-gate[i])) * y[i];
    }
}
