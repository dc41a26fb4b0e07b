/*
 * The table of attention's kernels and what each requires of a problem, from
 * attention_variants.def.
 */
#include "attention/forward/attention_combine.h"
#include "attention/forward/attention_maps.h"
#include "attention/forward/attention_tensor_shape.h"

KN_IMAGES(attention_1_naive);
KN_IMAGES(attention_2_tiled);
KN_IMAGES(attention_3_tensor);
KN_IMAGES(attention_4_decode);
KN_IMAGES(attention_5_combine);
KN_IMAGES(attention_6_grouped);
KN_IMAGES(attention_7_hopper);
KN_IMAGES(attention_8_early);
KN_IMAGES(attention_defects);

/* Up to this many rows of q, memory and not arithmetic bounds the time. */
enum { DECODE_ROWS_MAX = 8 };

/* The rows of an mma. */
enum { GROUPED_ROWS_MAX = 16 };

/* What a kernel requires of a problem besides its type and head size. */
enum {
    ANY = 0,
    ALIGNED = 1,           /* each row begins at a multiple of 16 bytes */
    FEW = ALIGNED | 2,     /* and there are up to DECODE_ROWS_MAX rows of q, without a window */
    GROUPED = ALIGNED | 4, /* and up to GROUPED_ROWS_MAX rows share a head, without a window */
    MAPS = ALIGNED | 8     /* and tensor maps describe them */
};

static const char *attention_refuses(const struct kn_variant *row, const void *of) {
    const struct attention_problem *problem = of;
    const struct kn_attention *x = problem->attention;
    const unsigned serves = row->needs;
    const char *why = kn_types_refuse(row->types, x->type);
    if (why != NULL) return why;
    if (serves == MAPS) return attention_maps_refuse(problem, row->size);
    if (row->size != ANY && x->head_size != row->size) return "heads are of another size";
    if ((serves & ALIGNED) != 0 && !problem->is_aligned) {
        return "a row does not begin at a multiple of 16 bytes";
    }
    if ((serves == FEW || serves == GROUPED) && problem->arguments.causal &&
        problem->arguments.window < problem->arguments.kv_length) {
        return "it knows no window";
    }
    if (serves == FEW && x->q_length > DECODE_ROWS_MAX) return "it is for 8 rows of q and fewer";
    const size_t rows = (size_t)problem->arguments.group * x->q_length;
    if (serves == GROUPED && rows > GROUPED_ROWS_MAX) {
        return "more than 16 rows share a head of k and v";
    }
    return NULL;
}

/* Shared memory of a block. */
#define TENSOR_BYTES(d) ATTENTION_TENSOR_BYTES(d)
#define HOPPER_BYTES(d) ATTENTION_HOPPER_BYTES(d)
/* Of attention_6_grouped: 16 rows of q, and for each warp two tiles of 16 keys and values. */
#define GROUPED_WARPS(d) ((d) == 256 ? 2 : 4)
#define GROUPED_BYTES(d) ((16 + GROUPED_WARPS(d) * 2 * 2 * 16) * ATTENTION_TENSOR_PITCH(d))
/* Of attention_2_tiled: rows of q, of keys or values, and of weights. */
#define TILED_ROWS(d) ((d) == 256 ? 32 : 64)
#define TILED_BYTES(d) (TILED_ROWS(d) * (2 * ((d) + 4) + TILED_ROWS(d) + 4) * 4)

static const struct kn_variant variants[] = {
#define ATTENTION(name_, entry_, image, capability, type, head_size, serves, threads_, bytes,      \
                  queries)                                                                         \
    {.name = #name_,                                                                               \
     .entry = "attention_" #entry_,                                                                \
     .images = kn_images_attention_##image,                                                        \
     .compute_capability_min = capability,                                                         \
     .types = 1 << KN_##type,                                                                      \
     .needs = serves,                                                                              \
     .size = head_size,                                                                            \
     .refuse = attention_refuses,                                                                  \
     .threads = threads_,                                                                          \
     .shared_bytes = bytes,                                                                        \
     .tile = {queries},                                                                            \
     .cluster = (serves) == MAPS ? 1 : 0},
#include "attention/forward/attention_variants.def"
#undef ATTENTION
};

const struct kn_variants kn_attention_variants = {"attention", variants,
                                                  sizeof variants / sizeof variants[0]};

#define DEFECT(which)                                                                              \
    {                                                                                              \
        .name = #which, .entry = "attention_" #which, .images = kn_images_attention_defects,       \
        .compute_capability_min = 80, .types = 1 << KN_F16, .needs = ALIGNED, .size = 64,          \
        .refuse = attention_refuses, .threads = 128, .shared_bytes = TENSOR_BYTES(64), .tile = {   \
            128                                                                                    \
        }                                                                                          \
    }
static const struct kn_variant defects[] = {
    DEFECT(no_rescale),     DEFECT(no_maximum),      DEFECT(causal_plus_one), DEFECT(keys_unmasked),
    DEFECT(tail_unwritten), DEFECT(window_plus_one), DEFECT(window_tile_lost)};
const struct kn_variants kn_attention_defects = {"attention's defects", defects,
                                                 sizeof defects / sizeof defects[0]};

#define COMBINE(of, type, file, capability)                                                        \
    {                                                                                              \
        .name = of, .entry = "attention_" of "_" #type, .images = kn_images_attention_##file,      \
        .compute_capability_min = capability, .threads = KN_ATTENTION_COMBINE_THREADS              \
    }
#define COMBINES(type)                                                                             \
    { COMBINE("combine_early", type, 8_early, 90), COMBINE("combine", type, 5_combine, 75) }
static const struct kn_variant combines[KN_TYPES][2] = {
    [KN_F32] = COMBINES(f32), [KN_F16] = COMBINES(f16), [KN_BF16] = COMBINES(bf16)};
#define COMBINE_TABLE(type)                                                                        \
    { "attention's merging", combines[type], 2 }
const struct kn_variants kn_attention_combine[KN_TYPES] = {[KN_F32] = COMBINE_TABLE(KN_F32),
                                                           [KN_F16] = COMBINE_TABLE(KN_F16),
                                                           [KN_BF16] = COMBINE_TABLE(KN_BF16)};
