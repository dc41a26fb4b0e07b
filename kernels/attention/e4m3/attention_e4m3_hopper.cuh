// attention over numbers of 8 bits by the pipeline of attention_hopper.cuh.
//
// The idea: q k^T multiplies e4m3 directly, with half of the instructions. The product with v is
// in fp16, which represents all numbers of e4m3: operands of 8 bits would have to be K-major, so v
// would have to be transposed in shared memory, and weights would be rounded to 4 digits. The
// producer warpgroup converts each tile of values to fp16 while consumers multiply; it copies keys
// and values one tile ahead of that.
// Owner: as attention_hopper.cuh says.
// Bound by: wgmma, and the exponentials.
// Requires: as attention_hopper.cuh says, and E4M3_ROOM bytes of dynamic shared memory.
#pragma once

#include "../../e4m3.cuh"

#include "../forward/attention_hopper.cuh"
#include "attention_e4m3.cuh"

#if __CUDA_ARCH__ >= 900
#define E4M3_PRODUCT(N, sums, all, o0, o1, o2)                                                     \
    template <> struct product<e4m3, N> {                                                          \
        template <bool A_K_MAJOR, bool B_K_MAJOR>                                                  \
        static __device__ inline void add(float (&sum)[N / 2], uint64_t a, uint64_t b, int adds) { \
            static_assert(A_K_MAJOR && B_K_MAJOR, "wgmma transposes 16 bits only");                \
            asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " o2 ", 0;\n"                     \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k32.f32.e4m3.e4m3 {" sums         \
                         "}, " o0 ", " o1 ", adds, 1, 1;\n}"                                       \
                         : all                                                                     \
                         : "l"(a), "l"(b), "r"(adds)                                               \
                         : "memory");                                                              \
        }                                                                                          \
    };
E4M3_PRODUCT(64, HOPPER_SUMS_32, HOPPER_ALL_32, "%32", "%33", "%34")
E4M3_PRODUCT(128, HOPPER_SUMS_64, HOPPER_ALL_64, "%64", "%65", "%66")

enum { E4M3_BARRIER = ORDER + 3 }; // the named barrier of those that copy

template <int D> struct e4m3_shared : attention_hopper_shared<D> {
    using shape = attention_shape<D>;
    static constexpr int SLABS = (D + BOX_ROW - 1) / BOX_ROW; // of 128 elements
    alignas(1024) uint8_t bytes[STAGES][SLABS][shape::SLAB];  // values as they are copied
    alignas(8) uint64_t bytes_full[STAGES];
};

// The bytes of dynamic shared memory of a block; as ATTENTION_E4M3_BYTES of the host.
template <int D>
constexpr int E4M3_ROOM = attention_shape<D>::ROOM + (int)sizeof(e4m3_shared<D>::bytes) + 1024;
static_assert(E4M3_ROOM<256> <= 227 << 10, "too much for 9.0");

__device__ inline uint32_t halves_of(uint32_t two) {
    uint32_t halves;
    asm("{\n.reg .b16 two;\ncvt.u16.u32 two, %1;\ncvt.rn.f16x2.e4m3x2 %0, two;\n}"
        : "=r"(halves)
        : "r"(two));
    return halves;
}

// Planted defects, one per kernel, of attention_e4m3_defects.cu.
enum e4m3_defect {
    E4M3_RIGHT,
    E4M3_NEIGHBOURS_SCALE, // values have the scale of the next head
    E4M3_EARLY_BYTES,      // a stage of bytes is released before they are converted
    E4M3_OLD_HALVES        // when a stage is reused, the halves of the phase before
};

template <e4m3_defect DEFECT = E4M3_RIGHT> struct e4m3_boxes {
    float scale; // of values

    static __device__ inline bool copies() { return threadIdx.x < WARPGROUP; }
    __device__ inline float value_scale() const { return scale; }
    template <int D>
    static __device__ inline e4m3_shared<D> *all_of(attention_hopper_shared<D> *s) {
        return static_cast<e4m3_shared<D> *>(s);
    }
    template <int D> __device__ inline void make_barriers(attention_hopper_shared<D> *s) const {
        for (int i = 0; i < STAGES; i++) barrier_make(&all_of(s)->bytes_full[i], 1);
    }

    template <int D>
    static __device__ inline void load_rows(const attention_arguments &x, e4m3_shared<D> *s,
                                            const tensor_map *q, const attention_place &place) {
        enum { SLABS = e4m3_shared<D>::SLABS, CONSUMERS = attention_shape<D>::CONSUMERS };
        barrier_expect(&s->q_full, CONSUMERS * SLABS * BOX);
#pragma unroll
        for (int i = 0; i < CONSUMERS * SLABS; i++) {
            // As attention_load_rows: rows that do not exist are copies of the first.
            const int below = place.first + i / SLABS * BOX_ROWS;
            load_box(q, s->q[i / SLABS][i % SLABS], &s->q_full, i % SLABS * BOX_ROW,
                     below < x.q_length ? below : place.first, place.head, place.batch);
        }
    }

    // Keys and values of tile i. Its keys may be in place of those of two tiles before, and its
    // values: halves were made of those.
    template <int D>
    static __device__ inline void load_tile(const attention_arguments &x, e4m3_shared<D> *s,
                                            const tensor_map *k, const tensor_map *v,
                                            const attention_place &place, int i) {
        enum { SLABS = e4m3_shared<D>::SLABS, SLAB = attention_shape<D>::SLAB };
        const int stage = i % STAGES, key = (place.begin + i) * attention_shape<D>::KEYS;
        const int kv_head = place.head / x.group;
        barrier_expect(&s->bytes_full[stage], SLABS * SLAB);
#pragma unroll
        for (int j = 0; j < SLABS; j++) {
            load_box(v, s->bytes[stage][j], &s->bytes_full[stage], j * BOX_ROW, key, kv_head,
                     place.batch);
        }
        barrier_wait(&s->k_empty[stage], i / STAGES % 2 ^ 1);
        barrier_expect(&s->k_full[stage], SLABS * SLAB);
#pragma unroll
        for (int j = 0; j < SLABS; j++) {
            load_box(k, s->k[stage][j], &s->k_full[stage], j * BOX_ROW, key, kv_head, place.batch);
        }
    }

    // A thread makes halves of eight elements at a time; both tiles are swizzled.
    template <int D> static __device__ inline void make_halves(e4m3_shared<D> *s, int stage) {
        enum { PIECES = D / 8, KEYS = attention_shape<D>::KEYS };
#pragma unroll 2
        for (int i = threadIdx.x; i < KEYS * PIECES; i += WARPGROUP) {
            const int key = i / PIECES, piece = i % PIECES, row = key * BOX_ROW;
            const uint2 from = *(const uint2 *)(s->bytes[stage][piece / 16] + row +
                                                (piece % 16 / 2 ^ key % 8) * 16 + piece % 2 * 8);
            *(uint4 *)(s->v[stage][piece / 8] + row + (piece % 8 ^ key % 8) * 16) =
                make_uint4(halves_of(from.x), halves_of(from.x >> 16), halves_of(from.y),
                           halves_of(from.y >> 16));
        }
    }

    template <int D, attention_after AFTER>
    __device__ inline void produce(const attention_arguments &x, attention_hopper_shared<D> *base,
                                   const tensor_map *q, const tensor_map *k, const tensor_map *v,
                                   const attention_place &place) const {
        e4m3_shared<D> *s = all_of(base);
        const bool is_leader = threadIdx.x == 0;
        if (is_leader) {
            load_rows(x, s, q, place);
            if (place.tiles > 0) load_tile(x, s, k, v, place, 0);
        }
#pragma unroll 1
        for (int i = 0; i < place.tiles; i++) {
            const int stage = i % STAGES;
            const bool is_ahead = DEFECT != E4M3_EARLY_BYTES || i == 0;
            if (is_leader && is_ahead && i + 1 < place.tiles) {
                load_tile(x, s, k, v, place, i + 1);
            }
            barrier_wait(&s->bytes_full[stage], i / STAGES % 2);
            if (DEFECT == E4M3_EARLY_BYTES && i + STAGES < place.tiles) {
                named_barrier(E4M3_BARRIER, WARPGROUP); // all have seen this phase
                if (is_leader) load_tile(x, s, k, v, place, i + STAGES);
                barrier_wait(&s->bytes_full[stage], i / STAGES % 2 ^ 1);
            }
            barrier_wait(&s->v_empty[stage], i / STAGES % 2 ^ 1);
            if (DEFECT != E4M3_OLD_HALVES || i < STAGES) make_halves(s, stage);
            fence_copies();
            named_barrier(E4M3_BARRIER, WARPGROUP); // all have read the bytes, and made halves
            if (is_leader) barrier_arrive(&s->v_full[stage]);
        }
    }
};

template <typename OUT, int D, e4m3_defect DEFECT = E4M3_RIGHT>
__device__ inline void attention_e4m3_hopper(const attention_e4m3_arguments &p, const tensor_map *q,
                                             const tensor_map *k, const tensor_map *v,
                                             const tensor_map *out) {
    static_assert(sizeof(e4m3_shared<D>) + 1024 <= E4M3_ROOM<D>, "it fits");
    const attention_arguments x = scaled_for(p, blockIdx.z, blockIdx.y);
    const bool is_next = DEFECT == E4M3_NEIGHBOURS_SCALE;
    const int scaled = is_next ? (blockIdx.y + x.group) % x.heads : blockIdx.y; // as this head
    const e4m3_boxes<DEFECT> boxes = {value_scale_of(p, blockIdx.z, scaled)};
    attention_hopper<__half, D, NOTHING, e4m3_boxes<DEFECT>, e4m3, OUT>(x, q, k, v, out, 0, 0,
                                                                        boxes);
}

#define ATTENTION_E4M3(name, OUT, D, DEFECT)                                                       \
    extern "C" __global__ void __launch_bounds__(attention_shape<D>::THREADS, 1)                   \
        attention_e4m3_##name(                                                                     \
            const __grid_constant__ tensor_map q, const __grid_constant__ tensor_map k,            \
            const __grid_constant__ tensor_map v, const __grid_constant__ tensor_map out,          \
            const __grid_constant__ attention_e4m3_arguments p) {                                  \
        attention_e4m3_hopper<OUT, D, DEFECT>(p, &q, &k, &v, &out);                                \
    }
#endif
