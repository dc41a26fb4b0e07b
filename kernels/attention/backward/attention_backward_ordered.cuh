// The pipeline of step 4 of attention's backward pass, for compute capability 9.0 (compute_90a):
// five products where step 3 has seven, and deterministic all the same.
//
// The idea: a block keeps 128 keys and streams tiles of 64 rows of q, of all heads that share the
// keys. Scores and their gradients are computed once. The accumulators of d_v and d_k stay in
// registers, as in attention_backward_hopper.cuh. The gradients of scores, d_s, of both consumers
// are also written to shared memory, [key][row of q], from where each consumer multiplies their
// transpose by its half of the columns of the keys: the block's part of d_q. One thread adds the
// parts in device memory, in floats, by bulk copies that reduce (cp.reduce.async.bulk). Blocks add
// to a tile in the order of their keys: a word per tile, its turn, says which block is next. So
// sums have one order.
// A block takes a ticket, which is its place, and waits only for blocks with lower tickets, which
// have begun: whatever else is resident, the block with the lowest ticket that has not ended waits
// for none. All blocks iterate from the last rows to the first, and over the heads of a tile in
// turn. So a block does not reach a tile before its predecessor does, with a causal mask or
// without; in the steady state it follows one step later and does not wait. Tickets cover a few
// heads at a time, tile by tile, so that what the running blocks read and add up stays in the L2
// cache.
// The asynchronous products overlap: weights are computed during d_p, gradients of scores are
// computed and stored during d_v, and the part is stored during d_k.
// Owner: each of the two consumers owns 64 keys, and half of the columns of the block's part of
// d_q; each of its warps 16 keys, and 16 rows of the part.
// Bound by: wgmma, and its reads of shared memory.
// Requires: blockDim = (THREADS of the shape, 1, 1), gridDim = (tiles of keys of all heads, 1, 1),
// its ROOM bytes of dynamic shared memory; the maps that attention_backward_maps.c makes; the
// prologue and the epilogue of attention_backward_ordered_ends.cuh.
// Source: Dao et al., FlashAttention-2 (arXiv 2307.08691), algorithm 2, whose atomic sums are
// ordered here; PTX ISA 8.0, cp.reduce.async.bulk.
#pragma once

#include "attention_backward_hopper.cuh"

// Planted defects, which tests must notice. SOUND_ORDER is none.
enum order_defect {
    SOUND_ORDER,
    LOST_PART,  // only the first block of a tile adds its part
    LOST_KEYS,  // the last 16 keys of a block are not multiplied into d_q
    WRONG_HALF, // the second consumer multiplies the first half of the columns of the keys
};

// Heads of keys whose tiles are worked on at a time.
constexpr int ORDERED_HEADS = 8;

#if __CUDA_ARCH__ >= 900
// ---- instructions that only this kernel has ----

#define HOPPER_SUMS_16                                                                             \
    "%0, %1, %2, %3, %4, %5, %6, %7, "                                                             \
    "%8, %9, %10, %11, %12, %13, %14, %15"
#define HOPPER_ALL_16 HOPPER_8(sum, 0), HOPPER_8(sum, 8)
#define HOPPER_PRODUCT_32(T, type)                                                                 \
    HOPPER_PRODUCT(T, type, 32, HOPPER_SUMS_16, HOPPER_ALL_16, "%16", "%17", "%18", "%19", "%20",  \
                   "%21")
HOPPER_PRODUCT_32(__half, "f16")
HOPPER_PRODUCT_32(__nv_bfloat16, "bf16")

// Stores four matrices of 8 x 8 elements from fragments; each lane gives the address of a row.
__device__ inline void store_matrices(void *row, const uint32_t *fragments) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     shared_address(row)),
                 "r"(fragments[0]), "r"(fragments[1]), "r"(fragments[2]), "r"(fragments[3])
                 : "memory");
}

// Copies to device memory, or adds floats to it, in a group of its own.
template <bool ADDS>
__device__ inline void send_bulk(void *global, const void *shared, uint32_t bytes) {
    if (ADDS) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;\n"
                     "cp.async.bulk.commit_group;" ::"l"(__cvta_generic_to_global(global)),
                     "r"(shared_address(shared)), "r"(bytes)
                     : "memory");
    } else {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                     "cp.async.bulk.commit_group;" ::"l"(__cvta_generic_to_global(global)),
                     "r"(shared_address(shared)), "r"(bytes)
                     : "memory");
    }
}

// Waits until this thread's bulk copies have been written.
__device__ inline void wait_bulk_written() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Between bulk copies and other accesses to device memory, either way.
__device__ inline void fence_bulk() {
    asm volatile("fence.proxy.async.global;" ::: "memory");
}

__device__ inline uint32_t load_acquire(const uint32_t *word) {
    uint32_t value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                 : "=r"(value)
                 : "l"(__cvta_generic_to_global(word))
                 : "memory");
    return value;
}
__device__ inline void store_release(uint32_t *word, uint32_t value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(word)),
                 "r"(value)
                 : "memory");
}

// Keeps registers that an asynchronous product reads from being used for something else before
// this.
template <int N> __device__ inline void keep(uint32_t (&values)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+r"(values[i])::"memory");
}

// ---- the block ----

template <int D> struct ordered_shape {
    static constexpr int SLABS = D / 64; // of 64 elements
    static constexpr int CONSUMERS = 2, KEYS = CONSUMERS * BOX_ROWS, ROWS = BOX_ROWS;
    static constexpr int STAGES = D == 64 ? 4 : 3;
    static constexpr int THREADS = (1 + CONSUMERS) * WARPGROUP;
    static constexpr int FIGURES = ROWS * 8;  // bytes of a tile
    static constexpr int PART = ROWS * D * 4; // bytes
    // Figures, barriers and the padding to 1024 bytes before them take at most 1024 bytes per
    // stage.
    static constexpr int ROOM =
        SLABS * BOX * (2 * CONSUMERS + 2 * STAGES) + 2 * KEYS * BOX_ROW + PART + STAGES * 1024;
    static_assert(ROWS == ATTENTION_TURN_ROWS, "a tile has one turn");
};

template <int D> struct ordered_shared {
    using shape = ordered_shape<D>;
    // Then the rows of d_k and d_v.
    alignas(1024) uint8_t k[shape::CONSUMERS][shape::SLABS][BOX];
    alignas(1024) uint8_t v[shape::CONSUMERS][shape::SLABS][BOX];
    alignas(1024) uint8_t q[shape::STAGES][shape::SLABS][BOX];
    alignas(1024) uint8_t d_out[shape::STAGES][shape::SLABS][BOX];
    // Two, so that a step writes one while the other consumer may still multiply the other.
    alignas(1024) uint8_t d_s[2][shape::KEYS][BOX_ROW];
    // A piece for each 8 columns: what a thread of a warpgroup has of them.
    alignas(128) float4 part[D / 8][WARPGROUP];
    alignas(128) float2 figures[shape::STAGES][shape::ROWS];
    alignas(8) uint64_t fixed_full, full[shape::STAGES], empty[shape::STAGES];
    uint64_t part_full, part_empty;
    unsigned ticket;
};

// What a block owns, and the tiles of rows of q that it walks over: from end - 1 down to begin, the
// heads of each one after the other.
struct ordered_place {
    int head, batch, tile; // of keys
    int first;             // key
    int begin, end;
    int end_before; // the end of the tile of keys in front: from here on this one is the first
};

template <int D>
__device__ inline ordered_place ordered_place_of(const attention_backward_arguments &g,
                                                 unsigned ticket) {
    using shape = ordered_shape<D>;
    const int kv_heads = g.x.heads / g.x.group, all = g.x.batch * kv_heads;
    const int from = ticket / ((unsigned)ORDERED_HEADS * g.k_tiles) * ORDERED_HEADS;
    const int heads = min(ORDERED_HEADS, all - from), left = ticket - (unsigned)from * g.k_tiles;
    const int tile = left / heads, head = from + left % heads, first = tile * shape::KEYS;
    const gradient_walk walk = gradient_walk_of<true, shape::KEYS, shape::ROWS>(g.x, first);
    gradient_walk before = {};
    if (tile > 0) {
        before = gradient_walk_of<true, shape::KEYS, shape::ROWS>(g.x, first - shape::KEYS);
    }
    return {head % kv_heads,
            head / kv_heads,
            tile,
            first,
            walk.begin,
            walk.begin + walk.count,
            before.begin + before.count};
}

// The tile of a head of q, among those of all.
__device__ inline long long ordered_index(const attention_backward_arguments &g, int batch,
                                          int head, int tile) {
    return ((long long)batch * g.x.heads + head) * (g.figures_pitch / ATTENTION_TURN_ROWS) + tile;
}

template <int D>
__device__ inline void ordered_produce(const attention_backward_arguments &g, ordered_shared<D> *s,
                                       const gradient_maps &maps, const ordered_place &place) {
    using shape = ordered_shape<D>;
    enum { SLABS = shape::SLABS, STAGES = shape::STAGES, ROWS = shape::ROWS };
    barrier_expect(&s->fixed_full, sizeof s->k + sizeof s->v);
#pragma unroll
    for (int i = 0; i < shape::CONSUMERS * SLABS; i++) {
        // A box that would begin after the last key is a copy of the first box: its keys are
        // masked, and none of it is stored.
        const int below = place.first + i / SLABS * BOX_ROWS;
        const int key = below < g.x.kv_length ? below : place.first;
        load_box(maps.k, s->k[i / SLABS][i % SLABS], &s->fixed_full, i % SLABS * 64, key,
                 place.head, place.batch);
        load_box(maps.v, s->v[i / SLABS][i % SLABS], &s->fixed_full, i % SLABS * 64, key,
                 place.head, place.batch);
    }
    int step = 0;
#pragma unroll 1
    for (int tile = place.end - 1; tile >= place.begin; tile--) {
#pragma unroll 1
        for (int i = 0; i < g.x.group; i++, step++) {
            const int stage = step % STAGES, head = place.head * g.x.group + i;
            const long long heads = (long long)place.batch * g.x.heads + head;
            const float2 *figures =
                (const float2 *)g.figures + heads * g.figures_pitch + tile * ROWS;
            barrier_wait(&s->empty[stage], step / STAGES % 2 ^ 1);
            barrier_expect(&s->full[stage], sizeof s->q[0] + sizeof s->d_out[0] + shape::FIGURES);
#pragma unroll
            for (int j = 0; j < SLABS; j++) {
                load_box(maps.q, s->q[stage][j], &s->full[stage], j * 64, tile * ROWS, head,
                         place.batch);
            }
            copy_bulk(s->figures[stage], figures, shape::FIGURES, &s->full[stage]);
#pragma unroll
            for (int j = 0; j < SLABS; j++) {
                load_box(maps.d_out, s->d_out[stage][j], &s->full[stage], j * 64, tile * ROWS, head,
                         place.batch);
            }
        }
    }
}

// Adds the block's parts to the sums, each when it is the block's turn. The first of a tile is
// copied instead, so that sums need not be zero before.
template <int D, order_defect DEFECT>
__device__ inline void ordered_add(const attention_backward_arguments &g, ordered_shared<D> *s,
                                   const ordered_place &place) {
    using shape = ordered_shape<D>;
    const uint32_t own = place.tile;
    int step = 0;
#pragma unroll 1
    for (int tile = place.end - 1; tile >= place.begin; tile--) {
#pragma unroll 1
        for (int i = 0; i < g.x.group; i++, step++) {
            const long long index = ordered_index(g, place.batch, place.head * g.x.group + i, tile);
            float *to = (float *)g.sums + index * (shape::PART / 4);
            uint32_t *turn = (uint32_t *)g.turns + index;
            barrier_wait(&s->part_full, step % 2);
            if (tile >= place.end_before) {
                send_bulk<false>(to, s->part, shape::PART);
            } else {
                while (load_acquire(turn) != own) {
                }
                fence_bulk();
                if (DEFECT != LOST_PART) send_bulk<true>(to, s->part, shape::PART);
            }
            wait_boxes_read<0>();
            barrier_arrive(&s->part_empty);
            wait_bulk_written();
            fence_bulk();
            store_release(turn, own + 1);
        }
    }
}

// The 64 keys of a consumer. A thread holds, of the 16 keys of its warp, keys lane / 4 and lane / 4
// + 8, and of the part these rows of q.
template <typename T, int D, order_defect DEFECT> struct ordered_consumer {
    using shape = ordered_shape<D>;
    enum { SLABS = shape::SLABS, STAGES = shape::STAGES, ROWS = shape::ROWS };
    ordered_shared<D> *s;
    const attention_backward_arguments &g;
    int consumer, first; // the first key of the warp
    float d_k[D / 2], d_v[D / 2];
    float chances[ROWS / 2]; // the weights, before they are rounded
    uint32_t weights[ROWS / 4], gradients[ROWS / 4];

    __device__ inline ordered_consumer(ordered_shared<D> *s_,
                                       const attention_backward_arguments &g_, int consumer_,
                                       const ordered_place &place)
        : s(s_), g(g_), consumer(consumer_) {
        first = place.first + consumer * BOX_ROWS + threadIdx.x % WARPGROUP / WARP * 16;
#pragma unroll
        for (int i = 0; i < D / 2; i++) d_k[i] = d_v[i] = 0;
    }

    // to = A B^T, of 64 rows each; not waited for.
    __device__ inline void multiply(float (&to)[ROWS / 2], const uint8_t (&a)[SLABS][BOX],
                                    const uint8_t (&b)[SLABS][BOX]) {
#pragma unroll
        for (int step = 0; step < D / 16; step++) {
            const uint64_t inside = step % 4 * factor_step<true>();
            product<T, ROWS>::template add<true, true>(to, factor_of<true>(a[step / 4]) + inside,
                                                       factor_of<true>(b[step / 4]) + inside,
                                                       step > 0);
        }
        wgmma_commit();
    }

    // sums += A B, with A in registers; not waited for.
    __device__ inline void add(float (&sums)[D / 2], const uint32_t (&a)[ROWS / 4],
                               const uint8_t (&b)[SLABS][BOX]) {
        const uint64_t factor = factor_of<false, ROWS>(b[0]);
#pragma unroll
        for (int step = 0; step < ROWS / 16; step++) {
            product<T, D>::template add_part<false>(sums, a + step * 4,
                                                    factor + step * factor_step<false>());
        }
        wgmma_commit();
    }

    // part = d_s^T k, of all keys of the block and the consumer's half of the columns; not waited
    // for. Half of 64 columns lies inside of a box: the swizzle is of addresses, so that it may
    // begin there.
    __device__ inline void multiply_part(float (&part)[D / 4], int buffer) {
        enum { STEPS = shape::KEYS / 16 - (DEFECT == LOST_KEYS) };
        const int column = (DEFECT == WRONG_HALF ? 0 : consumer) * (D / 2);
        const uint64_t inside = column % 64 * sizeof(T) >> 4;
        const uint64_t a = factor_of<false, shape::KEYS>(s->d_s[buffer][0]);
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            const uint64_t b = factor_of<false>(s->k[step / 4][column / 64]) + inside;
            product<T, D / 2>::template add<false, false>(part, a + step * factor_step<false>(),
                                                          b + step % 4 * factor_step<false>(),
                                                          step > 0);
        }
        wgmma_commit();
    }

    // Keys after the last have no weight, since d_q sums over keys.
    __device__ inline void mask(int at) {
        if (pairs_are_seen<false>(g.x, at, ROWS, first, 16)) return;
#pragma unroll
        for (int i = 0; i < ROWS / 2; i++) {
            const int key = first + i % 4 / 2 * 8 + threadIdx.x % WARP / 4;
            const int row = at + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
            if (!pair_is_seen<false>(g.x, row, key)) chances[i] = 0;
        }
    }

    // The figures of the thread's two rows of q among 8.
    __device__ inline float4 figures_of(int stage, int c) const {
        return *(const float4 *)&s->figures[stage][c * 8 + threadIdx.x % 4 * 2];
    }

    // Makes weights of scores.
    __device__ inline void weigh(const float (&scores)[ROWS / 2], int stage, int at) {
#pragma unroll
        for (int c = 0; c < ROWS / 8; c++) {
            const float4 figures = figures_of(stage, c);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float base = e % 2 == 0 ? figures.x : figures.z;
                chances[c * 4 + e] =
                    exp2_approximate(fmaf(scores[c * 4 + e], g.x.scale_log2, -base));
            }
        }
        mask(at);
#pragma unroll
        for (int i = 0; i < ROWS / 4; i++) {
            weights[i] = pack<T>(chances[2 * i], chances[2 * i + 1]);
        }
        keep(weights);
    }

    // Makes gradients of scores of products, and stores them.
    __device__ inline void derive(const float (&products)[ROWS / 2], int stage, int buffer) {
        const int lane = threadIdx.x % WARP, matrix = lane / 8;
        const int key = threadIdx.x / WARP % 4 * 16 + matrix % 2 * 8 + lane % 8;
        uint8_t *row = s->d_s[buffer][consumer * BOX_ROWS + key];
#pragma unroll
        for (int c = 0; c < ROWS / 8; c++) {
            const float4 figures = figures_of(stage, c);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int at = c * 4 + 2 * h;
                gradients[c * 2 + h] = pack<T>(chances[at] * (products[at] - figures.y),
                                               chances[at + 1] * (products[at + 1] - figures.w));
            }
            if (c % 2 == 1) {
                store_matrices(row + (c - 1 + matrix / 2 ^ lane % 8) * 16, gradients + c * 2 - 2);
            }
        }
        keep(gradients);
    }

    // Hands the part over, once the one in front has been read.
    __device__ inline void give_part(const float (&part)[D / 4], int step) {
        barrier_wait(&s->part_empty, step % 2 ^ 1);
#pragma unroll
        for (int i = 0; i < D / 16; i++) {
            s->part[consumer * (D / 16) + i][threadIdx.x % WARPGROUP] =
                *(const float4 *)(part + i * 4);
        }
        fence_copies();
        barrier_arrive(&s->part_full);
    }

    __device__ inline void walk(const ordered_place &place) {
        const int count = (place.end - place.begin) * g.x.group;
        int tile = place.end - 1, i = 0;
#pragma unroll 1
        for (int step = 0; step < count; step++) {
            const int stage = step % STAGES;
            // Sums that no other instruction writes, or products would not overlap.
            float scores[ROWS / 2], products[ROWS / 2], part[D / 4];
            barrier_wait(&s->full[stage], step / STAGES % 2);
            wgmma_fence();
            multiply(scores, s->k[consumer], s->q[stage]);
            multiply(products, s->v[consumer], s->d_out[stage]);
            wgmma_wait<1>();
            hold(scores);
            weigh(scores, stage, tile * ROWS);
            wgmma_fence();
            add(d_v, weights, s->d_out[stage]);
            wgmma_wait<1>();
            hold(products);
            derive(products, stage, step % 2);
            fence_copies();
            named_barrier(1 + shape::CONSUMERS, shape::CONSUMERS * WARPGROUP);
            wgmma_fence();
            multiply_part(part, step % 2);
            add(d_k, gradients, s->q[stage]);
            wgmma_wait<1>();
            keep(weights);
            hold(part);
            give_part(part, step);
            // The next scores do not overlap: ptxas takes no product that is in flight from step to
            // step.
            wgmma_wait<0>();
            keep(gradients);
            hold(d_k);
            hold(d_v);
            // Each thread, since each has read figures.
            barrier_arrive(&s->empty[stage]);
            if (++i == g.x.group) i = 0, tile--;
        }
    }

    __device__ inline void store(const gradient_maps &maps, const ordered_place &place) {
        // The other consumer multiplies by these keys, too.
        named_barrier(1 + shape::CONSUMERS, shape::CONSUMERS * WARPGROUP);
        put_sums<T, D>(s->k[consumer], d_k, g.scale);
        put_sums<T, D>(s->v[consumer], d_v, 1);
        fence_copies();
        named_barrier(1 + consumer, WARPGROUP);
        const int key = place.first + consumer * BOX_ROWS;
        if (threadIdx.x % WARPGROUP != 0 || key >= g.x.kv_length) return;
#pragma unroll
        for (int j = 0; j < SLABS; j++) {
            store_box(maps.d_k, s->k[consumer][j], j * 64, key, place.head, place.batch);
            store_box(maps.d_v, s->v[consumer][j], j * 64, key, place.head, place.batch);
        }
        wait_boxes_read<0>();
    }
};

template <typename T, int D, order_defect DEFECT>
__device__ inline void attention_backward_ordered(const attention_backward_arguments &g,
                                                  const gradient_maps &maps) {
    using shape = ordered_shape<D>;
    static_assert(sizeof(ordered_shared<D>) + 1024 <= shape::ROOM, "it fits");
    extern __shared__ uint8_t room[];
    ordered_shared<D> *s =
        reinterpret_cast<ordered_shared<D> *>(room + (1024 - shared_address(room) % 1024) % 1024);
    if (threadIdx.x == 0) {
        s->ticket = atomicAdd((unsigned *)g.turns + ordered_index(g, g.x.batch, 0, 0), 1u);
        barrier_make(&s->fixed_full, 1);
        for (int i = 0; i < shape::STAGES; i++) {
            barrier_make(&s->full[i], 1);
            barrier_make(&s->empty[i], shape::CONSUMERS * WARPGROUP);
        }
        barrier_make(&s->part_full, shape::CONSUMERS * WARPGROUP);
        barrier_make(&s->part_empty, 1);
        barriers_made();
    }
    __syncthreads();
    const ordered_place place = ordered_place_of<D>(g, s->ticket);
    if (threadIdx.x < WARPGROUP) {
        give_registers<24>();
        if (threadIdx.x == 0) ordered_produce<D>(g, s, maps, place);
        if (threadIdx.x == WARP) ordered_add<D, DEFECT>(g, s, place);
    } else {
        take_registers<240>();
        ordered_consumer<T, D, DEFECT> keys(s, g, threadIdx.x / WARPGROUP - 1, place);
        barrier_wait(&s->fixed_full, 0);
        keys.walk(place);
        keys.store(maps, place);
    }
}
#endif
