// Hashes of many short messages, and points in a circle counted with random numbers; see hashes.h.
#include "hashes.h"

__constant__ uint32_t cubes[64] = HASHES_CUBES;
__device__ uint32_t crc_table[256];

extern "C" __global__ void sha256(const uint8_t *messages, uint32_t length, uint32_t *digests,
                                  uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) hashes_sha256(messages + i * length, i % (length + 1), digests + 8 * i, cubes);
}

extern "C" __global__ void make_crc_table() {
    crc_table[threadIdx.x] = hashes_crc_entry(threadIdx.x);
}

extern "C" __global__ void crc32(const uint8_t *messages, uint32_t length, uint32_t *crcs,
                                 uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) crcs[i] = hashes_crc(messages + i * length, length, crc_table);
}

extern "C" __global__ void circle(uint32_t seed, uint32_t rounds, unsigned long long *inside) {
    uint32_t hits = 0;
    for (uint32_t n = 0; n < rounds; n++) {
        uint32_t r[4] = {n, blockIdx.x * blockDim.x + threadIdx.x, 0, 0};
        hashes_philox(r, seed, 42);
        float x = (float)(r[0] >> 8) * 0x1p-24f, y = (float)(r[1] >> 8) * 0x1p-24f;
        hits += x * x + y * y < 1.0f;
        if (n == 0 && blockIdx.x == 0 && threadIdx.x < 4) inside[1 + threadIdx.x] = r[threadIdx.x];
    }
    atomicAdd(inside, hits);
}
