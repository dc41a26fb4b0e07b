// What the kernels of pair share: the two ways to combine elements.
#pragma once

#include "row.cuh"

// Where exp(-in) overflows, the quotient is -0, which is the limit.
struct swiglu {
    __device__ float operator()(float a, float b) const { return a / (1 + expf(-a)) * b; }
};
struct add {
    __device__ float operator()(float a, float b) const { return a + b; }
};
