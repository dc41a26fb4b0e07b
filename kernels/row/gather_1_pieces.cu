// gather: out[r][c] = table[indices[r]][c], as in an embedding.
//
// The idea: rows move by pieces of 16 bytes (row.cuh). A row of an index outside the table becomes
// NaN, so that it cannot pass for a result.
// Owner: block r owns row r of out; thread t its pieces t, t + blockDim.x, ...
// Bound by: memory. Requires: gridDim.x = rows; any alignment.
#include "row.cuh"

template <typename T> __device__ inline void gather(const gather_arguments &x) {
    const long long row = blockIdx.x;
    const int index = ((const int *)x.indices)[row];
    const bool known = index >= 0 && index < x.table_rows;
    const T *from = (const T *)x.table + (known ? index : 0) * x.table_stride;
    T *out = (T *)x.out + row * x.out_stride;
    long long first = (long long)threadIdx.x * PIECE<T> - elements_before(from);
    for (; first < x.columns; first += (long long)blockDim.x * PIECE<T>) {
        float values[PIECE<T>];
        load_piece(values, from, first, x.columns);
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) values[i] = known ? values[i] : NAN;
        store_piece(values, out, first, x.columns);
    }
}

extern "C" __global__ void gather_f32(gather_arguments x) {
    gather<float>(x);
}
extern "C" __global__ void gather_f16(gather_arguments x) {
    gather<__half>(x);
}
extern "C" __global__ void gather_bf16(gather_arguments x) {
    gather<__nv_bfloat16>(x);
}
