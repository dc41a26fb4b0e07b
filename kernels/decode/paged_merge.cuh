// Merges the parts of a row's spans, as floats or rounded to bytes.
#pragma once

#include "../pdl.cuh"
#include "paged.cuh"
#include "../quantised/formats/rounded.cuh"

// The spans that a row sees, and their parts of a head.
struct merged_parts {
    const float *parts;
    uint64_t size;
    int first, last;

    __device__ inline merged_parts(const paged_arguments &x, int row, int head) {
        const int own = ((const int *)x.cache.positions)[row];
        size = x.head_size + 2;
        first = x.window > 0 ? max(0, own - x.window + 1) / PAGED_SPAN : 0;
        last = own / PAGED_SPAN;
        parts = (const float *)x.parts + ((uint64_t)row * x.heads + head) * x.splits * size;
    }
    // Element i of the head.
    __device__ inline float element(const paged_arguments &x, int i) const {
        float largest = -INFINITY, total = 0, sum = 0;
#pragma unroll 4
        for (int s = first; s <= last; s++) {
            largest = fmaxf(largest, parts[s * size + x.head_size]);
        }
#pragma unroll 4
        for (int s = first; s <= last; s++) {
            const float *part = parts + s * size;
            const float share = exp2f(part[x.head_size] - largest);
            total = fmaf(share, part[x.head_size + 1], total);
            sum = fmaf(share, part[i], sum);
        }
        return sum / total;
    }
};

__device__ inline void merge(const paged_arguments &x) {
    const int head = blockIdx.x, row = blockIdx.y;
    const merged_parts parts(x, row, head);
    float *out = (float *)x.out + row * x.out_stride + (uint64_t)head * x.head_size;
    pdl_release();
    pdl_wait();
    for (int i = threadIdx.x; i < x.head_size; i += blockDim.x) out[i] = parts.element(x, i);
}

__device__ inline void merge_rounded(const paged_arguments &x) {
    __shared__ float row_of[LINEAR_CHUNK];
    const uint32_t chunk = blockIdx.x, row = blockIdx.y, lane = threadIdx.x;
    const int at = (int)(chunk * LINEAR_CHUNK + threadIdx.x);
    const merged_parts parts(x, (int)row, at / x.head_size);
    pdl_release();
    pdl_wait();
    row_of[threadIdx.x] = parts.element(x, at % x.head_size);
    __syncthreads(); // the chunk is there
    if (threadIdx.x >= WARP) return;
    float own[OWN];
#pragma unroll
    for (int i = 0; i < OWN; i++) own[i] = row_of[lane * OWN + i];
    put_rounded(rounded_tile(x.out, row, chunk, gridDim.x), row % ROUNDED_COLUMNS, own);
}
