/*
 * The kernels of attention, best first, and what each asks of a problem.
 */
#include "attention/attention_problem.h"

KN_IMAGES(attention_1_naive);
KN_IMAGES(attention_2_tiled);
KN_IMAGES(attention_3_tensor);
KN_IMAGES(attention_4_decode);
KN_IMAGES(attention_5_combine);
KN_IMAGES(attention_6_grouped);
KN_IMAGES(attention_defects);

/* Up to so many rows of q memory, and not arithmetic, is what takes time. */
enum { DECODE_ROWS_MAX = 8 };

/* Those of an mma. */
enum { GROUPED_ROWS_MAX = 16 };

static const char *refuse_type(const void *problem, enum kn_type type) {
    static const char *const clauses[KN_TYPES] = {"the type is not f32", "the type is not f16",
                                                  "the type is not bf16"};
    const struct attention_problem *p = problem;
    return p->attention->type == type ? NULL : clauses[type];
}

static const char *refuse(const void *problem, enum kn_type type, size_t head_size) {
    const struct attention_problem *p = problem;
    if (refuse_type(problem, type) != NULL) return refuse_type(problem, type);
    return p->attention->head_size == head_size ? NULL : "heads are of another size";
}

static const char *refuse_unaligned(const void *problem, enum kn_type type, size_t head_size) {
    const struct attention_problem *p = problem;
    const char *why = refuse(problem, type, head_size);
    if (why != NULL) return why;
    return p->is_aligned ? NULL : "a row does not begin at a multiple of 16 bytes";
}

static const char *refuse_many(const void *problem, enum kn_type type, size_t head_size) {
    const struct attention_problem *p = problem;
    const char *why = refuse_unaligned(problem, type, head_size);
    if (why != NULL) return why;
    return p->attention->q_length <= DECODE_ROWS_MAX ? NULL : "it is for 8 rows of q and fewer";
}

static const char *refuse_ungrouped(const void *problem, enum kn_type type, size_t head_size) {
    const struct attention_problem *p = problem;
    const char *why = refuse_unaligned(problem, type, head_size);
    if (why != NULL) return why;
    const size_t rows = (size_t)p->arguments.group * p->attention->q_length;
    return rows <= GROUPED_ROWS_MAX ? NULL : "more than 16 rows share a head of k and v";
}

/* Shared memory of a block: rows of q, and of keys and values; attention_shared_bytes. */
#define TENSOR_PITCH(d) ((d) / 8 % 8 == 0 ? 2 * (d) : 2 * (d) + 16)
#define TENSOR_KEYS(d) ((d) == 64 ? 128 : (d) == 256 ? 32 : 64)
#define TENSOR_BYTES(d) ((((d) == 256 ? 64 : 128) + 4 * TENSOR_KEYS(d)) * TENSOR_PITCH(d))
/* Of the grouped one: 16 rows of q, and for each warp twice 16 keys with their values. */
#define GROUPED_WARPS(d) ((d) == 256 ? 2 : 4)
#define GROUPED_BYTES(d) ((16 + GROUPED_WARPS(d) * 2 * 2 * 16) * TENSOR_PITCH(d))
/* And of the tiled one: rows of q, of keys, and of weights. */
#define TILED_ROWS(d) ((d) == 256 ? 32 : 64)
#define TILED_BYTES(d) (TILED_ROWS(d) * (2 * ((d) + 4) + TILED_ROWS(d) + 4) * 4)

/* clang-format off */
#define FUNCTIONS(type, kind, d)                                                                   \
    static const char *tensor_##type##_##d(const void *problem) {                                  \
        return refuse_unaligned(problem, kind, d);                                                 \
    }                                                                                              \
    static const char *decode_##type##_##d(const void *problem) {                                  \
        return refuse_many(problem, kind, d);                                                      \
    }                                                                                              \
    static const char *grouped_##type##_##d(const void *problem) {                                 \
        return refuse_ungrouped(problem, kind, d);                                                 \
    }
#define GROUPED(type, d)                                                                           \
    {.name = "grouped", .entry = "attention_grouped_" #type "_" #d,                                \
     .images = kn_images_attention_6_grouped, .compute_capability_min = 80,                        \
     .refuse = grouped_##type##_##d, .threads = 32 * GROUPED_WARPS(d),                             \
     .shared_bytes = GROUPED_BYTES(d)}
#define TENSOR(type, d)                                                                            \
    {.name = "tensor", .entry = "attention_tensor_" #type "_" #d,                                  \
     .images = kn_images_attention_3_tensor, .compute_capability_min = 80,                         \
     .refuse = tensor_##type##_##d, .threads = 128, .shared_bytes = TENSOR_BYTES(d),               \
     .tile = {(d) == 256 ? 64 : 128}}
#define DECODE(type, d)                                                                            \
    {.name = "decode", .entry = "attention_decode_" #type "_" #d,                                  \
     .images = kn_images_attention_4_decode, .compute_capability_min = 75,                         \
     .refuse = decode_##type##_##d, .threads = 128}
#define TILED(d)                                                                                   \
    {.name = "tiled", .entry = "attention_tiled_f32_" #d,                                          \
     .images = kn_images_attention_2_tiled, .compute_capability_min = 80,                          \
     .refuse = tiled_##d, .threads = 256, .shared_bytes = TILED_BYTES(d), .tile = {TILED_ROWS(d)}}
#define NAIVE(type)                                                                                \
    {.name = "naive", .entry = "attention_naive_" #type,                                           \
     .images = kn_images_attention_1_naive, .compute_capability_min = 75, .refuse = only_##type,   \
     .threads = 32}
#define COMBINE(type)                                                                              \
    {.name = "combine", .entry = "attention_combine_" #type,                                       \
     .images = kn_images_attention_5_combine, .compute_capability_min = 75, .threads = 128}
#define DEFECT(which)                                                                              \
    {.name = #which, .entry = "attention_" #which, .images = kn_images_attention_defects,          \
     .compute_capability_min = 80, .refuse = tensor_f16_64, .threads = 128,                        \
     .shared_bytes = TENSOR_BYTES(64), .tile = {128}}
/* clang-format on */

#define OF_ALL_SIZES(WHAT, ...)                                                                    \
    WHAT(__VA_ARGS__, 64)                                                                          \
    WHAT(__VA_ARGS__, 80) WHAT(__VA_ARGS__, 96) WHAT(__VA_ARGS__, 128) WHAT(__VA_ARGS__, 256)
OF_ALL_SIZES(FUNCTIONS, f16, KN_F16)
OF_ALL_SIZES(FUNCTIONS, bf16, KN_BF16)

#define FUNCTIONS_F32(none, d)                                                                     \
    static const char *decode_f32_##d(const void *problem) {                                       \
        return refuse_many(problem, KN_F32, d);                                                    \
    }                                                                                              \
    static const char *tiled_##d(const void *problem) {                                            \
        return refuse(problem, KN_F32, d);                                                         \
    }
OF_ALL_SIZES(FUNCTIONS_F32, )

static const char *only_f32(const void *problem) {
    return refuse_type(problem, KN_F32);
}

static const char *only_f16(const void *problem) {
    return refuse_type(problem, KN_F16);
}

static const char *only_bf16(const void *problem) {
    return refuse_type(problem, KN_BF16);
}

/* Of rows that both could serve grouped reads keys once for all heads that share them. */
static const struct kn_variant variants[] = {
    GROUPED(f16, 64),  GROUPED(f16, 80),  GROUPED(f16, 96),  GROUPED(f16, 128),  GROUPED(f16, 256),
    GROUPED(bf16, 64), GROUPED(bf16, 80), GROUPED(bf16, 96), GROUPED(bf16, 128), GROUPED(bf16, 256),
    DECODE(f32, 64),   DECODE(f32, 80),   DECODE(f32, 96),   DECODE(f32, 128),   DECODE(f32, 256),
    DECODE(f16, 64),   DECODE(f16, 80),   DECODE(f16, 96),   DECODE(f16, 128),   DECODE(f16, 256),
    DECODE(bf16, 64),  DECODE(bf16, 80),  DECODE(bf16, 96),  DECODE(bf16, 128),  DECODE(bf16, 256),
    TENSOR(f16, 64),   TENSOR(f16, 80),   TENSOR(f16, 96),   TENSOR(f16, 128),   TENSOR(f16, 256),
    TENSOR(bf16, 64),  TENSOR(bf16, 80),  TENSOR(bf16, 96),  TENSOR(bf16, 128),  TENSOR(bf16, 256),
    TILED(64),         TILED(80),         TILED(96),         TILED(128),         TILED(256),
    NAIVE(f32),        NAIVE(f16),        NAIVE(bf16)};

static const struct kn_variant defects[] = {DEFECT(no_rescale), DEFECT(no_maximum),
                                            DEFECT(causal_plus_one), DEFECT(keys_unmasked),
                                            DEFECT(tail_unwritten)};

const struct kn_variants kn_attention_variants = {"attention", variants,
                                                  sizeof variants / sizeof variants[0]};
const struct kn_variants kn_attention_defects = {"attention's defects", defects,
                                                 sizeof defects / sizeof defects[0]};
const struct kn_variant kn_attention_combine[KN_TYPES] = {
    [KN_F32] = COMBINE(f32), [KN_F16] = COMBINE(f16), [KN_BF16] = COMBINE(bf16)};
