// dequantise of Q4_K to floats with one defect per kernel, for sabotage: claims about dequantise
// must notice each.
//
// The idea: step 1 with a mistake that is easily made. No table offers these kernels; saboteurs
// force them by name.
// Owner and requirements: as step 1.
#include "quant.cuh"

enum mistake { SWAPPED_NIBBLES, NO_MINIMUM, UNWRITTEN_TAIL, CUT_SCALES };

template <mistake MISTAKE>
__device__ inline void planted(const uint8_t *blocks, float *values, uint64_t count) {
    const uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count || (MISTAKE == UNWRITTEN_TAIL && i + 1 == count)) return;
    const uint8_t *block = blocks + i / 256 * Q4_K_BYTES, *scales = block + 4;
    const int at = i % 256, j = at / 32, g = at / 64;
    // SWAPPED_NIBBLES: neighbouring elements share a byte, as in other formats.
    const int byte = block[16 + 32 * g + (MISTAKE == SWAPPED_NIBBLES ? at % 64 / 2 : at % 32)];
    const int q = byte >> (MISTAKE == SWAPPED_NIBBLES ? at % 2 * 4 : j % 2 * 4) & 15;
    const int low = j < 4 ? scales[j] & 63 : scales[j + 4] & 15;
    const int high = j < 4 || MISTAKE == CUT_SCALES ? 0 : scales[j - 4] >> 6 << 4;
    const int m = j < 4 ? scales[j + 4] & 63 : scales[j + 4] >> 4 | scales[j] >> 6 << 4;
    const float minimum = half_value(load_2(block + 2)) * (float)m;
    values[i] = half_value(load_2(block)) * (float)(low | high) * (float)q -
                (MISTAKE == NO_MINIMUM ? 0 : minimum);
}

#define PLANTED(name, mistake)                                                                     \
    extern "C" __global__ void dequantise_planted_##name(const uint8_t *blocks, float *values,     \
                                                         uint64_t count) {                         \
        planted<mistake>(blocks, values, count);                                                   \
    }

PLANTED(nibbles, SWAPPED_NIBBLES)
PLANTED(minimum, NO_MINIMUM)
PLANTED(tail, UNWRITTEN_TAIL)
PLANTED(scales, CUT_SCALES)
