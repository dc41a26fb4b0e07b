// What step 13 of gemm is made of: the pipeline of gemm_hopper.cuh for floats as tf32.
//
// The idea: wgmma reads floats from shared memory only where their steps are contiguous. A may also
// come from registers, and then lie in either order: each thread loads the words of its fragments
// itself, while the products of the stage in front run. Which of 16 rows of a fragment is which row
// of A is free, so a thread takes two neighbours as one load of 8 bytes, and half a warp reads all
// banks once. Where B is the one whose steps are not contiguous, C is computed as its transpose.
// The maps round to tf32 while they copy.
// Owner and requirements: as gemm_hopper.cuh says, with stages of 32 steps. C leaves as pairs of
// floats, which fill sectors of 32 bytes.
#pragma once

#include "gemm_hopper.cuh"

#if __CUDA_ARCH__ >= 900
// As of 16 bits (hopper.cuh), but factors in shared memory are K-major, and of floats the lower 13
// bits are cut off. A of add_words lies in registers, as that of mma.m16n8k8.
#define HOPPER_K_PRODUCT(T, type, N, K, sums, all, o0, o1, o2, o3, o4, o5)                         \
    template <> struct product<T, N> {                                                             \
        template <bool A_K_MAJOR, bool B_K_MAJOR>                                                  \
        static __device__ inline void add(float (&sum)[N / 2], uint64_t a, uint64_t b, int adds) { \
            static_assert(A_K_MAJOR && B_K_MAJOR, "wgmma transposes 16 bits only");                \
            asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " o2 ", 0;\n"                     \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k" #K ".f32." type "." type       \
                         " {" sums "}, " o0 ", " o1 ", adds, 1, 1;\n}"                             \
                         : all                                                                     \
                         : "l"(a), "l"(b), "r"(adds)                                               \
                         : "memory");                                                              \
        }                                                                                          \
        static __device__ inline void add_words(float (&sum)[N / 2], const uint32_t *a,            \
                                                uint64_t b, int adds) {                            \
            asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " o5 ", 0;\n"                     \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k" #K ".f32." type "." type       \
                         " {" sums "}, {" o0 ", " o1 ", " o2 ", " o3 "}, " o4 ", adds, 1, 1;\n}"   \
                         : all                                                                     \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds)           \
                         : "memory");                                                              \
        }                                                                                          \
    };
HOPPER_K_PRODUCT(float, "tf32", 128, 8, HOPPER_SUMS_64, HOPPER_ALL_64, "%64", "%65", "%66", "%67",
                 "%68", "%69")
HOPPER_K_PRODUCT(float, "tf32", 256, 8, HOPPER_SUMS_128, HOPPER_ALL_128, "%128", "%129", "%130",
                 "%131", "%132", "%133")

enum hopper_order {
    A_K_MAJOR,  // A from shared memory
    A_MN_MAJOR, // A from registers
    C_IS_TURNED // A from registers; what is stored is the transpose of C
};

enum { WORD_STEPS = 8, WORD_PARTS = BOX_ROW / 32 }; // of a product, and products of a stage

// Where a thread's two rows of A are in a box of 32 steps of 32 rows, and which rows of its
// consumer's they are: row and row + 1.
struct hopper_words {
    uint32_t chunk, inside; // 16 bytes of 8, and which half of them
    int box, row;

    __device__ inline hopper_words() {
        const int warp = threadIdx.x % WARPGROUP / WARP, group = threadIdx.x % WARP / 4;
        chunk = group / 2 % 2 * 4 + group / 4 + warp % 2 * 2;
        inside = group % 2 * 8;
        box = warp / 2;
        row = box * 32 + (int)chunk * 4 + group % 2 * 2;
    }

    // The fragments of the stage of this consumer.
    template <hopper_defect DEFECT>
    __device__ inline void load(uint32_t (&parts)[WORD_PARTS][4], const uint8_t *a) const {
        const uint32_t first = shared_address(a) + box * 32 * BOX_ROW;
#pragma unroll
        for (int i = 0; i < WORD_PARTS; i++) {
#pragma unroll
            for (int upper = 0; upper < 2; upper++) {
                const uint32_t inner = threadIdx.x % 4 + upper * 4; // of eight steps
                const int first_row = upper * 2 + (DEFECT == HOPPER_WRONG_WORDS && i == 3);
                load_shared_2(parts[i][first_row], parts[i][first_row ^ 1],
                              first + (i * WORD_STEPS + inner) * BOX_ROW + (chunk ^ inner) * 16 +
                                  inside);
            }
        }
    }
};

// All warps of a consumer give the stage back: each has loaded from it.
__device__ inline void hopper_release_words(uint64_t *empty) {
    __syncwarp();
    if (threadIdx.x % WARP == 0) barrier_arrive(empty);
}

template <int N, hopper_defect DEFECT>
__device__ inline void
hopper_issue_words(hopper_shared<N> *s, int consumer, const hopper_words &words,
                   const hopper_ring<hopper_shared<N>::STAGES> &ring,
                   uint32_t (&parts)[WORD_PARTS][4], float (&sum)[N / 2], bool adds) {
    barrier_wait(&s->full[ring.stage], ring.parity);
    words.load<DEFECT>(parts, s->stages.a[ring.stage] + consumer * BOX);
    uint64_t b = factor_of<true>(s->stages.b[ring.stage]);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < WORD_PARTS; i++) {
        product<float, N>::add_words(sum, parts[i], b, adds || i > 0);
        b += factor_step<true>();
    }
    wgmma_commit();
}

// The sums of a tile's 64 rows, with A from registers. A product reads its registers until it ends,
// so stages take turns with two sets of them.
template <int N, hopper_defect DEFECT>
__device__ inline void
hopper_multiply_words(hopper_shared<N> *s, int consumer, int tiles, const hopper_words &words,
                      hopper_ring<hopper_shared<N>::STAGES> &ring, float (&sum)[N / 2]) {
    uint32_t even[WORD_PARTS][4], odd[WORD_PARTS][4], before = 0;
#pragma unroll 1
    for (int i = 0; i < tiles; i += 2) {
        hopper_issue_words<N, DEFECT>(s, consumer, words, ring, even, sum, i > 0);
        wgmma_wait<1>();
        if (i > 0) hopper_release_words(&s->empty[before]);
        before = ring.stage;
        ring.next();
        if (i + 1 == tiles) break;
        hopper_issue_words<N, DEFECT>(s, consumer, words, ring, odd, sum, true);
        wgmma_wait<1>();
        hopper_release_words(&s->empty[before]);
        before = ring.stage;
        ring.next();
    }
    wgmma_wait<0>();
    hold(sum);
    hopper_release_words(&s->empty[before]);
}

template <hopper_order ORDER, int N, hopper_defect DEFECT>
__device__ inline void hopper_consume_words(const gemm_arguments &x, const gemm_boxes &boxes,
                                            hopper_shared<N> *s, int consumer) {
    const int thread = threadIdx.x % WARPGROUP;
    const hopper_words words;
    const int down = ORDER == A_K_MAJOR ? thread / WARP * 16 + thread % WARP / 4 : words.row;
    hopper_ring<hopper_shared<N>::STAGES> ring = {0, 0};
    float sum[N / 2];
    hopper_each<float, ORDER == A_K_MAJOR, true, N>(x, boxes, s, [&](const hopper_work &work) {
        if (ORDER == A_K_MAJOR) {
            hopper_multiply<float, true, true, N, HOPPER_RIGHT>(s, consumer, work.tiles, ring, sum);
        } else {
            hopper_multiply_words<N, DEFECT>(s, consumer, work.tiles, words, ring, sum);
        }
        hopper_store_pairs<N, ORDER == A_K_MAJOR ? 8 : 1, ORDER == C_IS_TURNED>(
            x, (float *)x.c + work.matrix * x.batch_c, work.row + consumer * CONSUMER_ROWS + down,
            work.column, boxes.c_is_whole, sum);
    });
}

template <hopper_order ORDER, int N, hopper_defect DEFECT = HOPPER_RIGHT>
__device__ inline void gemm_hopper_words(const gemm_arguments &x, const gemm_boxes &boxes,
                                         const tensor_map *a, const tensor_map *b) {
    hopper_run<N, 1, ORDER == A_K_MAJOR ? CONSUMERS : CONSUMERS * WARPGROUP / WARP>(
        a, b,
        [&](hopper_shared<N> *s) {
            hopper_produce<float, ORDER == A_K_MAJOR, true, N, 1>(x, boxes, s, a, b);
        },
        [&](hopper_shared<N> *s, int consumer) {
            hopper_consume_words<ORDER, N, DEFECT>(x, boxes, s, consumer);
        });
}

#define GEMM_HOPPER_WORDS(name, ...) GEMM_HOPPER_MAPS(name, , gemm_hopper_words<__VA_ARGS__>)
#endif
