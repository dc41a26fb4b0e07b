/*
 * The table of the kernels of attention's backward pass, best first, and what each requires.
 */
#include "attention/backward/attention_backward_maps.h"

KN_IMAGES(attention_backward_1_naive);
KN_IMAGES(attention_backward_2_tensor);
KN_IMAGES(attention_backward_3_hopper);
KN_IMAGES(attention_backward_4_ordered);
KN_IMAGES(attention_backward_defects);
KN_IMAGES(attention_backward_hopper_defects);
KN_IMAGES(attention_backward_ordered_defects);

enum { ANY = 0, TURN = ATTENTION_TURN_ROWS };

/* What a kernel needs of a problem. */
enum { MAPS = 1, SUMS = 2 };

static const char *backward_refuses(const struct kn_variant *row, const void *of) {
    const struct attention_backward_problem *problem = of;
    const struct kn_attention *x = &problem->backward->forward;
    const char *why = kn_types_refuse(row->types, x->type);
    if (why != NULL) return why;
    if (row->size == ANY) return NULL;
    if (x->head_size != row->size) return "heads are of another size";
    if (!problem->is_aligned) return "a row does not begin at a multiple of 16 bytes";
    if ((row->needs & MAPS) != 0 && !attention_backward_maps_serve(problem)) {
        return "no tensor maps can be made";
    }
    return (row->needs & SUMS) != 0 && problem->arguments.sums == 0
               ? "the workspace has no room for sums"
               : NULL;
}

static const char *backward_declines(const struct kn_variant *row, const void *of,
                                     const struct tol_device *device) {
    const struct attention_backward_problem *problem = of;
    (void)device; /* another device gives the same bits */
    return (row->needs & SUMS) != 0 && !attention_backward_is_long(&problem->backward->forward)
               ? "there are few tiles of keys"
               : NULL;
}

/* Shared memory of a block of attention_backward_tensor: as gradient_shared_bytes, for tiles of 32
 * rows that move. */
#define TENSOR_BYTES(d, rows) ((2 * (rows) + 4 * 32) * 2 * (d) + 2 * 32 * 8)
/* Of attention_backward_hopper, as ROOM of its shape: tiles of 64 rows, two for each consumer and
 * two a stage, with figures. */
#define HOPPER_STAGES(d) ((d) == 64 ? 4 : 3)
#define HOPPER_BYTES(d) ((4 + 2 * HOPPER_STAGES(d)) * 64 * 2 * (d) + HOPPER_STAGES(d) * 512 + 2048)
/* Of attention_backward_ordered: two tiles of gradients and one of floats besides. */
#define ORDERED_BYTES(d)                                                                           \
    ((4 + 2 * HOPPER_STAGES(d)) * 64 * 2 * (d) + 2 * 128 * 128 + 64 * 4 * (d) +                    \
     HOPPER_STAGES(d) * 1024)

/* Name, entry point, image, least compute capability, type, elements of a head, threads, bytes of
 * dynamic shared memory, the rows that a block owns, whether it takes tensor maps, and the rows of
 * q of the tiles that blocks add to in turn. */
#define BACKWARDS(ROW)                                                                             \
    ROW(ordered, ordered_f16_64, 4_ordered, 90, F16, 64, 384, ORDERED_BYTES(64), 128, 1, TURN)     \
    ROW(ordered, ordered_f16_128, 4_ordered, 90, F16, 128, 384, ORDERED_BYTES(128), 128, 1, TURN)  \
    ROW(ordered, ordered_bf16_64, 4_ordered, 90, BF16, 64, 384, ORDERED_BYTES(64), 128, 1, TURN)   \
    ROW(ordered, ordered_bf16_128, 4_ordered, 90, BF16, 128, 384, ORDERED_BYTES(128), 128, 1,      \
        TURN)                                                                                      \
    ROW(wgmma, wgmma_f16_64, 3_hopper, 90, F16, 64, 384, HOPPER_BYTES(64), 128, 1, 0)              \
    ROW(wgmma, wgmma_f16_128, 3_hopper, 90, F16, 128, 384, HOPPER_BYTES(128), 128, 1, 0)           \
    ROW(wgmma, wgmma_bf16_64, 3_hopper, 90, BF16, 64, 384, HOPPER_BYTES(64), 128, 1, 0)            \
    ROW(wgmma, wgmma_bf16_128, 3_hopper, 90, BF16, 128, 384, HOPPER_BYTES(128), 128, 1, 0)         \
    ROW(tensor, tensor_f16_64, 2_tensor, 80, F16, 64, 128, TENSOR_BYTES(64, 128), 128, 0, 0)       \
    ROW(tensor, tensor_f16_128, 2_tensor, 80, F16, 128, 128, TENSOR_BYTES(128, 64), 64, 0, 0)      \
    ROW(tensor, tensor_bf16_64, 2_tensor, 80, BF16, 64, 128, TENSOR_BYTES(64, 128), 128, 0, 0)     \
    ROW(tensor, tensor_bf16_128, 2_tensor, 80, BF16, 128, 128, TENSOR_BYTES(128, 64), 64, 0, 0)    \
    ROW(naive, naive_f32, 1_naive, 75, F32, ANY, 32, 0, 0, 0, 0)                                   \
    ROW(naive, naive_f16, 1_naive, 75, F16, ANY, 32, 0, 0, 0, 0)                                   \
    ROW(naive, naive_bf16, 1_naive, 75, BF16, ANY, 32, 0, 0, 0, 0)

#define VARIANT(name_, entry_, image, capability, type, head_size, threads_, bytes, rows, maps,    \
                turn)                                                                              \
    {.name = #name_,                                                                               \
     .entry = "attention_backward_" #entry_,                                                       \
     .images = kn_images_attention_backward_##image,                                               \
     .compute_capability_min = capability,                                                         \
     .types = 1 << KN_##type,                                                                      \
     .needs = ((maps) != 0 ? MAPS : 0) | ((turn) != 0 ? SUMS : 0),                                 \
     .size = head_size,                                                                            \
     .refuse = backward_refuses,                                                                   \
     .decline = backward_declines,                                                                 \
     .threads = threads_,                                                                          \
     .shared_bytes = bytes,                                                                        \
     .tile = {rows, turn},                                                                         \
     .cluster = maps},
static const struct kn_variant variants[] = {BACKWARDS(VARIANT)};

const struct kn_variants kn_attention_backward_variants = {"attention's backward pass", variants,
                                                           sizeof variants / sizeof variants[0]};

#define DEFECT(which, image, capability, type, threads_, bytes, maps, turn)                        \
    {.name = #which,                                                                               \
     .entry = "attention_backward_" #which,                                                        \
     .images = kn_images_attention_backward_##image,                                               \
     .compute_capability_min = capability,                                                         \
     .types = 1 << KN_##type,                                                                      \
     .needs = ((maps) != 0 ? MAPS : 0) | ((turn) != 0 ? SUMS : 0),                                 \
     .size = 64,                                                                                   \
     .refuse = backward_refuses,                                                                   \
     .threads = threads_,                                                                          \
     .shared_bytes = bytes,                                                                        \
     .tile = {128, turn},                                                                          \
     .cluster = maps},
#define TENSOR_DEFECT(which) DEFECT(which, defects, 80, F16, 128, TENSOR_BYTES(64, 128), 0, 0)
#define HOPPER_DEFECT(which) DEFECT(which, hopper_defects, 90, BF16, 384, HOPPER_BYTES(64), 1, 0)
#define ORDERED_DEFECT(which)                                                                      \
    DEFECT(which, ordered_defects, 90, BF16, 384, ORDERED_BYTES(64), 1, TURN)
static const struct kn_variant defects[] = {
    TENSOR_DEFECT(no_delta) TENSOR_DEFECT(lost_head) TENSOR_DEFECT(unmasked)
        TENSOR_DEFECT(last_tile_lost) TENSOR_DEFECT(swapped_figures) TENSOR_DEFECT(unscaled)
            HOPPER_DEFECT(lost_consumer) HOPPER_DEFECT(lost_step) HOPPER_DEFECT(wrong_head)
                ORDERED_DEFECT(lost_part) ORDERED_DEFECT(lost_keys) ORDERED_DEFECT(wrong_half)};
const struct kn_variants kn_attention_backward_defects = {
    "defects of attention's backward pass", defects, sizeof defects / sizeof defects[0]};

#define FIGURES(type)                                                                              \
    {                                                                                              \
        .name = "figures", .entry = "attention_figures_" #type,                                    \
        .images = kn_images_attention_backward_1_naive, .compute_capability_min = 75,              \
        .threads = 32                                                                              \
    }
const struct kn_variant kn_attention_figures[KN_TYPES] = {
    [KN_F32] = FIGURES(f32), [KN_F16] = FIGURES(f16), [KN_BF16] = FIGURES(bf16)};

#define BESIDE(which, type, d, threads_)                                                           \
    {                                                                                              \
        .name = #which, .entry = "attention_" #which "_" #type "_" #d,                             \
        .images = kn_images_attention_backward_4_ordered, .compute_capability_min = 90,            \
        .threads = threads_                                                                        \
    }
const struct kn_variant *attention_backward_begin(enum kn_type type, size_t head_size) {
    static const struct kn_variant begin[][2] = {
        {BESIDE(begin, f16, 64, 256), BESIDE(begin, f16, 128, 256)},
        {BESIDE(begin, bf16, 64, 256), BESIDE(begin, bf16, 128, 256)}};
    return &begin[type == KN_BF16][head_size == 128];
}

const struct kn_variant *attention_backward_finish(enum kn_type type, size_t head_size) {
    static const struct kn_variant finish[][2] = {
        {BESIDE(finish, f16, 64, 4 * 64), BESIDE(finish, f16, 128, 4 * 128)},
        {BESIDE(finish, bf16, 64, 4 * 64), BESIDE(finish, bf16, 128, 4 * 128)}};
    return &finish[type == KN_BF16][head_size == 128];
}
