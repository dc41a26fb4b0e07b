// Five recursions, one row of results each; every thread has another argument.
#include "recursion.h"

extern "C" __global__ void recursion(uint32_t *out, uint32_t count) {
    uint32_t i = threadIdx.x;
    if (i >= count) return;
    out[i] = fibonacci(i % 12);
    out[count + i] = ackermann(i % 3, i % 4);
    out[2 * count + i] = queens((1u << (i % 6 + 1)) - 1, 0, 0, 0);
    out[3 * count + i] = towers_run(i % 6);
    out[4 * count + i] = i % 2 ? male(i % 20) : female(i % 20);
}
