// paged attention, step 2: merges the parts of a row's spans, in their order.
//
// The idea: a span's sums are relative to its own largest score; exp2 of the difference to the
// row's largest makes them comparable. Spans that the row sees nothing of were not written and are
// left out, so the result does not depend on how many the grid had.
// Owner: block (h, r) owns head h of row r; a thread owns elements.
// Requires: gridDim = (heads, rows).
#include "paged.cuh"

extern "C" __global__ void paged_merge(paged_arguments x) {
    const int head = blockIdx.x, row = blockIdx.y;
    const int own = ((const int *)x.cache.positions)[row];
    const int first = x.window > 0 ? max(0, own - x.window + 1) / PAGED_SPAN : 0;
    const int last = own / PAGED_SPAN;
    const uint64_t part_size = x.head_size + 2;
    const float *parts =
        (const float *)x.parts + ((uint64_t)row * x.heads + head) * x.splits * part_size;
    float largest = -INFINITY, total = 0;
    for (int s = first; s <= last; s++) {
        largest = fmaxf(largest, parts[s * part_size + x.head_size]);
    }
    for (int s = first; s <= last; s++) {
        const float *part = parts + s * part_size + x.head_size;
        total = fmaf(exp2f(part[0] - largest), part[1], total);
    }
    float *out = (float *)x.out + row * x.out_stride + (uint64_t)head * x.head_size;
    for (int i = threadIdx.x; i < x.head_size; i += blockDim.x) {
        float sum = 0;
        for (int s = first; s <= last; s++) {
            const float *part = parts + s * part_size;
            sum = fmaf(exp2f(part[x.head_size] - largest), part[i], sum);
        }
        out[i] = sum / total;
    }
}
