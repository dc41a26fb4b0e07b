// seal_*: adds key stream to chunks of 16 KiB of device memory, and makes a tag of each.
//
// A unit of 64 bytes has the block of ChaCha's key stream whose counter is its position. The value
// of a chunk is Poly1305's polynomial over its words, then its number and its length, at a secret
// point; its tag is 16 bytes of a ChaCha block that has the value for counter and nonce, so a tag
// says nothing of the value, nor of the point.
//
// The idea: memory is read once. What is read is hashed, decrypted, encrypted again and hashed
// again in registers, so no change of a word between two of these can be missed. A lane owns every
// 32nd unit and steps from one to the next by r^125; lanes are joined by five steps. Lanes count
// from the end, so that only the first row of a chunk may be short.
// Owner: warp w of the grid owns chunk w; lane l every 32nd unit.
// Bound by: integer instructions, 20 rounds are about 1,000 for 64 bytes; tags alone by reads.
// Requires: blockDim = (32 SEAL_WARPS, 1, 1), gridDim.x = chunks / SEAL_WARPS, rounded up.
#include "../tile.cuh"
#include "chacha.cuh"
#include "limbs.h"

// Loads 16 bytes of global memory, which the compiler does not know an address to be of.
__device__ inline uint4 load_16(uint64_t address) {
    uint4 v;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(address));
    return v;
}

// The values of the chunks of a block.
typedef uint32_t seal_values[SEAL_WARPS][4];

__device__ inline void absorb(seal_limbs &sum, const seal_unit &unit, const seal_tagger &tagger) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint4 &p = unit.piece[i];
        const seal_limbs block = limbs_of(p.x, p.y, p.z, p.w);
        const seal_limbs &power = tagger.powers[i == 0 ? SEAL_R125 : SEAL_R];
        const seal_limbs zero = {{0, 0, 0, 0, 0}};
        sum = limbs_step(sum, zero, power);
#pragma unroll
        for (int j = 0; j < 5; j++) sum.at[j] += block.at[j];
    }
}

// The value of a chunk, of the sums of its lanes; in all lanes.
__device__ inline void join(seal_limbs sum, const seal_tagger &tagger, uint64_t chunk,
                            uint32_t level, uint32_t units, uint32_t (&value)[4]) {
    const seal_limbs zero = {{0, 0, 0, 0, 0}};
#pragma unroll
    for (int step = 0; step < 5; step++) {
        const int lanes = 1 << step;
        const bool is_upper = threadIdx.x & lanes;
        seal_limbs lower, upper;
#pragma unroll
        for (int i = 0; i < 5; i++) {
            const uint32_t other = __shfl_xor_sync(~0u, sum.at[i], lanes);
            lower.at[i] = is_upper ? other : sum.at[i];
            upper.at[i] = is_upper ? sum.at[i] : other;
        }
        sum = limbs_step(lower, zero, tagger.powers[SEAL_R4 + step]);
#pragma unroll
        for (int i = 0; i < 5; i++) sum.at[i] += upper.at[i];
    }
    const seal_limbs last = limbs_of((uint32_t)chunk, (uint32_t)(chunk >> 32), level, units);
    sum = limbs_step(sum, zero, tagger.powers[SEAL_R]);
    sum = limbs_step(sum, last, tagger.powers[SEAL_R]);
    limbs_words(sum, value);
}

// Puts the value of the warp's chunk where another thread finds it.
__device__ inline void keep(seal_values &values, const uint32_t (&value)[4]) {
    if (threadIdx.x % WARP != 0) return;
#pragma unroll
    for (int i = 0; i < 4; i++) values[threadIdx.x / WARP][i] = value[i];
}

// Writes the tag of each value of the block, a lane each.
__device__ inline void write_tags(const seal_values &values, const seal_tagger &tagger,
                                  uint64_t tags, uint64_t chunk) {
    uint32_t x[16];
#pragma unroll
    for (int i = 0; i < 12; i++) x[i] = tagger.words[i];
#pragma unroll
    for (int i = 0; i < 4; i++) x[12 + i] = values[threadIdx.x][i];
#pragma unroll 1
    for (int round = 0; round < 20; round += 2) {
        chacha_columns(x);
        chacha_diagonals(x);
    }
    ((uint4 *)tags)[chunk] = {x[0] + tagger.words[0], x[1] + tagger.words[1],
                              x[2] + tagger.words[2], x[3] + tagger.words[3]};
}

template <int FROM, int TO, bool BEFORE, bool AFTER>
__device__ inline void seal_chunks(const seal_chunks_arguments &a) {
    __shared__ seal_values values[2];
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint64_t chunks = (a.units + SEAL_CHUNK_UNITS - 1) / SEAL_CHUNK_UNITS;
    const uint64_t first = (uint64_t)blockIdx.x * SEAL_WARPS, chunk = first + warp;
    if (chunk < chunks) {
        const uint64_t at = chunk * SEAL_CHUNK_UNITS;
        const uint32_t units = (uint32_t)min(a.units - at, (uint64_t)SEAL_CHUNK_UNITS);
        const uint32_t rows = (units + WARP - 1) / WARP;
        seal_limbs before = {{0, 0, 0, 0, 0}}, after = {{0, 0, 0, 0, 0}};
#pragma unroll 1
        for (uint32_t row = 0; row < rows; row++) {
            const int index = (int)(row * WARP + lane) - (int)(rows * WARP - units);
            if (index < 0) continue;
            const uint64_t unit = at + index;
            const uint64_t in = a.in + unit * SEAL_UNIT_BYTES;
            seal_unit data;
#pragma unroll
            for (int i = 0; i < 4; i++) data.piece[i] = load_16(in + 16 * i);
            if (BEFORE) absorb(before, data, a.before);
            const uint32_t counter = a.first_unit + (uint32_t)unit;
            if (FROM > 0) data.add(chacha_at<FROM>(a.from, counter));
            if (TO > 0) data.add(chacha_at<TO>(a.to, counter));
            if (AFTER) absorb(after, data, a.after);
            if (FROM > 0 || TO > 0) {
                uint4 *out = (uint4 *)(a.out + unit * SEAL_UNIT_BYTES);
#pragma unroll
                for (int i = 0; i < 4; i++) out[i] = data.piece[i];
            }
        }
        const uint64_t number = a.first_chunk + chunk;
        uint32_t value[4];
        if (BEFORE) {
            join(before, a.before, number, a.level, units, value);
            keep(values[0], value);
        }
        if (AFTER) {
            join(after, a.after, number, a.level, units, value);
            keep(values[1], value);
        }
    }
    __syncthreads();
    if (threadIdx.x >= SEAL_WARPS || first + threadIdx.x >= chunks) return;
    if (BEFORE) write_tags(values[0], a.before, a.tags_before, first + threadIdx.x);
    if (AFTER) write_tags(values[1], a.after, a.tags_after, first + threadIdx.x);
        // Shared memory keeps what it has for the next kernel, and values would betray the point.
#pragma unroll
    for (int i = 0; i < 4; i++) values[0][threadIdx.x][i] = values[1][threadIdx.x][i] = 0;
}

#define SEAL(name, from, to, before, after)                                                        \
    extern "C" __global__ void __launch_bounds__(SEAL_WARPS *WARP)                                 \
        seal_##name(seal_chunks_arguments a) {                                                     \
        seal_chunks<from, to, before, after>(a);                                                   \
    }

// Tags of what is there; encrypts; decrypts; decrypts and encrypts.
SEAL(tags, 0, 0, true, false)
SEAL(close_20, 0, 20, false, true)
SEAL(close_12, 0, 12, false, true)
SEAL(close_8, 0, 8, false, true)
SEAL(open_20, 20, 0, true, false)
SEAL(open_12, 12, 0, true, false)
SEAL(open_8, 8, 0, true, false)
SEAL(turn_20, 20, 20, true, true)
SEAL(turn_12, 12, 12, true, true)
SEAL(turn_8, 8, 8, true, true)
