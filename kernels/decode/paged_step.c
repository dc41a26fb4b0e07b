/*
 * The host's side of a step of paged attention.
 */
#include "decode/paged_step.h"

#include "choose/struct_launch.h"
#include "core/check.h"
#include "decode/decode_arguments.h"
#include "place_check.h"
#include "quantised/formats/linear_arguments.h"

#include <assert.h>

KN_IMAGES(paged_5_step);

enum { LOG2_GROUPS = 4, CAPABILITY = 90 };

#define STEP(cache, group)                                                                         \
    {                                                                                              \
        .name = "early", .entry = "paged_step_" #cache "_" #group,                                 \
        .images = kn_images_paged_5_step, .compute_capability_min = CAPABILITY, .pdl = true,       \
        .threads = PAGED_SPAN_THREADS, .tile = {                                                   \
            group                                                                                  \
        }                                                                                          \
    }
#define STEPS(cache)                                                                               \
    { STEP(cache, 1), STEP(cache, 2), STEP(cache, 4), STEP(cache, 8) }
static const struct kn_variant steps[KN_CACHES][LOG2_GROUPS] = {STEPS(halves), STEPS(bytes)};

/* The kernel whose blocks have all heads of q that share a key. NULL: none does, or a row that is
 * rounded has chunks of several blocks. */
static const struct kn_variant *step_for_group(const struct kn_paged *x) {
    const size_t group = x->shape.heads / x->shape.kv_heads;
    const bool is_whole = group * x->shape.head_size % LINEAR_CHUNK == 0;
    if (x->rounded.address != 0 && x->splits == 1 && !is_whole) return NULL;
    assert(group > 0);
    for (int i = 0; i < LOG2_GROUPS; i++) {
        if (steps[x->shape.cache][i].tile[0] >= group) return &steps[x->shape.cache][i];
    }
    return NULL;
}

static bool step_is_one_batch(const struct kn_heads_ready *h, const struct kn_paged *p) {
    return h->batch.rows == p->batch.rows && h->batch.layer_at == p->batch.layer_at &&
           h->batch.positions.address == p->batch.positions.address &&
           h->batch.slots.address == p->batch.slots.address &&
           h->batch.tables.address == p->batch.tables.address &&
           h->batch.pages_max == p->batch.pages_max && h->shape.heads == p->shape.heads &&
           h->shape.kv_heads == p->shape.kv_heads && h->shape.head_size == p->shape.head_size &&
           h->shape.cache == p->shape.cache && h->qkv.address == p->q.address &&
           h->qkv_stride == p->q_stride;
}

tol_status kn_paged_step(struct kn_kernels *kernels, struct tol_stream *stream,
                         const struct kn_heads_ready *heads, const struct kn_paged *paged) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && heads != NULL && paged != NULL,
              TOL_INVALID_ARGUMENT, "a step needs kernels, a stream and two problems");
    TOL_CHECK(step_is_one_batch(heads, paged), TOL_INVALID_ARGUMENT,
              "a step's heads and attention are of different rows");
    if (paged->batch.rows == 0) return TOL_OK;
    struct paged_step_arguments arguments = {.rounds = paged->rounded.address != 0};
    TOL_TRY(kn_heads_prepare(heads, &arguments.heads));
    TOL_TRY(kn_paged_prepare(paged, &arguments.paged));
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    const struct kn_variant *step = step_for_group(paged);
    const bool is_open = kn_wish_is_open((struct kn_wish){.name = heads->variant}) &&
                         kn_wish_is_open((struct kn_wish){.name = paged->variant});
    if (step == NULL || device->compute_capability < CAPABILITY || !is_open) {
        TOL_TRY(kn_heads(kernels, stream, heads));
        return kn_paged_attention(kernels, stream, paged);
    }
    TOL_TRY(kn_struct_launch(
        kernels, stream, step,
        (struct tol_launch_shape){(unsigned)paged->splits, (unsigned)paged->shape.kv_heads,
                                  (unsigned)paged->batch.rows, step->threads, 1, 1, 0},
        &arguments, sizeof arguments));
    if (paged->splits > 1) status = kn_paged_merge(kernels, stream, paged, &arguments.paged);
out:
    return status;
}
