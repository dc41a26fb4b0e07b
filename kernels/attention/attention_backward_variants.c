/*
 * The table of the kernels of attention's backward pass, best first, and what each requires.
 */
#include "attention/attention_backward_problem.h"

KN_IMAGES(attention_backward_1_naive);
KN_IMAGES(attention_backward_2_tensor);
KN_IMAGES(attention_backward_defects);

enum { ANY = 0 };

static const char *refuse(const struct attention_backward_problem *problem, enum kn_type type,
                          size_t head_size) {
    static const char *const clauses[KN_TYPES] = {"the type is not f32", "the type is not f16",
                                                  "the type is not bf16"};
    const struct kn_attention *x = &problem->backward->forward;
    if (x->type != type) return clauses[type];
    if (head_size == ANY) return NULL;
    if (x->head_size != head_size) return "heads are of another size";
    return problem->is_aligned ? NULL : "a row does not begin at a multiple of 16 bytes";
}

#define BACKWARDS(ROW)                                                                             \
    ROW(tensor, tensor_f16_64, 2_tensor, 80, F16, 64, 128)                                         \
    ROW(tensor, tensor_f16_128, 2_tensor, 80, F16, 128, 64)                                        \
    ROW(tensor, tensor_bf16_64, 2_tensor, 80, BF16, 64, 128)                                       \
    ROW(tensor, tensor_bf16_128, 2_tensor, 80, BF16, 128, 64)                                      \
    ROW(naive, naive_f32, 1_naive, 75, F32, ANY, 0)                                                \
    ROW(naive, naive_f16, 1_naive, 75, F16, ANY, 0)                                                \
    ROW(naive, naive_bf16, 1_naive, 75, BF16, ANY, 0)

#define REFUSE(name, entry, image, capability, type, head_size, rows)                              \
    static const char *refuse_##entry(const void *problem) {                                       \
        return refuse(problem, KN_##type, head_size);                                              \
    }
BACKWARDS(REFUSE)

/* Shared memory of a block of attention_backward_tensor: as gradient_shared_bytes, for tiles of 32
 * rows that move. */
#define TENSOR_BYTES(d, rows) ((2 * (rows) + 4 * 32) * 2 * (d) + 2 * 32 * 8)

#define VARIANT(name_, entry_, image, capability, type, head_size, rows)                           \
    {.name = #name_,                                                                               \
     .entry = "attention_backward_" #entry_,                                                       \
     .images = kn_images_attention_backward_##image,                                               \
     .compute_capability_min = capability,                                                         \
     .refuse = refuse_##entry_,                                                                    \
     .threads = (rows) != 0 ? 128 : 32,                                                            \
     .shared_bytes = (rows) != 0 ? TENSOR_BYTES(head_size, rows) : 0,                              \
     .tile = {rows}},
static const struct kn_variant variants[] = {BACKWARDS(VARIANT)};

const struct kn_variants kn_attention_backward_variants = {"attention's backward pass", variants,
                                                           sizeof variants / sizeof variants[0]};

#define DEFECT(which)                                                                              \
    {                                                                                              \
        .name = #which, .entry = "attention_backward_" #which,                                     \
        .images = kn_images_attention_backward_defects, .compute_capability_min = 80,              \
        .refuse = refuse_tensor_f16_64, .threads = 128, .shared_bytes = TENSOR_BYTES(64, 128),     \
        .tile = {                                                                                  \
            128                                                                                    \
        }                                                                                          \
    }
static const struct kn_variant defects[] = {DEFECT(no_delta),        DEFECT(lost_head),
                                            DEFECT(unmasked),        DEFECT(last_tile_lost),
                                            DEFECT(swapped_figures), DEFECT(unscaled)};
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
