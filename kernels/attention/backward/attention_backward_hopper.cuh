// The pipeline of step 3 of attention's backward pass, for compute capability 9.0 (compute_90a).
//
// The idea: that of attention_backward_tensor.cuh, with warp-specialised producer and consumers. A
// block keeps tiles of two matrices, A and B, and streams tiles of two others, C and E: scores = A
// C^T and d_p = B E^T, then sums += d_s C, and for keys also sums_e += P E. One thread of the
// first warpgroup copies tiles of C and E by TMA, with the figures of their rows, into a ring of
// stages. Two warpgroups own 64 rows of A each and multiply from shared memory (wgmma); weights
// and gradients of scores are operands in registers. While one warpgroup computes exponentials,
// the other multiplies. Rows are stored as TMA boxes.
// Owner: as attention_backward_tensor.cuh says; each warp of a consumer owns 16 rows.
// Bound by: wgmma.
// Requires: blockDim = (THREADS of the shape, 1, 1), gridDim = (tiles of keys and of rows of q, of
// all heads, 1, 1), its ROOM bytes of dynamic shared memory; the maps that
// attention_backward_maps.c makes; figures made.
#pragma once

#include "../../hopper.cuh"
#include "attention_backward.cuh"
#include "../forward/attention_tile.cuh"

// Planted defects, which tests must notice. SOUND_GRADIENT is none.
enum gradient_defect {
    SOUND_GRADIENT,
    LOST_CONSUMER, // what the second warpgroup has is not stored
    LOST_STEP,     // the last 16 rows of each tile are not multiplied into the sums
    WRONG_HEAD     // all heads that share a key are taken for the first
};

// The maps of a launch.
struct gradient_maps {
    const tensor_map *q, *k, *v, *d_out, *d_q, *d_k, *d_v;
};

#if __CUDA_ARCH__ >= 900
// How a block is made up for heads of D elements.
template <int D> struct gradient_shape {
    static constexpr int SLABS = D / 64; // of 64 elements
    static constexpr int CONSUMERS = 2, FIXED = CONSUMERS * BOX_ROWS, MOVING = BOX_ROWS;
    static constexpr int STAGES = D == 64 ? 4 : 3;
    static constexpr int THREADS = (1 + CONSUMERS) * WARPGROUP;
    static constexpr int FIGURES = MOVING * 8; // bytes of a tile
    static constexpr int ROOM =
        SLABS * BOX * (2 * CONSUMERS + 2 * STAGES) + STAGES * FIGURES + 2048;
};

template <int D> struct gradient_shared {
    using shape = gradient_shape<D>;
    // Then the rows of the sums.
    alignas(1024) uint8_t a[shape::CONSUMERS][shape::SLABS][BOX];
    alignas(1024) uint8_t b[shape::CONSUMERS][shape::SLABS][BOX];
    alignas(1024) uint8_t c[shape::STAGES][shape::SLABS][BOX];
    alignas(1024) uint8_t e[shape::STAGES][shape::SLABS][BOX];
    alignas(128) float2 figures[shape::STAGES][shape::MOVING];
    alignas(8) uint64_t fixed_full, full[shape::STAGES], empty[shape::STAGES];
};

// What a block owns: the head of A, and its first row.
struct gradient_place {
    int head, batch, first;
    gradient_walk walk;
};

template <int D, bool OF_KEYS, gradient_defect DEFECT>
__device__ inline void gradient_produce(const attention_backward_arguments &g,
                                        gradient_shared<D> *s, const gradient_maps &maps,
                                        const gradient_place &place) {
    using shape = gradient_shape<D>;
    enum {
        SLABS = shape::SLABS,
        CONSUMERS = shape::CONSUMERS,
        STAGES = shape::STAGES,
        MOVING = shape::MOVING
    };
    const attention_arguments &x = g.x;
    const tensor_map *a = OF_KEYS ? maps.k : maps.q, *b = OF_KEYS ? maps.v : maps.d_out;
    const tensor_map *c = OF_KEYS ? maps.q : maps.k, *e = OF_KEYS ? maps.d_out : maps.v;
    const int length = OF_KEYS ? x.kv_length : x.q_length;
    barrier_expect(&s->fixed_full, sizeof s->a + sizeof s->b);
#pragma unroll
    for (int i = 0; i < CONSUMERS * SLABS; i++) {
        // A box that would begin after the last row is a copy of the first box: none of it is
        // stored.
        const int below = place.first + i / SLABS * BOX_ROWS;
        const int row = below < length ? below : place.first;
        load_box(a, s->a[i / SLABS][i % SLABS], &s->fixed_full, i % SLABS * 64, row, place.head,
                 place.batch);
        load_box(b, s->b[i / SLABS][i % SLABS], &s->fixed_full, i % SLABS * 64, row, place.head,
                 place.batch);
    }
    int step = 0;
#pragma unroll 1
    for (int i = 0; i < place.walk.heads; i++) {
        const int shared = DEFECT == WRONG_HEAD ? 0 : i;
        const int head = OF_KEYS ? place.head * x.group + shared : place.head / x.group;
        const float2 *figures =
            (const float2 *)g.figures + ((long long)place.batch * x.heads + head) * g.figures_pitch;
#pragma unroll 1
        for (int tile = 0; tile < place.walk.count; tile++, step++) {
            const int stage = step % STAGES, at = (place.walk.begin + tile) * MOVING;
            barrier_wait(&s->empty[stage], step / STAGES % 2 ^ 1);
            barrier_expect(&s->full[stage],
                           sizeof s->c[0] + sizeof s->e[0] + (OF_KEYS ? shape::FIGURES : 0));
#pragma unroll
            for (int j = 0; j < SLABS; j++) {
                load_box(c, s->c[stage][j], &s->full[stage], j * 64, at, head, place.batch);
                load_box(e, s->e[stage][j], &s->full[stage], j * 64, at, head, place.batch);
            }
            if (OF_KEYS) {
                copy_bulk(s->figures[stage], figures + at, shape::FIGURES, &s->full[stage]);
            }
        }
    }
}

// A warpgroup's 64 rows of sums, times the scale and rounded, as the boxes of a map.
template <typename T, int D>
__device__ inline void put_sums(uint8_t (&to)[D / 64][BOX], const float *from, float scale) {
    const int lane = threadIdx.x % WARP, down = threadIdx.x % WARPGROUP / WARP * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < D / 4; i++) {
        const int c = i / 2, h = i % 2;
        uint8_t *row = to[c / 8] + (down + h * 8) * BOX_ROW;
        *(uint32_t *)(row + (c % 8 ^ lane / 4) * 16 + lane % 4 * 4) =
            pack<T>(from[c * 4 + 2 * h] * scale, from[c * 4 + 2 * h + 1] * scale);
    }
}

// The 64 rows of a consumer. A thread holds, of the 16 rows of its warp, rows lane / 4 and lane /
// 4 + 8, under index 0 and 1.
template <typename T, int D, bool OF_KEYS, gradient_defect DEFECT> struct gradient_consumer {
    using shape = gradient_shape<D>;
    enum { SLABS = shape::SLABS, STAGES = shape::STAGES, MOVING = shape::MOVING };
    gradient_shared<D> *s;
    const attention_backward_arguments &g;
    int consumer, first;              // the first row of the warp
    float sums[D / 2], sums_e[D / 2]; // of C and, of keys, of E
    float scores[MOVING / 2], products[MOVING / 2];
    uint32_t weights[MOVING / 4], gradients[MOVING / 4];
    float2 own[2]; // the figures of rows of q

    // Scores and products get no values, which would be written between the fence and the first
    // product.
    __device__ inline gradient_consumer(gradient_shared<D> *s_,
                                        const attention_backward_arguments &g_, int consumer_,
                                        const gradient_place &place)
        : s(s_), g(g_), consumer(consumer_) {
        first = place.first + consumer * BOX_ROWS + threadIdx.x % WARPGROUP / WARP * 16;
#pragma unroll
        for (int i = 0; i < D / 2; i++) sums[i] = 0;
#pragma unroll
        for (int i = 0; i < (OF_KEYS ? D / 2 : 0); i++) sums_e[i] = 0;
#pragma unroll
        for (int h = 0; h < (OF_KEYS ? 0 : 2); h++) {
            const long long heads = (long long)place.batch * g.x.heads + place.head;
            const int row = min(first + h * 8 + (int)threadIdx.x % WARP / 4, g.x.q_length - 1);
            own[h] = ((const float2 *)g.figures)[heads * g.figures_pitch + row];
        }
    }

    // scores = A C^T and products = B E^T; not waited for.
    __device__ inline void multiply(int stage) {
#pragma unroll
        for (int step = 0; step < D / 16; step++) {
            const uint64_t inside = step % 4 * factor_step<true>();
            product<T, MOVING>::template add<true, true>(
                scores, factor_of<true>(s->a[consumer][step / 4]) + inside,
                factor_of<true>(s->c[stage][step / 4]) + inside, step > 0);
        }
#pragma unroll
        for (int step = 0; step < D / 16; step++) {
            const uint64_t inside = step % 4 * factor_step<true>();
            product<T, MOVING>::template add<true, true>(
                products, factor_of<true>(s->b[consumer][step / 4]) + inside,
                factor_of<true>(s->e[stage][step / 4]) + inside, step > 0);
        }
        wgmma_commit();
    }

    // sums += d_s C, and of keys sums_e += P E; not waited for.
    __device__ inline void add(int stage) {
        enum { STEPS = MOVING / 16 - (DEFECT == LOST_STEP) };
        const uint64_t c = factor_of<false, MOVING>(s->c[stage][0]);
        const uint64_t e = factor_of<false, MOVING>(s->e[stage][0]);
#pragma unroll
        for (int step = 0; step < (OF_KEYS ? STEPS : 0); step++) {
            product<T, D>::template add_part<false>(sums_e, weights + step * 4,
                                                    e + step * factor_step<false>());
        }
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            product<T, D>::template add_part<false>(sums, gradients + step * 4,
                                                    c + step * factor_step<false>());
        }
        wgmma_commit();
    }

    __device__ inline void mask(int at) {
        const int row_at = OF_KEYS ? at : first, key_at = OF_KEYS ? first : at;
        const int rows = OF_KEYS ? MOVING : 16, keys = OF_KEYS ? 16 : MOVING;
        if (pairs_are_seen<OF_KEYS>(g.x, row_at, rows, key_at, keys)) return;
#pragma unroll
        for (int i = 0; i < MOVING / 2; i++) {
            const int fixed = first + i % 4 / 2 * 8 + threadIdx.x % WARP / 4;
            const int moving = at + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
            const int row = OF_KEYS ? moving : fixed, key = OF_KEYS ? fixed : moving;
            if (!pair_is_seen<OF_KEYS>(g.x, row, key)) scores[i] = -INFINITE;
        }
    }

    // Turns scores and products into weights and gradients of scores, rounded to the type. All
    // their registers are written before the fence that precedes the next product.
    __device__ inline void weigh(int stage) {
#pragma unroll
        for (int c = 0; c < MOVING / 8; c++) {
            float4 figures = {}; // of the thread's two columns, where those are rows of q
            if (OF_KEYS) {
                figures = *(const float4 *)&s->figures[stage][c * 8 + threadIdx.x % 4 * 2];
            }
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float base = !OF_KEYS ? own[e / 2].x : e % 2 == 0 ? figures.x : figures.z;
                const float delta = !OF_KEYS ? own[e / 2].y : e % 2 == 0 ? figures.y : figures.w;
                float &score = scores[c * 4 + e], &product = products[c * 4 + e];
                score = exp2_approximate(fmaf(score, g.x.scale_log2, -base));
                product = score * (product - delta);
            }
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int at = c * 4 + 2 * h;
                if (OF_KEYS) weights[c * 2 + h] = pack<T>(scores[at], scores[at + 1]);
                gradients[c * 2 + h] = pack<T>(products[at], products[at + 1]);
            }
        }
#pragma unroll
        for (int i = 0; i < MOVING / 4; i++) {
            if (OF_KEYS) asm volatile("" : "+r"(weights[i])::"memory");
            asm volatile("" : "+r"(gradients[i])::"memory");
        }
    }

    __device__ inline void walk(const gradient_walk &walk) {
        int step = 0;
#pragma unroll 1
        for (int i = 0; i < walk.heads; i++) {
#pragma unroll 1
            for (int tile = 0; tile < walk.count; tile++, step++) {
                const int stage = step % STAGES;
                barrier_wait(&s->full[stage], step / STAGES % 2);
                wgmma_fence();
                multiply(stage);
                wgmma_wait<0>();
                hold(scores);
                hold(products);
                mask((walk.begin + tile) * MOVING);
                weigh(stage);
                wgmma_fence();
                add(stage);
                wgmma_wait<0>();
                hold(sums);
                if (OF_KEYS) hold(sums_e);
                // Each thread, since each has read figures.
                barrier_arrive(&s->empty[stage]);
            }
        }
    }

    __device__ inline void store(const gradient_maps &maps, const gradient_place &place) {
        put_sums<T, D>(s->a[consumer], sums, g.scale);
        if (OF_KEYS) put_sums<T, D>(s->b[consumer], sums_e, 1);
        fence_copies();
        named_barrier(1 + consumer, WARPGROUP);
        const int row = place.first + consumer * BOX_ROWS;
        const int length = OF_KEYS ? g.x.kv_length : g.x.q_length;
        if (threadIdx.x % WARPGROUP != 0 || row >= length) return;
        if (DEFECT == LOST_CONSUMER && consumer == 1) return;
#pragma unroll
        for (int j = 0; j < SLABS; j++) {
            store_box(OF_KEYS ? maps.d_k : maps.d_q, s->a[consumer][j], j * 64, row, place.head,
                      place.batch);
            if (OF_KEYS) {
                store_box(maps.d_v, s->b[consumer][j], j * 64, row, place.head, place.batch);
            }
        }
        wait_boxes_read<0>();
    }
};

template <typename T, int D, bool OF_KEYS, gradient_defect DEFECT>
__device__ inline void gradient_of_tile(const attention_backward_arguments &g,
                                        gradient_shared<D> *s, const gradient_maps &maps, int tile,
                                        int head, int batch) {
    using shape = gradient_shape<D>;
    const int first = tile * shape::FIXED;
    const gradient_place place = {
        head, batch, first, gradient_walk_of<OF_KEYS, shape::FIXED, shape::MOVING>(g.x, first)};
    if (threadIdx.x < WARPGROUP) {
        give_registers<24>();
        if (threadIdx.x == 0) gradient_produce<D, OF_KEYS, DEFECT>(g, s, maps, place);
    } else {
        take_registers<240>();
        gradient_consumer<T, D, OF_KEYS, DEFECT> rows(s, g, threadIdx.x / WARPGROUP - 1, place);
        barrier_wait(&s->fixed_full, 0);
        rows.walk(place.walk);
        rows.store(maps, place);
    }
}

template <typename T, int D, gradient_defect DEFECT>
__device__ inline void attention_backward_hopper(const attention_backward_arguments &g,
                                                 const gradient_maps &maps) {
    using shape = gradient_shape<D>;
    static_assert(sizeof(gradient_shared<D>) + 1024 <= shape::ROOM, "it fits");
    extern __shared__ uint8_t room[];
    gradient_shared<D> *s =
        reinterpret_cast<gradient_shared<D> *>(room + (1024 - shared_address(room) % 1024) % 1024);
    if (threadIdx.x == 0) {
        barrier_make(&s->fixed_full, 1);
        for (int i = 0; i < shape::STAGES; i++) {
            barrier_make(&s->full[i], 1);
            barrier_make(&s->empty[i], shape::CONSUMERS * WARPGROUP);
        }
        barriers_made();
    }
    __syncthreads();
    const int kv_heads = g.x.heads / g.x.group, of_keys = g.x.batch * kv_heads * g.k_tiles;
    int block = blockIdx.x;
    if (block < of_keys) {
        // Tile by tile, so that the long ones of all heads come first.
        const int heads = g.x.batch * kv_heads, head = block % heads;
        gradient_of_tile<T, D, true, DEFECT>(g, s, maps, block / heads, head % kv_heads,
                                             head / kv_heads);
    } else {
        block -= of_keys;
        const int heads = g.x.batch * g.x.heads, head = block % heads;
        gradient_of_tile<T, D, false, DEFECT>(g, s, maps, g.q_tiles - 1 - block / heads,
                                              head % g.x.heads, head / g.x.heads);
    }
}
#endif
