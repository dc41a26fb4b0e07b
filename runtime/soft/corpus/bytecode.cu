// Each thread runs the same bytes from another seed; see bytecode.h.
#include "bytecode.h"

extern "C" __global__ void bytecode(const uint8_t *code, uint32_t *out, uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = bytecode_run(code, i);
}
