// The products of bytes: quants as they are, by x rounded to bytes, on tensor cores.
//
// The idea: mma.m16n8k32 multiplies 16 rows of 32 quants by eight columns of bytes, and its sums
// are whole numbers, so they are exact in any tile. A sub-block's sum is multiplied by its scale,
// also a whole number; only the sum of a chunk of 256 elements becomes a float. Minimums multiply
// the sums of x in the same way. Few instructions a byte are left, and copies to a ring in shared
// memory, chunks ahead, need no registers.
// An element of y: of chunk c let s be the sum of scales by products and m that of minimums by sums
// of x, as floats; v = fma(d, s, -(dmin m)); the chunk adds fma(scale of x, v, sum) to the sum of
// share c % 8, from the first chunk on. Shares are added in order.
// Owner: block (i, j) owns TILES x 16 rows from there on (16 of each matrix for the gated ones) and
// 8 NT columns; warp w has share w.
// Bound by: reads of W.
#pragma once

#include "early.cuh"
#include "rounded.cuh"
#include "split.cuh"

#if __CUDA_ARCH__ >= 800
// c = a b of 16 x 8 x 32 bytes, and of 16 x 8 x 16.
__device__ inline void mma_bytes(int (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
                 : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(0));
}
__device__ inline void mma_bytes_16(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
                 "{%4, %5}, {%6}, {%7, %7, %7, %7};"
                 : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
                 : "r"(a0), "r"(a1), "r"(b), "r"(0));
}

// x of a chunk and a tile of eight columns, as a lane needs it.
struct rounded_part {
    uint4 numbers[4]; // of sub-blocks 2 p and 2 p + 1
    uint32_t sums;
    float2 scales; // of columns 2 t and 2 t + 1
};

// The sums of a fragment: rows g and g + 8 of columns 2 t and 2 t + 1.
template <int NT> struct fragment_sums {
    int of[NT][4];
};

__device__ inline void add_scaled_bytes(int (&sums)[4], const int (&products)[4], int first,
                                        int second) {
#pragma unroll
    for (int i = 0; i < 4; i++) sums[i] += (i < 2 ? first : second) * products[i];
}

// Adds a chunk to the totals: d and dmin are those of rows g and g + 8.
template <bool HAS_LEAST>
__device__ inline void add_chunk_total(float (&totals)[4], const int (&sums)[4],
                                       const int (&least)[4], const float (&d)[2],
                                       const float (&dmin)[2], float2 scales) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float s = (float)sums[i];
        const float v = HAS_LEAST ? fmaf(d[i / 2], s, -__fmul_rn(dmin[i / 2], (float)least[i]))
                                  : __fmul_rn(d[i / 2], s);
        totals[i] = fmaf(i % 2 == 0 ? scales.x : scales.y, v, totals[i]);
    }
}

__device__ inline uint32_t word_at(const uint8_t *p) {
    return *(const uint32_t *)p;
}

// Q4_K and Q5_K: 16 rows of a chunk in shared memory, STRIDE bytes each. Strides are such that the
// words of eight rows lie in different banks.
template <bool FIFTH> struct bytes_k {
    enum {
        BYTES = FIFTH ? (int)Q5_K_BYTES : (int)Q4_K_BYTES,
        AT = FIFTH ? 48 : 16,
        PIECES = BYTES / 16,
        STRIDE = FIFTH ? (int)LINEAR_STRIDE_Q5_K : (int)LINEAR_STRIDE_Q4_K
    };
    static constexpr bool IS_EVEN = true; // blocks begin at multiples of 16 bytes

    template <int NT, class X>
    static __device__ inline void add(float (&totals)[NT][4], const uint8_t *tile, const X &x,
                                      const uint32_t (&)[2]) {
        const uint32_t lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
        uint32_t scales[2][2], minimums[2];
        float d[2], dmin[2];
        fragment_sums<NT> sums = {}, least;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const uint4 header = *(const uint4 *)(tile + (g + 8 * r) * STRIDE);
            scales[r][0] = header.y & 0x3f3f3f3fu;
            scales[r][1] = (header.w & 0x0f0f0f0fu) | (header.y >> 2 & 0x30303030u);
            minimums[r] = t % 2 == 0
                              ? header.z & 0x3f3f3f3fu
                              : (header.w >> 4 & 0x0f0f0f0fu) | (header.z >> 2 & 0x30303030u);
            const float2 both = q4_k_d(header);
            d[r] = both.x, dmin[r] = both.y;
        }
        const uint8_t *own = tile + g * STRIDE + 4 * t;
        uint32_t fifth[4];
#pragma unroll
        for (int i = 0; FIFTH && i < 4; i++) {
            fifth[i] = word_at(own + 16 + i % 2 * 8 * STRIDE + i / 2 * 16);
        }
#pragma unroll
        for (int p = 0; p < 4; p++) { // two sub-blocks have the same bytes
            uint32_t words[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                words[i] = word_at(own + AT + 32 * p + i % 2 * 8 * STRIDE + i / 2 * 16);
            }
            uint32_t a[2][4];
#pragma unroll
            for (int h = 0; h < 2; h++) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    a[h][i] = words[i] >> 4 * h & 0x0f0f0f0fu;
                    if (FIFTH) a[h][i] |= (fifth[i] >> (2 * p + h) & 0x01010101u) << 4;
                }
            }
#pragma unroll
            for (int n = 0; n < NT; n++) {
                const uint4 b = x.numbers(n, p);
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int sub = 2 * p + h, at = sub % 4 * 8;
                    int products[4];
                    mma_bytes(products, a[h], h == 0 ? b.x : b.z, h == 0 ? b.y : b.w);
                    add_scaled_bytes(sums.of[n], products, scales[0][sub / 4] >> at & 0xff,
                                     scales[1][sub / 4] >> at & 0xff);
                }
            }
        }
#pragma unroll
        for (int n = 0; n < NT; n++) { // lanes t < 2 have lower bytes of sums, the others higher
            int high[4];
            const uint32_t b = x.sums(n);
            mma_bytes_16(least.of[n], t < 2 ? minimums[0] : 0, t < 2 ? minimums[1] : 0, b);
            mma_bytes_16(high, t < 2 ? 0 : minimums[0], t < 2 ? 0 : minimums[1], b);
#pragma unroll
            for (int i = 0; i < 4; i++) least.of[n][i] += 128 * high[i];
            add_chunk_total<true>(totals[n], sums.of[n], least.of[n], d, dmin, x.scales(n));
        }
    }
};

// Q6_K: a block begins anywhere in the 16 bytes that are copied with it: at from[0] of row g, and
// at from[1] of row g + 8, even numbers.
struct bytes_q6_k {
    enum { BYTES = Q6_K_BYTES, PIECES = 14, STRIDE = LINEAR_STRIDE_Q6_K };
    static constexpr bool IS_EVEN = false;

    static __device__ inline uint32_t word(const uint8_t *block, uint32_t at, uint32_t shift) {
        const uint8_t *p = block + at;
        return __funnelshift_r(word_at(p), shift != 0 ? word_at(p + 4) : 0, shift);
    }
    template <int NT, class X>
    static __device__ inline void add(float (&totals)[NT][4], const uint8_t *tile, const X &x,
                                      const uint32_t (&from)[2]) {
        const uint32_t lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
        const uint8_t *block[2]; // at a multiple of 4, and by how many bits the words are shifted
        uint32_t shift[2];
        float d[2];
        const float none[2] = {};
        const int no_least[4] = {};
        fragment_sums<NT> sums = {};
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const uint8_t *begin = tile + (g + 8 * r) * STRIDE + from[r];
            block[r] = begin - from[r] % 4;
            shift[r] = from[r] % 4 * 8;
            d[r] = half_value(*(const uint16_t *)(begin + 208));
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t high[2][2];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                high[i / 2][i % 2] =
                    word(block[i % 2], 128 + 32 * half + 16 * (i / 2) + 4 * t, shift[i % 2]);
            }
            uint32_t scales[2][2]; // by row, of quarters 0 and 1, and of 2 and 3
#pragma unroll
            for (int i = 0; i < 4; i++) {
                scales[i % 2][i / 2] =
                    word(block[i % 2], 192 + 8 * half + 4 * (i / 2), shift[i % 2]);
            }
#pragma unroll
            for (int part = 0; part < 2; part++) {
                uint32_t low[2][2];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    low[i / 2][i % 2] = word(block[i % 2],
                                             64 * half + 32 * part + 16 * (i / 2) + 4 * t,
                                             shift[i % 2]);
                }
#pragma unroll
                for (int upper = 0; upper < 2; upper++) {
                    const int quarter = part + 2 * upper, sub = 4 * half + quarter;
#pragma unroll
                    for (int step = 0; step < 2; step++) {
                        const uint32_t a0 = q6_k_four(low[step][0], high[step][0], quarter);
                        const uint32_t a1 = q6_k_four(low[step][1], high[step][1], quarter);
                        const int at = (quarter % 2 * 2 + step) * 8;
                        const int first = (int8_t)(scales[0][quarter / 2] >> at);
                        const int second = (int8_t)(scales[1][quarter / 2] >> at);
#pragma unroll
                        for (int n = 0; n < NT; n++) {
                            const uint4 b = x.numbers(n, sub / 2);
                            const uint32_t of_step = sub % 2 == 0 ? (step == 0 ? b.x : b.y)
                                                                  : (step == 0 ? b.z : b.w);
                            int products[4];
                            mma_bytes_16(products, a0, a1, of_step);
                            add_scaled_bytes(sums.of[n], products, first, second);
                        }
                    }
                }
            }
        }
#pragma unroll
        for (int n = 0; n < NT; n++) {
            add_chunk_total<false>(totals[n], sums.of[n], no_least, d, none, x.scales(n));
        }
    }
};

// Rows of W, and of G, by the pieces of 16 bytes that a lane copies.
template <typename Q, int TILES> struct bytes_rows {
    enum { ALL = TILES * 16 * Q::PIECES, COPIES = ceil_div(ALL, WARP) };
    const uint8_t *first, *second; // the first row of each half of the tiles
    const uint8_t *ends[2];        // behind the last byte of each matrix
    uint32_t at[COPIES];           // from there
    uint32_t is_row;               // bit j: the row exists

    // rows: how many there are from the first one on, for each matrix.
    __device__ inline bytes_rows(const linear_arguments &a, uint32_t row, bool gated) {
        const uint32_t lane = threadIdx.x % WARP;
        const uint32_t row_bytes = a.k / CHUNK * Q::BYTES;
        first = (const uint8_t *)a.weights + (uint64_t)row * row_bytes;
        second = gated ? (const uint8_t *)a.gate + (uint64_t)row * row_bytes
                       : first + 16 * (uint64_t)row_bytes;
        ends[0] = (const uint8_t *)a.weights + (uint64_t)a.rows * row_bytes;
        ends[1] = gated ? (const uint8_t *)a.gate + (uint64_t)a.rows * row_bytes : ends[0];
        is_row = 0;
#pragma unroll
        for (uint32_t j = 0; j < COPIES; j++) {
            const uint32_t i = lane + j * WARP, r = i / Q::PIECES;
            at[j] = r % 16 * row_bytes + i % Q::PIECES * 16;
            const uint32_t index = row + (gated ? r % 16 : r);
            if (i < ALL && index < a.rows) is_row |= 1u << j;
        }
    }
    __device__ inline void copy(uint32_t slot, uint32_t chunk) const {
        const uint32_t lane = threadIdx.x % WARP;
#pragma unroll
        for (uint32_t j = 0; j < COPIES; j++) {
            const uint32_t i = lane + j * WARP, r = i / Q::PIECES;
            const bool is_second = TILES > 1 && r >= 16;
            const uint8_t *from = (is_second ? second : first) + chunk * Q::BYTES + at[j];
            int bytes = is_row >> j & 1 ? 16 : 0;
            if (!Q::IS_EVEN) {
                from -= (uint64_t)from % 16;
                const int64_t left = ends[is_second] - from;
                bytes = left < bytes ? (left > 0 ? (int)left : 0) : bytes;
            }
            if (bytes == 0) from = first - (uint64_t)first % 16; // not read
            if (i < ALL) copy_async_16(slot + r * Q::STRIDE + i % Q::PIECES * 16, from, bytes);
        }
    }
    // Where the blocks of rows g and g + 8 of a tile begin in what was copied.
    __device__ inline void begins(uint32_t (&from)[2], int tile, uint32_t chunk,
                                  uint32_t row_bytes) const {
        const uint32_t g = threadIdx.x % WARP / 4;
#pragma unroll
        for (uint32_t r = 0; r < 2; r++) {
            const uint32_t base = (uint32_t)(uint64_t)(tile == 0 ? first : second);
            from[r] = Q::IS_EVEN ? 0 : (base + chunk * Q::BYTES + (g + 8 * r) * row_bytes) % 16;
        }
    }
};

// x of one tile of columns: each lane loads its part a chunk ahead.
struct x_in_registers {
    uint4 all[4];
    uint32_t sum;
    float2 scale;

    __device__ inline void load(uint64_t x, uint32_t column, uint32_t columns, uint32_t chunk,
                                uint32_t chunks) {
        const uint32_t lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
        const uint8_t *tile = rounded_tile(x, column, chunk, chunks);
        const bool is_there = column + g < columns;
        const uint4 zeros = {};
#pragma unroll
        for (int p = 0; p < 4; p++) {
            all[p] = is_there ? *(const uint4 *)(tile + p * (WARP * 16) + lane * 16) : zeros;
        }
        sum = is_there ? *(const uint32_t *)(tile + ROUNDED_SUMS_AT + lane * 4) : 0;
        const float *scales = (const float *)(tile + ROUNDED_SCALES_AT) + 2 * t;
        scale.x = column + 2 * t < columns ? scales[0] : 0;
        scale.y = column + 2 * t + 1 < columns ? scales[1] : 0;
    }
    __device__ inline uint4 numbers(int, int p) const { return all[p]; }
    __device__ inline uint32_t sums(int) const { return sum; }
    __device__ inline float2 scales(int) const { return scale; }
};

// x of several tiles, in shared memory behind the weights of the slot.
struct x_in_shared {
    const uint8_t *tiles;

    __device__ inline uint4 numbers(int n, int p) const {
        return *(const uint4 *)(tiles + n * ROUNDED_CHUNK + p * (WARP * 16) +
                                threadIdx.x % WARP * 16);
    }
    __device__ inline uint32_t sums(int n) const {
        return word_at(tiles + n * ROUNDED_CHUNK + ROUNDED_SUMS_AT + threadIdx.x % WARP * 4);
    }
    __device__ inline float2 scales(int n) const {
        return *(const float2 *)(tiles + n * ROUNDED_CHUNK + ROUNDED_SCALES_AT +
                                 threadIdx.x % 4 * 8);
    }
};

// Copies x of a chunk for NT tiles. What belongs to columns that do not exist becomes zeros.
template <int NT>
__device__ inline void copy_x(uint32_t slot, uint64_t x, uint32_t column, uint32_t columns,
                              uint32_t chunk, uint32_t chunks) {
    enum { PIECES = ROUNDED_CHUNK / 16, NUMBERS = ROUNDED_SUMS_AT / 16, SUMS = ROUNDED_COLUMNS };
    for (uint32_t i = threadIdx.x % WARP; i < NT * PIECES; i += WARP) {
        const uint32_t n = i / PIECES, p = i % PIECES, first = column + n * ROUNDED_COLUMNS;
        const int left = (int)(columns - first); // of columns, below 0 if there are none
        const int own = p < NUMBERS ? (int)(p / 4 % 8) : (int)(p - NUMBERS);
        int bytes = own < left ? 16 : 0;
        if (p >= NUMBERS + SUMS) {
            bytes = (left - (int)(p - NUMBERS - SUMS) * 4) * 4;
            bytes = bytes < 0 ? 0 : bytes > 16 ? 16 : bytes;
        }
        const uint8_t *from = rounded_tile(x, left > 0 ? first : column, chunk, chunks) + p * 16;
        copy_async_16(slot + i * 16, from, bytes);
    }
}

template <bool GATED, int TILES, int NT>
__device__ inline void put_block(const linear_arguments &a, uint32_t row, uint32_t column,
                                 const float (&totals)[TILES][NT][4], float *shared) {
    enum { ROWS = TILES * 16, COLUMNS = NT * 8, OUT = GATED ? 16 : (int)ROWS };
    const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
    for (int m = 0; m < TILES; m++) {
#pragma unroll
        for (int n = 0; n < NT; n++) {
#pragma unroll
            for (int i = 0; i < 4; i++) { // [warp][column][row]
                const uint32_t c = n * 8 + lane % 4 * 2 + i % 2;
                const uint32_t r = m * 16 + lane / 4 + i / 2 * 8;
                shared[(warp * COLUMNS + c) * ROWS + r] = totals[m][n][i];
            }
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < OUT * COLUMNS; i += LINEAR_BYTES_WARPS * WARP) {
        const uint32_t r = i % OUT, c = i / OUT;
        if (row + r >= a.rows || column + c >= a.columns) continue;
        float sums[2] = {};
#pragma unroll
        for (int w = 0; w < LINEAR_BYTES_WARPS; w++) {
            sums[0] += shared[(w * COLUMNS + c) * ROWS + r];
            if (GATED) sums[1] += shared[(w * COLUMNS + c) * ROWS + 16 + r];
        }
        put_element<GATED>(a, row + r, column + c, sums[0], sums[1]);
    }
}

template <typename Q, bool GATED, int TILES, int NT, int STAGES>
__device__ inline void linear_bytes(const linear_arguments &a) {
    enum {
        WEIGHTS = TILES * 16 * Q::STRIDE,
        SLOT = WEIGHTS + (NT > 1 ? NT * (int)ROUNDED_CHUNK : 0),
        SHARES = LINEAR_BYTES_WARPS
    };
    extern __shared__ uint4 shared[];
    const uint32_t warp = threadIdx.x / WARP, chunks = a.k / CHUNK;
    const uint32_t row = blockIdx.x * (GATED ? 16 : TILES * 16), column = blockIdx.y * NT * 8;
    const bytes_rows<Q, TILES> rows(a, row, GATED);
    uint8_t *const ring = (uint8_t *)shared + warp * STAGES * SLOT;
    const uint32_t ring_at = shared_address(ring);
    x_in_registers next;
    float totals[TILES][NT][4] = {};
    begin_early();
#pragma unroll
    for (uint32_t s = 0; s < STAGES; s++) {
        const uint32_t chunk = warp + s * SHARES;
        if (chunk < chunks) rows.copy(ring_at + s * SLOT, chunk);
        if (NT == 1) copy_async_commit();
    }
    wait_in_front();
    if (NT > 1) {
        copy_async_commit();
#pragma unroll
        for (uint32_t s = 0; s < STAGES; s++) {
            const uint32_t chunk = warp + s * SHARES;
            if (chunk < chunks) {
                copy_x<NT>(ring_at + s * SLOT + WEIGHTS, a.split, column, a.columns, chunk, chunks);
            }
            copy_async_commit();
        }
    } else if (warp < chunks) {
        next.load(a.split, column, a.columns, warp, chunks);
    }
    uint32_t slot = 0;
    for (uint32_t chunk = warp; chunk < chunks; chunk += SHARES) {
        const uint8_t *tile = ring + slot * SLOT;
        const x_in_registers now = next;
        if (NT == 1 && chunk + SHARES < chunks) {
            next.load(a.split, column, a.columns, chunk + SHARES, chunks);
        }
        copy_async_wait<STAGES - 1>();
        __syncwarp(); // what other lanes copied is there
#pragma unroll
        for (int m = 0; m < TILES; m++) {
            uint32_t from[2];
            rows.begins(from, m, chunk, chunks * Q::BYTES);
            const uint8_t *own = tile + m * 16 * Q::STRIDE;
            if constexpr (NT == 1) {
                Q::template add<NT>(totals[m], own, now, from);
            } else {
                Q::template add<NT>(totals[m], own, x_in_shared{tile + WEIGHTS}, from);
            }
        }
        __syncwarp(); // all lanes have read the slot
        const uint32_t ahead = chunk + STAGES * SHARES;
        if (ahead < chunks) {
            rows.copy(ring_at + slot * SLOT, ahead);
            if (NT > 1) {
                copy_x<NT>(ring_at + slot * SLOT + WEIGHTS, a.split, column, a.columns, ahead,
                           chunks);
            }
        }
        copy_async_commit();
        slot = slot + 1 == STAGES ? 0 : slot + 1;
    }
    copy_async_wait_all();
    __syncthreads(); // the rings are not needed any more
    put_block<GATED, TILES, NT>(a, row, column, totals, (float *)shared);
}
#else
template <typename Q, bool GATED, int TILES, int NT, int STAGES>
__device__ inline void linear_bytes(const linear_arguments &) {}
#endif

// Beside one tile of columns, and beside four.
#define LINEAR_BYTES(ending, format, Q)                                                            \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 2)                      \
        linear_bytes_##format##_1##ending(linear_arguments a) {                                    \
        linear_bytes<Q, false, 1, 1, LINEAR_BYTES_STAGES(Q::STRIDE)>(a);                           \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 2)                      \
        linear_bytes_gated_##format##_1##ending(linear_arguments a) {                              \
        linear_bytes<Q, true, 2, 1, 2>(a);                                                         \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 1)                      \
        linear_bytes_##format##_4##ending(linear_arguments a) {                                    \
        linear_bytes<Q, false, LINEAR_BYTES_TILES(Q::STRIDE), 4, 2>(a);                            \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 1)                      \
        linear_bytes_gated_##format##_2##ending(linear_arguments a) {                              \
        linear_bytes<Q, true, 2, 2, 2>(a);                                                         \
    }
