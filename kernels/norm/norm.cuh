// What the kernels of norm share: the factor of a row, and how weight and bias change an element.
#pragma once

#include "../row/row.cuh"

__device__ inline float norm_share(float squares, const norm_arguments &x) {
    return 1 / sqrtf(squares / (float)x.columns + x.epsilon);
}

template <typename T>
__device__ inline float norm_parameter(const void *values, long long c, const norm_arguments &x) {
    return x.affine_f32 ? ((const float *)values)[c] : to_float(((const T *)values)[c]);
}

template <typename T>
__device__ inline float norm_affine(float value, long long c, const norm_arguments &x) {
    if (x.weight != nullptr) value *= norm_parameter<T>(x.weight, c, x);
    if (x.bias != nullptr) value += norm_parameter<T>(x.bias, c, x);
    return value;
}

// The same for a piece. Weight and bias stay in the caches, since all rows read them.
template <typename T>
__device__ inline void norm_affine_piece(float (&values)[PIECE<T>], int first,
                                         const norm_arguments &x) {
    const int columns = (int)x.columns;
    auto load = [&](float(&y)[PIECE<T>], const void *parameters) {
        if (x.affine_f32 && sizeof(T) != sizeof(float)) {
            float low[4], high[4];
            load_piece(low, (const float *)parameters, first, columns);
            load_piece(high, (const float *)parameters, first + 4, columns);
#pragma unroll
            for (int i = 0; i < PIECE<T>; i++) y[i] = i < 4 ? low[i % 4] : high[i % 4];
        } else {
            load_piece(y, (const T *)parameters, first, columns);
        }
    };
    // One loop for the weight and then the bias, since the code of load is long.
#pragma unroll 1
    for (int turn = 0; turn < 2; turn++) {
        const void *parameters = turn == 0 ? x.weight : x.bias;
        if (parameters == nullptr) continue;
        float y[PIECE<T>];
        load(y, parameters);
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) {
            values[i] = turn == 0 ? values[i] * y[i] : values[i] + y[i];
        }
    }
}
