// embed, step 1: row r of out is row tokens[r] of a table of weights, as floats.
//
// The idea: none; one thread per element. A token outside the table gives a row of NaN.
// Owner: block (r, i) owns elements i blockDim.x on of row r. Bound by: latency; a decoder embeds a
// few rows.
// Requires: gridDim.x = rows; the alignment of linear.
#include "../quantised/formats/weights.cuh"

#include "decode_arguments.h"

template <typename Q> __device__ inline void embed(embed_arguments a) {
    const int token = ((const int *)a.tokens)[blockIdx.x];
    const bool known = token >= 0 && (uint32_t)token < a.table_rows;
    const uint8_t *row = (const uint8_t *)a.table + (known ? token : 0) * Q::row_bytes(a.columns);
    float *out = (float *)a.out + blockIdx.x * a.out_stride;
    for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < a.columns;
         i += gridDim.y * blockDim.x) {
        out[i] = known ? Q::element(row, i) : __int_as_float(0x7fffffff);
    }
}

#define EMBED(format)                                                                              \
    extern "C" __global__ void embed_##format(embed_arguments a) {                                 \
        embed<of_##format>(a);                                                                     \
    }

EMBED(f32)
EMBED(f16)
EMBED(bf16)
EMBED(q8_0)
EMBED(q4_k)
EMBED(q5_k)
EMBED(q6_k)
