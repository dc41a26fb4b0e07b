// quant product, step 10: 2 to 8 columns of Q4_K as bytes on tensor cores, with bulk copies.
// Target: compute_90
//
// The idea: mma.m16n8k32 multiplies 16 rows of 32 quants, which are one sub-block with one scale,
// by eight columns of bytes. A persistent thread block has four producer warps, which fill a ring
// with weights and x, and 16 consumer warps, which split k: each owns a group of 64 elements of two
// blocks of each slot, and their sums meet once per tile. A row of a slot is one copy of 1,152
// bytes, and the products of one of its two blocks hide the latency of the other. Twice the number
// of slots of half the size, with x requested before any weights, was slower on an H100. The order
// of the 32 elements of a step is free, so a lane takes eight neighbours of a row as they are
// stored, and the prologue, which rounds x, stores x in this order. The high halves of bytes of
// weights are not shifted down: their sums are 16 times too large, and so is 1 / scale. Sums begin
// at the bits of 1.5 * 2^23 as a float, so they are floats without a conversion. For the minimums
// the prologue also stores the sums of x. All of x in shared memory would leave too little for
// weights (8 columns with k = 14336), and would limit k. A block has some 31 of 4096 rows, so it
// reads x once, from L2.
// Owner: a block owns tiles of up to 32 rows. Tiles have one height, so that all blocks read the
// same number of bytes. A warp of quant_product_columns_x owns some 32 neighbours of a column of x,
// one after the other.
// Registers: ptxas 13.0 gives 95 per thread, and 640 threads may have 96; it spills none. Shared
// memory: 187 KiB. A warp has 274 instructions per slot, which is 32 rows of two times 64 weights:
// 2.1 per weight of a lane. 176 multiply, 61 read and make scales, 37 do the rest.
// Bound by: reads of the weights.
// Requires: blockDim = (KN_QUANT_COLUMNS_THREADS, 1, 1), gridDim.x at most the multiprocessors and
// at most the rows, KN_QUANT_COLUMNS_BYTES of dynamic shared memory, 1 to 8 columns, weights at a
// multiple of 16 bytes, and 320 bytes of workspace per 256 elements of x. It may be launched by PDL
// only after quant_product_columns_x, which itself is not: the kernel does not wait before it reads
// weights. quant_product_columns_x: blockDim.x = KN_QUANT_COLUMNS_X_THREADS, gridDim.y = columns.
// If its blocks are at most the multiprocessors, its 32 registers per thread allow a block of the
// product beside each, which copies weights meanwhile.
#include "../../hopper.cuh"
#include "quant_product_rounded.cuh"
#include "quant_product_staged.cuh"

#if __CUDA_ARCH__ >= 900
enum {
    ROWS = KN_QUANT_COLUMNS_ROWS,
    WARPS = KN_QUANT_COLUMNS_WARPS, // that multiply
    COPIERS = KN_QUANT_COLUMNS_COPIERS,
    SLOTS = KN_QUANT_COLUMNS_SLOTS,
    SLOT_BYTES = KN_QUANT_COLUMNS_SLOT_BYTES,
    GROUPS = 4,             // of 64 elements, of a block
    APART = WARPS / GROUPS, // blocks from the first to the next of a warp, which has a group of it
    STEP = 2 * APART,       // blocks of a slot
    X_BYTES = 320,          // of a block of x in one column: scales and sums, then quants
    TOGETHER = 1,           // the named barrier of the warps that multiply
    SLOT_FULL = SLOT_BYTES - 16, // the barriers of a slot, after its x
    SLOT_EMPTY = SLOT_BYTES - 8
};

// Where a row of a slot is. Four rows with 32 bytes between them take all banks; 16 bytes between
// fours, so that the headers of eight rows do so too.
__device__ constexpr uint32_t row_at(uint32_t row) {
    return row * (STEP * Q4_K_BYTES + 32) + row / 4 * 16;
}
static_assert(row_at(ROWS) + STEP * KN_QUANT_COLUMNS_MOST * X_BYTES == SLOT_FULL, "as there");

// Where the blocks of x of all columns are, for a block of weights: for each group and column two
// scales, and the sums of its two 32 quants times these scales; then for each group and column 64
// quants, which are four times eight of its first 32 elements and eight of the others.
__device__ inline uint32_t x_scales(uint32_t columns, uint32_t group, uint32_t column) {
    return (group * columns + column) * 16;
}
__device__ inline uint32_t x_quants(uint32_t columns, uint32_t group, uint32_t column) {
    return 64 * columns + (group * columns + column) * 64;
}

// The tiles of the grid: as few rounds as 32 rows at a time allow, and all of one height.
struct columns_tiles {
    uint32_t height, steps; // rows; slots of a tile
    uint32_t of_block;      // tiles of this block

    __device__ inline explicit columns_tiles(const kn_quant_product_arguments &a) {
        const uint32_t rounds = (a.rows - 1) / (gridDim.x * ROWS) + 1;
        height = (a.rows - 1) / (gridDim.x * rounds) + 1;
        steps = (a.blocks + STEP - 1) / STEP;
        const uint32_t count = (a.rows - 1) / height + 1;
        of_block = blockIdx.x < count ? (count - blockIdx.x - 1) / gridDim.x + 1 : 0;
    }

    __device__ inline uint32_t first_row(uint32_t tile) const {
        return (blockIdx.x + tile * gridDim.x) * height;
    }
};

// What is at an address of shared memory. From an address that a register keeps, the others are a
// sum or a load's offset; from a pointer they would be made anew for each slot.
template <typename T> __device__ inline T *at_shared(uint32_t address) {
    return (T *)__cvta_shared_to_generic(address);
}

// Keeps a number in a register, where the compiler would compute it again for each slot.
__device__ inline void keep(uint32_t &x) {
    asm("" : "+r"(x));
}

// A slot of the ring, and the parity of the phase that is waited for.
struct columns_slot {
    uint32_t at, end, parity; // addresses of it and of the end of the ring

    __device__ inline explicit columns_slot(uint32_t ring)
        : at(ring), end(ring + SLOTS * SLOT_BYTES), parity(0) {
        keep(at), keep(end);
    }

    __device__ inline void next() {
        at += SLOT_BYTES;
        if (at == end) at -= SLOTS * SLOT_BYTES, parity ^= 1;
    }

    __device__ inline uint64_t *full() const { return at_shared<uint64_t>(at + SLOT_FULL); }
    __device__ inline uint64_t *empty() const { return at_shared<uint64_t>(at + SLOT_EMPTY); }
};

// A step of a block: its tile and the first block of each row.
struct columns_step {
    uint32_t tile, block;

    __device__ inline void next(uint32_t blocks) {
        block += STEP;
        if (block >= blocks) block = 0, tile++;
    }
};

// A warp that copies: a lane copies a row, and the first lane of the first such warp copies x.
// There are several, since a warp issues its lanes' copies one after the other, eight instructions
// that wait for each other, and 32 of them would take about as long as their bytes.
struct columns_producer {
    enum { OF_WARP = ROWS / COPIERS }; // rows
    const kn_quant_product_arguments &a;
    const columns_tiles &tiles;
    uint32_t lane, row, rows; // its first of a tile, and how many
    bool copies_x;

    __device__ inline columns_producer(const kn_quant_product_arguments &arguments,
                                       const columns_tiles &all)
        : a(arguments), tiles(all), lane(threadIdx.x % WARP),
          row((threadIdx.x / WARP - WARPS) * OF_WARP),
          rows(row < all.height ? min(all.height - row, (uint32_t)OF_WARP) : 0),
          copies_x(row == 0 && lane == 0) {}

    __device__ inline uint32_t blocks(const columns_step &step) const {
        return min(a.blocks - step.block, (uint32_t)STEP);
    }

    __device__ inline void ask_weights(const columns_step &step, const columns_slot &slot) const {
        const uint32_t bytes = blocks(step) * Q4_K_BYTES;
        if (lane == 0) {
            const uint32_t x_bytes = copies_x ? blocks(step) * a.columns * X_BYTES : 0;
            barrier_expect(slot.full(), rows * bytes + x_bytes);
        }
        __syncwarp();
        if (lane < rows) {
            const uint32_t of_y = min(tiles.first_row(step.tile) + row + lane, a.rows - 1);
            const uint64_t block = (uint64_t)of_y * a.blocks + step.block;
            copy_bulk(at_shared<uint8_t>(slot.at + row_at(row + lane)),
                      (const uint8_t *)a.weights + block * Q4_K_BYTES, bytes, slot.full());
        }
    }

    __device__ inline void ask_x(const columns_step &step, const columns_slot &slot) const {
        if (!copies_x) return;
        const uint64_t block_bytes = (uint64_t)a.columns * X_BYTES;
        copy_bulk(at_shared<uint8_t>(slot.at + row_at(ROWS)),
                  (const uint8_t *)a.quants + step.block * block_bytes,
                  (uint32_t)(blocks(step) * block_bytes), slot.full());
    }

    __device__ inline void run(const columns_slot &ring) const {
        const uint32_t steps = tiles.of_block * tiles.steps, first = min(steps, (uint32_t)SLOTS);
        columns_step step = {0, 0}, of_x = {0, 0};
        columns_slot slot = ring;
#pragma unroll 1
        for (uint32_t i = 0; i < first; i++, step.next(a.blocks), slot.next()) {
            ask_weights(step, slot);
        }
        wait_for_kernel_in_front(); // x comes from it
        slot = ring;
#pragma unroll 1
        for (uint32_t i = 0; i < first; i++, of_x.next(a.blocks), slot.next()) ask_x(of_x, slot);
        slot = ring;
#pragma unroll 1
        for (uint32_t i = first; i < steps; i++, step.next(a.blocks), slot.next()) {
            barrier_wait(slot.empty(), slot.parity);
            ask_weights(step, slot);
            ask_x(step, slot);
        }
    }
};

// d = c + a b, of unsigned and signed bytes.
__device__ inline void mma_bytes(uint32_t (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                 const uint32_t (&c)[4]) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%10, %11, %12, %13};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(c[0]), "r"(c[1]),
          "r"(c[2]), "r"(c[3]));
}

// The sums of 16 rows by 8 columns as floats. They are below 32 * 240 * 127 < 2^22, so adding them
// to the bits of 1.5 * 2^23 adds them to the float.
__device__ inline void sums_of(float (&sums)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    const float zero = 12582912.0f;
    const uint32_t c = __float_as_uint(zero);
    uint32_t d[4];
    mma_bytes(d, a, b0, b1, {c, c, c, c});
#pragma unroll
    for (int i = 0; i < 4; i++) sums[i] = __uint_as_float(d[i]) - zero;
}

// The scales and minimums of a row's group, as floats: those of its two sub-blocks, and then the
// minimums.
__device__ inline float4 group_scales(const uint4 &header, const staged_group &group) {
    const q4_k_scales s = group.scales_of(header);
    const float2 d = q4_k_d(header);
    return {d.x * (float)(s.scales & 0xff), d.x * 0.0625f * (float)(s.scales >> 8),
            d.y * (float)(s.minimums & 0xff), d.y * (float)(s.minimums >> 8)};
}

// Clears the rows of all slots that fragments have and tiles have not.
__device__ inline void columns_clear(uint8_t *slots, uint32_t height) {
    const uint32_t pieces = (row_at(ROWS) - row_at(height)) / 16;
#pragma unroll 1
    for (int slot = 0; slot < SLOTS; slot++) {
        uint4 *rest = (uint4 *)(slots + slot * SLOT_BYTES + row_at(height));
        for (uint32_t i = threadIdx.x; i < pieces; i += blockDim.x) rest[i] = {0, 0, 0, 0};
    }
}

// A warp that multiplies. Columns past the last are read from the last one and not written.
struct columns_consumer {
    enum { HALVES = ROWS / 8, TILES = ROWS / 16 }; // a lane has a row of each eight
    columns_slot slot;
    uint32_t header, quants, x, scales; // where this lane reads in a slot, of its first block
    uint32_t x_apart;                   // from there to its next block
    uint32_t of_warps, own, own_read;   // 1 KiB of each warp; where this lane writes and reads
    uint32_t lane;
    staged_group group;
    bool is_tall; // above 16 rows
    float sums[TILES][4];

    __device__ inline columns_consumer(const kn_quant_product_arguments &a,
                                       const columns_slot &ring, const columns_tiles &tiles)
        : slot(ring), x_apart(APART * a.columns * X_BYTES), of_warps(ring.end),
          own(of_warps + threadIdx.x / WARP * 1024), lane(threadIdx.x % WARP),
          group(threadIdx.x / WARP % GROUPS), is_tall(tiles.height > 16) {
        const uint32_t g = group.index;
        const uint32_t in_row = block() * Q4_K_BYTES;
        const uint32_t of_x = row_at(ROWS) + block() * a.columns * X_BYTES;
        header = row_at(lane) + in_row;
        quants = row_at(lane / 4) + in_row + 16 + 32 * g + lane % 4 * 8;
        x = of_x + x_quants(a.columns, g, min(lane / 4, a.columns - 1)) + lane % 4 * 16;
        // Of two columns, of which the second may be past the last: then its scales are those of
        // the next group, or quants.
        scales = of_x + x_scales(a.columns, g, min(lane % 4 * 2, (a.columns - 1) / 2 * 2));
        own_read = own + lane / 4 * 16;
        own += lane * 16;
        keep(lane), keep(header), keep(quants), keep(x), keep(scales);
        keep(x_apart), keep(own), keep(own_read);
        keep(group.at), keep(group.upper), keep(group.keep), keep(group.rest);
    }

    __device__ inline uint32_t block() const { return threadIdx.x / WARP / GROUPS; }

    // What this lane reads of a block: quants of a row of each eight, and of x.
    struct part {
        uint4 header, x;
        uint2 quants[HALVES];
        float4 of_x[2]; // scales, and sums for the minimums, of two columns
    };

    __device__ inline void load(part &p, uint32_t i) const {
        const uint32_t of_rows = slot.at + i * APART * Q4_K_BYTES, of_x = slot.at + i * x_apart;
        p.header = *at_shared<uint4>(of_rows + header);
        p.x = *at_shared<uint4>(of_x + x);
#pragma unroll
        for (int j = 0; j < 2; j++) p.of_x[j] = at_shared<float4>(of_x + scales)[j];
#pragma unroll
        for (int h = 0; h < HALVES; h++) {
            p.quants[h] = *at_shared<uint2>(of_rows + quants + row_at(8 * h));
        }
    }

    // 16 rows of its i-th block.
    __device__ inline void multiply(int tile, const part &p, int i) {
        const uint2 *q = p.quants + 2 * tile;
        const uint32_t words[4] = {q[0].x, q[1].x, q[0].y, q[1].y};
        uint32_t a[4];
        float low[4], high[4];
#pragma unroll
        for (int w = 0; w < 4; w++) a[w] = words[w] & 0x0f0f0f0fu;
        sums_of(low, a, p.x.x, p.x.y);
#pragma unroll
        for (int w = 0; w < 4; w++) a[w] = words[w] & 0xf0f0f0f0u;
        sums_of(high, a, p.x.z, p.x.w);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float4 of_row = at_shared<float4>(own_read)[i * ROWS + tile * 16 + r * 8];
#pragma unroll
            for (int j = 0; j < 2; j++) {
                float &sum = sums[tile][2 * r + j];
                sum = fmaf(of_row.x, low[2 * r + j] * p.of_x[j].x, sum);
                sum = fmaf(of_row.y, high[2 * r + j] * p.of_x[j].y, sum);
                sum = fmaf(-of_row.z, p.of_x[j].z, sum);
                sum = fmaf(-of_row.w, p.of_x[j].w, sum);
            }
        }
    }

    // Its PARTS blocks of a slot, which it gives back as soon as it has read them.
    template <int PARTS> __device__ inline void add() {
        part parts[PARTS > 0 ? PARTS : 1];
        barrier_wait(slot.full(), slot.parity);
#pragma unroll
        for (int i = 0; i < PARTS; i++) load(parts[i], i);
        __syncwarp(); // all lanes have read the scales of the slot before
        barrier_arrive(slot.empty());
        slot.next();
#pragma unroll
        for (int i = 0; i < PARTS; i++) {
            at_shared<float4>(own)[i * ROWS] = group_scales(parts[i].header, group);
        }
        __syncwarp();
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            if (t == 1 && !is_tall) break;
#pragma unroll
            for (int i = 0; i < PARTS; i++) multiply(t, parts[i], i);
        }
    }

    // Adds the sums of all warps in their order, and writes a tile.
    __device__ inline void store(const kn_quant_product_arguments &a, uint32_t row,
                                 uint32_t height) const {
        const uint32_t i = threadIdx.x / WARP;
        float *of_lane = at_shared<float>(own - lane * 12); // a lane has 4 bytes, not 16
        __syncwarp();                                       // all lanes have read the scales
#pragma unroll
        for (int k = 0; k < 4 * TILES; k++) of_lane[k * WARP] = sums[k / 4][k % 4];
        named_barrier(TOGETHER, WARPS * WARP);
        if (i < 4 * TILES) {
            const float *of_all = at_shared<float>(of_warps) + threadIdx.x;
            float sum = 0;
#pragma unroll
            for (int w = 0; w < WARPS; w++) sum += of_all[w * 256];
            const uint32_t in_tile = i / 2 * 8 + lane / 4, column = lane % 4 * 2 + i % 2;
            if (in_tile < height && row + in_tile < a.rows && column < a.columns) {
                ((float *)a.y)[column * a.y_stride + row + in_tile] = sum;
            }
        }
        named_barrier(TOGETHER, WARPS * WARP); // before the next scales
    }

    __device__ inline void run(const kn_quant_product_arguments &a, const columns_tiles &tiles) {
        // Slots in which it has both blocks; there may be one more, with one or none of them.
        const uint32_t whole = (a.blocks + APART - 1 - block()) / STEP;
        const bool has_more = whole < tiles.steps, has_one = whole * STEP + block() < a.blocks;
        for (uint32_t tile = 0; tile < tiles.of_block; tile++) {
#pragma unroll
            for (int k = 0; k < 4 * TILES; k++) sums[k / 4][k % 4] = 0;
#pragma unroll 1
            for (uint32_t left = whole; left > 0; left--) add<2>();
            if (has_more && has_one) {
                add<1>();
            } else if (has_more) {
                add<0>();
            }
            store(a, tiles.first_row(tile), tiles.height);
        }
    }
};

__device__ inline void columns_product(const kn_quant_product_arguments &a) {
    extern __shared__ int4 shared[];
    const columns_tiles tiles(a);
    const columns_slot ring(shared_address(shared));
    if (threadIdx.x == 0) {
        columns_slot slot = ring;
#pragma unroll 1
        for (int i = 0; i < SLOTS; i++, slot.next()) {
            barrier_make(slot.full(), COPIERS);
            barrier_make(slot.empty(), WARPS * WARP);
        }
        barriers_made();
    }
    columns_clear((uint8_t *)shared, tiles.height);
    __syncthreads();
    if (threadIdx.x >= WARPS * WARP) {
        const columns_producer producer(a, tiles);
        producer.run(ring);
    } else {
        columns_consumer consumer(a, ring, tiles);
        consumer.run(a, tiles);
    }
}

// The warp's 32 neighbours of a column of x, of which this lane has the k-th element.
__device__ inline void columns_round(const kn_quant_product_arguments &a, uint32_t column,
                                     uint32_t k, float value) {
    const rounded_number rounded = round_neighbour(value);
    const int sum = __reduce_add_sync(~0u, (int)rounded.q);
    uint8_t *block = (uint8_t *)a.quants + (uint64_t)(k / 256) * a.columns * X_BYTES;
    const uint32_t group = k % 256 / 64, half = k % 64 / 32;
    block[x_quants(a.columns, group, column) + k % 32 / 8 * 16 + half * 8 + k % 8] =
        (uint8_t)rounded.q;
    if (k % 32 == 0) {
        float *scales = (float *)(block + x_scales(a.columns, group, column));
        scales[half] = rounded.d;
        scales[2 + half] = rounded.d * (float)sum;
    }
}

// A warp rounds one 32 after the other, and has a few of them on their way. k is a multiple of 32,
// so all lanes have one or none.
__device__ inline void columns_round_all(const kn_quant_product_arguments &a) {
    enum { AHEAD = 4 };
    const uint32_t step = gridDim.x * blockDim.x, column = blockIdx.y;
    const float *x = (const float *)a.x + column * a.x_stride;
#pragma unroll 1
    for (uint32_t k = blockIdx.x * blockDim.x + threadIdx.x; k < a.k; k += AHEAD * step) {
        float values[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) values[i] = k + i * step < a.k ? x[k + i * step] : 0;
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (k + i * step < a.k) columns_round(a, column, k + i * step, values[i]);
        }
    }
}
#endif

extern "C" __global__ void __launch_bounds__(KN_QUANT_COLUMNS_X_THREADS, 16)
    quant_product_columns_x(kn_quant_product_arguments a) {
#if __CUDA_ARCH__ >= 900
    let_next_begin();
    columns_round_all(a);
#endif
}

extern "C" __global__ void __launch_bounds__(KN_QUANT_COLUMNS_THREADS, 1)
    quant_product_columns(kn_quant_product_arguments a) {
#if __CUDA_ARCH__ >= 900
    columns_product(a);
#endif
}
