// The products of bytes: quants as they are, by x rounded to bytes, on tensor cores.
//
// The idea: mma.m16n8k32 multiplies 16 rows of 32 quants by eight columns of bytes, and its sums
// are whole numbers, so they are exact in any tile. A sub-block's sum is multiplied by its scale,
// also a whole number; only the sum of a chunk of 256 elements becomes a float. Minimums multiply
// the sums of x in the same way. Few instructions a byte are left, and copies to a ring in shared
// memory, chunks ahead, need no registers. Rows and columns that do not exist are the last ones
// again, and are not written.
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

// The sums of a fragment: rows g and g + 8 of columns 2 t and 2 t + 1.
template <int NT> struct fragment_sums { int of[NT][4]; };

__device__ inline void add_scaled_bytes(int (&sums)[4], const int (&products)[4], int first,
                                        int second) {
#pragma unroll
    for (int i = 0; i < 4; i++) sums[i] += (i < 2 ? first : second) * products[i];
}

// Adds a chunk to the totals: d and dmin are those of rows g and g + 8, scales of columns 2 t and
// 2 t + 1.
template <bool HAS_LEAST>
__device__ inline void add_chunk_total(float (&totals)[4], const int (&sums)[4],
                                       const int (&least)[4], const float (&d)[2],
                                       const float (&dmin)[2], uint32_t scale) {
    const uint32_t t = threadIdx.x % 4;
    const float scales[2] = {__uint_as_float(__shfl_sync(~0u, scale, 8 * t)),
                             __uint_as_float(__shfl_sync(~0u, scale, 8 * t + 4))};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float s = (float)sums[i];
        const float v = HAS_LEAST ? fmaf(d[i / 2], s, -__fmul_rn(dmin[i / 2], (float)least[i]))
                                  : __fmul_rn(d[i / 2], s);
        totals[i] = fmaf(scales[i % 2], v, totals[i]);
    }
}

// What bytes by the sums of 16 neighbours give: those sums are two bytes each.
__device__ inline void sums_by(int (&out)[4], uint32_t a0, uint32_t a1, const uint4 &unit) {
    int high[4];
    mma_bytes_16(out, a0, a1, unit.x);
    mma_bytes_16(high, a0, a1, unit.y);
#pragma unroll
    for (int i = 0; i < 4; i++) out[i] += 128 * high[i];
}

// Byte i of a word as a whole number, without a sign and with one.
__device__ inline int byte_of(uint32_t word, int i) {
    return (int)__byte_perm(word, 0, 0x4440 | i);
}
__device__ inline int signed_byte_of(uint32_t word, int i) {
    int value; // 8 + i: the sign of byte i, eight times
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(value) : "r"(word), "r"(i | (8 | i) * 0x1110));
    return value;
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

    template <int NT, bool LAST, class X>
    static __device__ inline void add(float (&totals)[NT][4], const uint8_t *tile, X &x,
                                      const uint32_t (&)[2]) {
        const uint32_t lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
        uint32_t scales[2][2], minimums[2];
        float d[2], dmin[2];
        fragment_sums<NT> sums = {};
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const uint4 header = *(const uint4 *)(tile + (g + 8 * r) * STRIDE);
            scales[r][0] = header.y & 0x3f3f3f3fu;
            scales[r][1] = (header.w & 0x0f0f0f0fu) | (header.y >> 2 & 0x30303030u);
            const uint32_t four =
                t < 2 ? header.z & 0x3f3f3f3fu
                      : (header.w >> 4 & 0x0f0f0f0fu) | (header.z >> 2 & 0x30303030u);
            minimums[r] = __byte_perm(four, 0, t % 2 == 0 ? 0x1100 : 0x3322);
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
            uint32_t words[4], a[2][4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                words[i] = word_at(own + AT + 32 * p + i % 2 * 8 * STRIDE + i / 2 * 16);
            }
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
                    const int sub = 2 * p + h;
                    int products[4];
                    mma_bytes(products, a[h], h == 0 ? b.x : b.z, h == 0 ? b.y : b.w);
                    add_scaled_bytes(sums.of[n], products, byte_of(scales[0][sub / 4], sub % 4),
                                     byte_of(scales[1][sub / 4], sub % 4));
                }
            }
            if (LAST) x.advance(p);
        }
#pragma unroll
        for (int n = 0; n < NT; n++) {
            int least[4];
            const uint4 unit = x.unit(n);
            sums_by(least, minimums[0], minimums[1], unit);
            add_chunk_total<true>(totals[n], sums.of[n], least, d, dmin, unit.z);
        }
        if (LAST) x.advance_units();
    }
};

// Q6_K: a block begins anywhere in the 16 bytes that are copied with it: at from[0] of row g, and
// at from[1] of row g + 8, even numbers.
struct bytes_q6_k {
    enum { BYTES = Q6_K_BYTES, PIECES = 14, STRIDE = LINEAR_STRIDE_Q6_K };
    static constexpr bool IS_EVEN = false;

    static __device__ inline uint32_t word(const uint8_t *block, uint32_t at, uint32_t shift) {
        const uint8_t *p = block + at;
        return __funnelshift_r(word_at(p), word_at(p + 4), shift);
    }
    // Quants of quarter q from words of ql and qh, without the 32 less that they stand for.
    static __device__ inline uint32_t quants(uint32_t low, uint32_t high, int q) {
        const uint32_t upper = q < 2 ? high << (4 - 2 * q) : high >> (2 * q - 4);
        return ((q < 2 ? low : low >> 4) & 0x0f0f0f0fu) | (upper & 0x30303030u);
    }
    template <int NT, bool LAST, class X>
    static __device__ inline void add(float (&totals)[NT][4], const uint8_t *tile, X &x,
                                      const uint32_t (&from)[2]) {
        const uint32_t lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
        const uint8_t *block[2]; // at a multiple of 4, and by how many bits the words are shifted
        uint32_t shift[2], own_scales[2];
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
            own_scales[r] = word(block[r], 192 + 4 * t, shift[r]);
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
                    __shfl_sync(~0u, own_scales[i % 2], (lane & ~3u) + 2 * half + i / 2);
            }
#pragma unroll
            for (int part = 0; part < 2; part++) {
                uint32_t low[2][2];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    low[i / 2][i % 2] = word(
                        block[i % 2], 64 * half + 32 * part + 16 * (i / 2) + 4 * t, shift[i % 2]);
                }
#pragma unroll
                for (int upper = 0; upper < 2; upper++) {
                    const int quarter = part + 2 * upper, sub = 4 * half + quarter;
#pragma unroll
                    for (int step = 0; step < 2; step++) {
                        const uint32_t a0 = quants(low[step][0], high[step][0], quarter);
                        const uint32_t a1 = quants(low[step][1], high[step][1], quarter);
                        const int at = quarter % 2 * 2 + step;
                        const int first = signed_byte_of(scales[0][quarter / 2], at);
                        const int second = signed_byte_of(scales[1][quarter / 2], at);
#pragma unroll
                        for (int n = 0; n < NT; n++) {
                            const uint4 b = x.numbers(n, sub / 2);
                            const uint32_t of_step =
                                sub % 2 == 0 ? (step == 0 ? b.x : b.y) : (step == 0 ? b.z : b.w);
                            int products[4];
                            mma_bytes_16(products, a0, a1, of_step);
                            add_scaled_bytes(sums.of[n], products, first, second);
                        }
                    }
                }
            }
            if (LAST) x.advance(2 * half), x.advance(2 * half + 1);
        }
#pragma unroll
        for (int n = 0; n < NT; n++) {
            int scaled[4];
            const uint4 unit = x.unit(n);
            sums_by(scaled, own_scales[0], own_scales[1], unit);
#pragma unroll
            for (int i = 0; i < 4; i++) sums.of[n][i] -= 32 * scaled[i];
            add_chunk_total<false>(totals[n], sums.of[n], no_least, d, none, unit.z);
        }
        if (LAST) x.advance_units();
    }
};

// Tiles of 16 rows of W, or one of W and one of G, by the pieces of 16 bytes that a lane copies.
template <typename Q, bool GATED, int TILES> struct bytes_rows {
    enum {
        ALL = 16 * Q::PIECES,
        COPIES = ceil_div(ALL, WARP),
        OWN_TILES = GATED ? 1 : TILES, // of one matrix
        IN_LINE = Q::STRIDE == 16 * Q::PIECES
    };
    const uint8_t *first[GATED ? 2 : 1], *end[GATED ? 2 : 1]; // the first row; the matrix's end
    uint32_t at[OWN_TILES][COPIES], to[COPIES];               // a lane's pieces from there on
    uint32_t begin[OWN_TILES][2];                             // rows g and g + 8

    __device__ inline bytes_rows(const linear_arguments &a, uint32_t row) {
        const uint32_t lane = threadIdx.x % WARP, row_bytes = a.k / CHUNK * Q::BYTES;
#pragma unroll
        for (int m = 0; m < (GATED ? 2 : 1); m++) {
            const uint8_t *matrix = (const uint8_t *)(m == 0 ? a.weights : a.gate);
            first[m] = matrix + (uint64_t)row * row_bytes;
            end[m] = matrix + (uint64_t)a.rows * row_bytes;
        }
#pragma unroll
        for (uint32_t m = 0; m < OWN_TILES; m++) {
#pragma unroll
            for (uint32_t j = 0; j < COPIES; j++) {
                const uint32_t i = lane + j * WARP, r = i / Q::PIECES;
                at[m][j] =
                    (min(row + 16 * m + r, a.rows - 1) - row) * row_bytes + i % Q::PIECES * 16;
                to[j] = r * Q::STRIDE + i % Q::PIECES * 16;
            }
#pragma unroll
            for (uint32_t r = 0; r < 2; r++) {
                begin[m][r] = (min(row + 16 * m + lane / 4 + 8 * r, a.rows - 1) - row) * row_bytes;
            }
        }
    }
    // What surrounds a block of Q6_K is copied too, but nothing behind the matrix: CLIPS.
    template <bool CLIPS> __device__ inline void copy_tiles(uint32_t slot, uint32_t chunk) const {
        const uint32_t lane = threadIdx.x % WARP;
#pragma unroll
        for (int m = 0; m < TILES; m++) {
            const uint8_t *from = first[GATED ? m : 0] + chunk * Q::BYTES;
            const uint32_t tile = slot + m * 16 * Q::STRIDE;
#pragma unroll
            for (uint32_t j = 0; j < COPIES; j++) {
                if (ALL % WARP != 0 && j == COPIES - 1 && lane + j * WARP >= ALL) continue;
                const uint8_t *piece = from + at[GATED ? 0 : m][j];
                const uint32_t there = tile + (IN_LINE ? (lane + j * WARP) * 16 : to[j]);
                if (!Q::IS_EVEN) piece = (const uint8_t *)((uint64_t)piece & ~15ull);
                int bytes = 16;
                if (CLIPS) {
                    const int64_t left = end[GATED ? m : 0] - piece;
                    bytes = left < 16 ? (left > 0 ? (int)left : 0) : 16;
                    if (bytes == 0) piece = (const uint8_t *)((uint64_t)from & ~15ull);
                }
                copy_async_16(there, piece, bytes);
            }
        }
    }
    __device__ inline void copy(uint32_t slot, uint32_t chunk, bool is_last) const {
        if (!Q::IS_EVEN && is_last) {
            copy_tiles<true>(slot, chunk);
        } else {
            copy_tiles<false>(slot, chunk);
        }
    }
    // Where the blocks of rows g and g + 8 of a tile begin in what was copied.
    __device__ inline void begins(uint32_t (&from)[2], int m, uint32_t chunk) const {
#pragma unroll
        for (uint32_t r = 0; r < 2; r++) {
            from[r] = Q::IS_EVEN ? 0
                                 : ((uint32_t)(uint64_t)first[GATED ? m : 0] + chunk * Q::BYTES +
                                    begin[GATED ? 0 : m][r]) %
                                       16;
        }
    }
};

// Where a lane's parts of x are: of chunk 0 of tile n of columns.
__device__ inline const uint8_t *x_of_lane(const linear_arguments &a, uint32_t column, int n) {
    const uint32_t lane = threadIdx.x % WARP, chunks = a.k / CHUNK;
    const uint32_t own = min(column + n * ROUNDED_COLUMNS + lane / 4, a.columns - 1);
    return rounded_tile(a.split, own, 0, chunks) + (own % ROUNDED_COLUMNS * 4 + lane % 4) * 16;
}

// x of one tile of columns, in registers: as soon as a part was used, that of the lane's next chunk
// is loaded there.
struct x_in_registers {
    const uint8_t *next;
    uint4 all[4], own;

    __device__ inline void advance(int p) { all[p] = *(const uint4 *)(next + p * (WARP * 16)); }
    __device__ inline void advance_units() { own = *(const uint4 *)(next + ROUNDED_UNITS_AT); }
    __device__ inline void advance_all() {
#pragma unroll
        for (int p = 0; p < 4; p++) advance(p);
        advance_units();
    }
    __device__ inline uint4 numbers(int, int p) const {
        return all[p];
    }
    __device__ inline uint4 unit(int) const {
        return own;
    }
};

// x of several tiles: the numbers in shared memory behind the weights of the slot.
template <int NT> struct x_in_shared {
    const uint8_t *tiles;
    uint4 own[NT];

    __device__ inline void advance(int) {}
    __device__ inline void advance_units() {}
    __device__ inline uint4 numbers(int n, int p) const {
        return *(const uint4 *)(tiles + n * ROUNDED_UNITS_AT + p * (WARP * 16) +
                                threadIdx.x % WARP * 16);
    }
    __device__ inline uint4 unit(int n) const { return own[n]; }
};

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

// Rounds the chunk of 256 rows of y that this block belongs to, if it is the last of its blocks.
__device__ inline void round_chunk(const linear_bytes_arguments &all, uint32_t row, uint32_t column,
                                   uint32_t columns) {
    __shared__ bool is_last;
    const linear_arguments &a = all.linear;
    const uint32_t chunks = a.rows / CHUNK, chunk = row / CHUNK, lane = threadIdx.x % WARP;
    __threadfence(); // y is seen by who takes a later ticket
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t *ticket = (uint32_t *)all.tickets + blockIdx.y * chunks + chunk;
        is_last = atomicAdd(ticket, 1) == CHUNK / 16 - 1;
        if (is_last) *ticket = 0;
    }
    __syncthreads(); // is_last is there
    if (!is_last) return;
    __threadfence();
    for (uint32_t c = column + threadIdx.x / WARP; c < min(column + columns, a.columns);
         c += LINEAR_BYTES_WARPS) {
        const float *y = (const float *)a.y + c * a.y_stride + chunk * CHUNK + lane * OWN;
        float own[OWN];
#pragma unroll
        for (int i = 0; i < OWN; i++) own[i] = __ldcg(y + i);
        put_rounded(rounded_tile(all.rounded, c, chunk, chunks), c % ROUNDED_COLUMNS, own);
    }
}

// What a warp copies of x: the numbers of chunk `chunk` of NT tiles.
template <int NT>
__device__ inline void copy_x(uint32_t to, const uint8_t *const (&x)[NT], uint32_t chunk) {
#pragma unroll
    for (int n = 0; n < NT; n++) {
#pragma unroll
        for (int p = 0; p < 4; p++) {
            copy_async_16(to + n * ROUNDED_UNITS_AT + p * (WARP * 16) + threadIdx.x % WARP * 16,
                          x[n] + (uint64_t)chunk * ROUNDED_CHUNK + p * (WARP * 16), 16);
        }
    }
}

template <typename Q, bool GATED, int TILES, int NT, int STAGES>
__device__ inline void linear_bytes(const linear_bytes_arguments &all) {
    const linear_arguments &a = all.linear;
    enum {
        WEIGHTS = TILES * 16 * Q::STRIDE,
        SLOT = WEIGHTS + (NT > 1 ? NT * (int)ROUNDED_UNITS_AT : 0),
        SHARES = LINEAR_BYTES_WARPS
    };
    extern __shared__ uint4 shared[];
    const uint32_t warp = threadIdx.x / WARP, chunks = a.k / CHUNK;
    const uint32_t row = blockIdx.x * (GATED ? 16 : TILES * 16), column = blockIdx.y * NT * 8;
    const bytes_rows<Q, GATED, TILES> rows(a, row);
    uint8_t *const ring = (uint8_t *)shared + warp * STAGES * SLOT;
    const uint32_t ring_at = shared_address(ring);
    const uint8_t *x_at[NT];
    x_in_registers x;
    float totals[TILES][NT][4] = {};
#pragma unroll
    for (int n = 0; n < NT; n++) x_at[n] = x_of_lane(a, column, n);
    // Only the last block of the last row has no other one behind it.
    const uint32_t clips = row + (GATED ? 16 : TILES * 16) >= a.rows ? chunks - 1 : chunks;
    begin_early();
#pragma unroll 1
    for (uint32_t s = 0; s < STAGES; s++) {
        const uint32_t chunk = warp + s * SHARES;
        if (chunk < chunks) rows.copy(ring_at + s * SLOT, chunk, chunk == clips);
        if (NT == 1) copy_async_commit();
    }
    wait_in_front();
    if (NT > 1) {
        copy_async_commit();
#pragma unroll 1
        for (uint32_t s = 0; s < STAGES; s++) {
            const uint32_t chunk = warp + s * SHARES;
            if (chunk < chunks) copy_x<NT>(ring_at + s * SLOT + WEIGHTS, x_at, chunk);
            copy_async_commit();
        }
    } else if (warp < chunks) {
        x.next = x_at[0] + (uint64_t)warp * ROUNDED_CHUNK;
        x.advance_all();
    }
    uint32_t slot = 0;
#pragma unroll 1
    for (uint32_t chunk = warp; chunk < chunks; chunk += SHARES) {
        const uint8_t *tile = ring + slot * SLOT;
        x_in_shared<NT> tiles;
        if constexpr (NT > 1) {
            tiles.tiles = tile + WEIGHTS;
#pragma unroll
            for (int n = 0; n < NT; n++) {
                tiles.own[n] =
                    *(const uint4 *)(x_at[n] + (uint64_t)chunk * ROUNDED_CHUNK + ROUNDED_UNITS_AT);
            }
        } else if (chunk + SHARES < chunks) { // the last one is loaded again
            x.next += SHARES * ROUNDED_CHUNK;
        }
        copy_async_wait<STAGES - 1>();
        __syncwarp(); // what other lanes copied is there
#pragma unroll
        for (int m = 0; m < TILES; m++) {
            uint32_t from[2];
            rows.begins(from, m, chunk);
            const uint8_t *own = tile + m * 16 * Q::STRIDE;
            if constexpr (NT > 1) {
                Q::template add<NT, false>(totals[m], own, tiles, from);
            } else if (m == TILES - 1) {
                Q::template add<NT, true>(totals[m], own, x, from);
            } else {
                Q::template add<NT, false>(totals[m], own, x, from);
            }
        }
        __syncwarp(); // all lanes have read the slot
        const uint32_t ahead = chunk + STAGES * SHARES;
        if (ahead < chunks) {
            rows.copy(ring_at + slot * SLOT, ahead, ahead == clips);
            if constexpr (NT > 1) copy_x<NT>(ring_at + slot * SLOT + WEIGHTS, x_at, ahead);
        }
        copy_async_commit();
        slot = slot + 1 == STAGES ? 0 : slot + 1;
    }
    copy_async_wait_all();
    __syncthreads(); // the rings are not needed any more
    put_block<GATED, TILES, NT>(a, row, column, totals, (float *)shared);
    if (GATED && all.rounded != 0) round_chunk(all, row, column, NT * 8);
}
#else
template <typename Q, bool GATED, int TILES, int NT, int STAGES>
__device__ inline void linear_bytes(const linear_bytes_arguments &) {}
#endif

// Beside one tile of columns, and beside four.
#define LINEAR_BYTES(ending, format, Q)                                                            \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 2)                      \
        linear_bytes_##format##_1##ending(linear_bytes_arguments a) {                              \
        linear_bytes<Q, false, 1, 1, LINEAR_BYTES_STAGES(Q::STRIDE)>(a);                           \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 2)                      \
        linear_bytes_gated_##format##_1##ending(linear_bytes_arguments a) {                        \
        linear_bytes<Q, true, 2, 1, 2>(a);                                                         \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 1)                      \
        linear_bytes_##format##_4##ending(linear_bytes_arguments a) {                              \
        linear_bytes<Q, false, LINEAR_BYTES_TILES(Q::STRIDE), 4, 2>(a);                            \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 1)                      \
        linear_bytes_gated_##format##_2##ending(linear_bytes_arguments a) {                        \
        linear_bytes<Q, true, 2, 2, 2>(a);                                                         \
    }
