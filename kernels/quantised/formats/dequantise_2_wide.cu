// dequantise, step 2: one thread per piece of a block.
//
// The idea: the quants of a piece give stores of 16 bytes. A thread loads PIECES pieces before it
// stores the first, which keeps enough loads in flight. Neighbouring threads have neighbouring
// pieces, so the stores of a warp fill whole lines without shared memory.
// Owner: a block owns PIECES * THREADS consecutive pieces; thread t owns pieces t, t + THREADS, ...
// of these.
// Bound by: writes, and reads of the blocks.
// Requires: blockDim = (256, 1, 1), gridDim.x = pieces / 1024, rounded up; values at a multiple of
// 16 bytes, Q4_K blocks too.
#include "quant.cuh"

enum { PIECES = 4, THREADS = 256 };

// Stores 16 bytes of results, 4 floats or 8 halves: value(i) each.
template <typename T, typename F> __device__ inline void store(T *values, F value) {
    enum { COUNT = 16 / sizeof(T) };
    alignas(16) T made[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) made[i] = from_float<T>(value(i));
    *(uint4 *)values = *(const uint4 *)made;
}

template <typename T> struct piece_q4_k {
    enum { STEP = 16 / sizeof(T), OF_BLOCK = 128 / STEP };
    uint4 header;
    uint32_t qs[STEP / 4];

    __device__ inline void load(const uint8_t *blocks, uint64_t piece) {
        const uint8_t *block = blocks + piece / OF_BLOCK * Q4_K_BYTES;
        const uint32_t *words = (const uint32_t *)(block + 16 + piece % OF_BLOCK * STEP);
        header = __ldg((const uint4 *)block);
#pragma unroll
        for (int i = 0; i < STEP / 4; i++) qs[i] = __ldg(words + i);
    }

    __device__ inline void store_all(T *values, uint64_t piece) const {
        const int at = (int)(piece % OF_BLOCK) * STEP, g = at / 32;
        const q4_k_scales s = q4_k_scales_of(header, g);
        const float2 d = q4_k_d(header);
        T *low = values + piece / OF_BLOCK * 256 + 64 * g + at % 32;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float scale = d.x * (float)(s.scales >> 8 * half & 0xff);
            const float minimum = d.y * (float)(s.minimums >> 8 * half & 0xff);
            store(low + 32 * half, [&](int i) {
                return scale * (float)(qs[i / 4] >> (8 * (i % 4) + 4 * half) & 15) - minimum;
            });
        }
    }
};

template <typename T> struct piece_q6_k {
    enum { STEP = 16 / sizeof(T), OF_BLOCK = 64 / STEP };
    uint32_t ql[2][STEP / 4], qh[STEP / 4];
    uint32_t d, scales[4];

    __device__ inline void load(const uint8_t *blocks, uint64_t piece) {
        const uint8_t *block = blocks + piece / OF_BLOCK * Q6_K_BYTES;
        const int at = (int)(piece % OF_BLOCK) * STEP, half = at / 32, l = at % 32;
#pragma unroll
        for (int i = 0; i < STEP / 4; i++) {
            ql[0][i] = load_4(block + 64 * half + l + 4 * i);
            ql[1][i] = load_4(block + 64 * half + 32 + l + 4 * i);
            qh[i] = load_4(block + 128 + 32 * half + l + 4 * i);
        }
#pragma unroll
        for (int s = 0; s < 4; s++) scales[s] = __ldg(block + 192 + 8 * half + 2 * s + l / 16);
        d = load_2(block + 208);
    }

    __device__ inline void store_all(T *values, uint64_t piece) const {
        const int at = (int)(piece % OF_BLOCK) * STEP;
        T *first = values + piece / OF_BLOCK * 256 + at / 32 * 128 + at % 32;
#pragma unroll
        for (int s = 0; s < 4; s++) {
            const float scale = half_value(d) * (float)(int8_t)scales[s];
            store(first + 32 * s, [&](int i) {
                return scale * byte_value(q6_k_four(ql[s % 2][i / 4], qh[i / 4], s), i % 4);
            });
        }
    }
};

template <typename T> struct piece_q8_0 {
    enum { STEP = 16 / sizeof(T), OF_BLOCK = 32 / STEP };
    uint32_t qs[STEP / 4], d;

    __device__ inline void load(const uint8_t *blocks, uint64_t piece) {
        const uint8_t *block = blocks + piece / OF_BLOCK * Q8_0_BYTES;
#pragma unroll
        for (int i = 0; i < STEP / 4; i++) {
            qs[i] = load_4(block + 2 + piece % OF_BLOCK * STEP + 4 * i);
        }
        d = load_2(block);
    }

    __device__ inline void store_all(T *values, uint64_t piece) const {
        const float scale = half_value(d);
        store(values + piece * STEP, [&](int i) { return scale * byte_value(qs[i / 4], i % 4); });
    }
};

// A block owns PIECES * THREADS consecutive pieces; those of a thread are THREADS apart.
template <typename P, typename T>
__device__ inline void wide(const uint8_t *blocks, T *values, uint64_t block_count) {
    const uint64_t count = block_count * P::OF_BLOCK;
    const uint64_t first = (uint64_t)blockIdx.x * (PIECES * THREADS) + threadIdx.x;
    P pieces[PIECES];
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        if (first + i * THREADS < count) pieces[i].load(blocks, first + i * THREADS);
    }
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        if (first + i * THREADS < count) pieces[i].store_all(values, first + i * THREADS);
    }
}

#define WIDE(quant, name, type)                                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        dequantise_wide_##quant##_##name(const uint8_t *blocks, type *values, uint64_t count) {    \
        wide<piece_##quant<type>>(blocks, values, count / quant::ELEMENTS);                        \
    }

WIDE(q4_k, f32, float)
WIDE(q6_k, f32, float)
WIDE(q8_0, f32, float)
WIDE(q4_k, f16, __half)
WIDE(q6_k, f16, __half)
WIDE(q8_0, f16, __half)
