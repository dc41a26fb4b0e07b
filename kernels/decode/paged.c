/*
 * The host's side of heads and of paged attention.
 */
#include "decode/paged.h"

#include "choose/struct_launch.h"
#include "core/check.h"
#include "decode/decode_arguments.h"
#include "place_check.h"
#include "quantised/formats/linear_arguments.h"
#include "quantised/formats/rounded.h"

#include <assert.h>
#include <math.h>

KN_IMAGES(heads_1_warp);
KN_IMAGES(paged_1_span);
KN_IMAGES(paged_2_merge);
KN_IMAGES(heads_2_bytes);
KN_IMAGES(paged_3_bytes);
KN_IMAGES(paged_4_early);

enum { HEADS = 4, GRID_MAX = 65535, LOG2_GROUPS = 4, MERGE_THREADS = 64, SCALED = 32 };

/* The kernels of a table: by PDL from compute capability 9.0 on, and the others. tile: the heads of
 * q of a block. */
#define ONE(name_, entry_, file, capability, threads_, heads)                                      \
    {                                                                                              \
        .name = name_, .entry = entry_, .images = kn_images_##file,                                \
        .compute_capability_min = capability, .threads = threads_, .pdl = (capability) >= 90,      \
        .tile = {                                                                                  \
            heads                                                                                  \
        }                                                                                          \
    }
#define PAIR(entry, file, threads, heads)                                                          \
    {                                                                                              \
        ONE("early", entry "_early", paged_4_early, 90, threads, heads),                           \
            ONE("plain", entry, file, 75, threads, heads)                                          \
    }
enum { PAIR_ROWS = 2 };

static const struct kn_variant heads_rows[KN_CACHES][PAIR_ROWS] = {
    PAIR("heads_warp", heads_1_warp, 32 * HEADS, HEADS),
    PAIR("heads_bytes", heads_2_bytes, 32 * HEADS, HEADS)};

#define SPAN(cache, file, group) PAIR("paged_" #cache "_" #group, file, PAGED_SPAN_THREADS, group)
#define SPANS(cache, file)                                                                         \
    { SPAN(cache, file, 1), SPAN(cache, file, 2), SPAN(cache, file, 4), SPAN(cache, file, 8) }
static const struct kn_variant span_rows[KN_CACHES][LOG2_GROUPS][PAIR_ROWS] = {
    SPANS(span, paged_1_span), SPANS(bytes, paged_3_bytes)};
static const struct kn_variant merge_rows[2][PAIR_ROWS] = {
    PAIR("paged_merge", paged_2_merge, MERGE_THREADS, 1),
    PAIR("paged_merge_rounded", paged_2_merge, LINEAR_CHUNK, 0)};

static tol_status paged_pick(struct kn_kernels *kernels, const struct kn_variant rows[PAIR_ROWS],
                             const char *name, const struct kn_variant **variant) {
    const struct kn_variants variants = {"paged", rows, PAIR_ROWS};
    return kn_variant_pick(&variants, tol_context_device(kn_kernels_context(kernels)), name, NULL,
                           variant);
}

/* Of the keys of a layer's part of a page, without scales, and of its values. */
static size_t paged_element_bytes(const struct kn_paged_heads *heads) {
    const size_t elements = heads->kv_heads * KN_PAGE_POSITIONS * heads->head_size;
    return heads->cache == KN_CACHE_Q8_0 ? elements : elements * sizeof(uint16_t);
}

static size_t paged_scale_bytes(const struct kn_paged_heads *heads) {
    const size_t blocks = heads->kv_heads * KN_PAGE_POSITIONS * (heads->head_size / SCALED);
    return heads->cache == KN_CACHE_Q8_0 ? blocks * sizeof(uint16_t) : 0;
}

size_t kn_paged_layer_bytes(const struct kn_paged_heads *heads) {
    return 2 * (paged_element_bytes(heads) + paged_scale_bytes(heads));
}

size_t kn_paged_workspace(const struct kn_paged_heads *shape, size_t rows, size_t splits) {
    return rows * shape->heads * splits * (shape->head_size + 2) * sizeof(float);
}

static tol_status paged_check_batch(const struct kn_paged_rows *batch,
                                    const struct kn_paged_heads *shape) {
    tol_status status = TOL_OK;
    TOL_CHECK(shape->kv_heads > 0 && shape->heads > 0 && shape->heads % shape->kv_heads == 0,
              TOL_INVALID_ARGUMENT, "%zu heads of q cannot share %zu heads of k and v",
              shape->heads, shape->kv_heads);
    TOL_CHECK(shape->head_size > 0 && shape->head_size % 8 == 0 &&
                  shape->head_size <= KN_PAGED_HEAD_MAX,
              TOL_INVALID_ARGUMENT, "heads have %zu elements, no multiple of 8 up to %d",
              shape->head_size, KN_PAGED_HEAD_MAX);
    TOL_CHECK((unsigned)shape->cache < KN_CACHES, TOL_INVALID_ARGUMENT, "no kind of cache is %d",
              (int)shape->cache);
    TOL_CHECK(shape->cache != KN_CACHE_Q8_0 || shape->head_size % SCALED == 0, TOL_INVALID_ARGUMENT,
              "a cache of Q8_0 needs heads of a multiple of %d elements, not %zu", SCALED,
              shape->head_size);
    TOL_CHECK(batch->rows <= GRID_MAX && shape->heads <= GRID_MAX, TOL_OVER_LIMIT,
              "%zu rows and %zu heads; each must be below 65536", batch->rows, shape->heads);
    TOL_CHECK(batch->pages_max > 0 && batch->pages_max <= UINT32_MAX, TOL_INVALID_ARGUMENT,
              "%zu pages a session", batch->pages_max);
    TOL_CHECK(batch->layer_at % 16 == 0, TOL_INVALID_ARGUMENT,
              "a layer at byte %zu of a page, no multiple of 16", batch->layer_at);
    TOL_TRY(kn_place_check("positions", batch->positions, batch->rows * sizeof(int32_t), 4));
    TOL_TRY(kn_place_check("slots", batch->slots, batch->rows * sizeof(int32_t), 4));
    TOL_TRY(kn_place_check("tables", batch->tables, batch->pages_max * sizeof(uint64_t), 8));
out:
    return status;
}

static struct paged_cache paged_cache_from(const struct kn_paged_rows *batch,
                                           const struct kn_paged_heads *shape) {
    return (struct paged_cache){.tables = batch->tables.address,
                                .positions = batch->positions.address,
                                .slots = batch->slots.address,
                                .keys_at = batch->layer_at,
                                .values_at = batch->layer_at + paged_element_bytes(shape),
                                .key_scales_at = batch->layer_at + 2 * paged_element_bytes(shape),
                                .value_scales_at = batch->layer_at +
                                                   2 * paged_element_bytes(shape) +
                                                   paged_scale_bytes(shape),
                                .pages_max = (uint32_t)batch->pages_max};
}

static tol_status paged_check_heads(const struct kn_heads_ready *x) {
    tol_status status = TOL_OK;
    const size_t all = x->shape.heads + 2 * x->shape.kv_heads;
    const size_t head_bytes = x->shape.head_size * sizeof(float);
    TOL_TRY(paged_check_batch(&x->batch, &x->shape));
    TOL_TRY(kn_place_check_rows("qkv", x->qkv, x->batch.rows, x->qkv_stride,
                                all * x->shape.head_size, sizeof(float), 4));
    TOL_CHECK(x->rotated % 2 == 0 && x->rotated <= x->shape.head_size, TOL_INVALID_ARGUMENT,
              "%zu elements of a head of %zu cannot be rotated in pairs", x->rotated,
              x->shape.head_size);
    if (x->rotated > 0) {
        TOL_TRY(kn_place_check("frequencies", x->frequencies, x->rotated / 2 * sizeof(float), 4));
    }
    TOL_CHECK(x->layer <= UINT16_MAX, TOL_INVALID_ARGUMENT, "layer %zu", x->layer);
    if (x->notices.address != 0) {
        TOL_TRY(kn_place_check("notices", x->notices, sizeof(uint64_t), sizeof(uint64_t)));
    }
    if (x->q_norm.address != 0) TOL_TRY(kn_place_check("q_norm", x->q_norm, head_bytes, 4));
    if (x->k_norm.address != 0) TOL_TRY(kn_place_check("k_norm", x->k_norm, head_bytes, 4));
out:
    return status;
}

tol_status kn_heads_prepare(const struct kn_heads_ready *x, struct heads_arguments *arguments) {
    tol_status status = TOL_OK;
    TOL_TRY(paged_check_heads(x));
    *arguments = (struct heads_arguments){.cache = paged_cache_from(&x->batch, &x->shape),
                                          .rows_at = x->qkv.address,
                                          .row_stride = x->qkv_stride,
                                          .q_norm = x->q_norm.address,
                                          .k_norm = x->k_norm.address,
                                          .frequencies = x->frequencies.address,
                                          .epsilon = x->epsilon,
                                          .magnitude = x->magnitude,
                                          .heads = (int32_t)x->shape.heads,
                                          .kv_heads = (int32_t)x->shape.kv_heads,
                                          .head_size = (int32_t)x->shape.head_size,
                                          .rotated = (int32_t)x->rotated,
                                          .halves = x->halves,
                                          .layer = (uint32_t)x->layer,
                                          .notices = x->notices.address};
    assert(arguments->rotated <= arguments->head_size && arguments->cache.values_at % 16 == 0);
out:
    return status;
}

bool kn_notice_read(uint64_t bits, struct kn_notice *notice) {
    const uint64_t position = bits >> NOTICE_POSITION_BIT;
    if (bits == kn_notice_none) return false;
    *notice = (struct kn_notice){
        .layer = (size_t)(bits >> NOTICE_LAYER_BIT),
        .position =
            (size_t)(position & (((uint64_t)1 << (NOTICE_LAYER_BIT - NOTICE_POSITION_BIT)) - 1)),
        .is_value = (bits & NOTICE_VALUE) != 0,
        .is_finite = (bits & NOTICE_NOT_FINITE) == 0};
    return true;
}

double kn_cache_end(enum kn_cache cache) {
    enum { HALF_END = 65520, BYTE_MOST = 127 }; /* the largest half is 65504 */
    return cache == KN_CACHE_Q8_0 ? (double)HALF_END * BYTE_MOST : HALF_END;
}

tol_status kn_heads(struct kn_kernels *kernels, struct tol_stream *stream,
                    const struct kn_heads_ready *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "heads needs kernels, a stream and a problem");
    if (x->batch.rows == 0) return TOL_OK;
    struct heads_arguments arguments;
    TOL_TRY(kn_heads_prepare(x, &arguments));
    const size_t all = x->shape.heads + 2 * x->shape.kv_heads;
    const struct kn_variant *variant = NULL;
    TOL_TRY(paged_pick(kernels, heads_rows[x->shape.cache], x->variant, &variant));
    status = kn_struct_launch(kernels, stream, variant,
                              (struct tol_launch_shape){(unsigned)((all + HEADS - 1) / HEADS),
                                                        (unsigned)x->batch.rows, 1,
                                                        variant->threads, 1, 1, 0},
                              &arguments, sizeof arguments);
out:
    return status;
}

static tol_status paged_check_attention(const struct kn_paged *x) {
    tol_status status = TOL_OK;
    const size_t width = x->shape.heads * x->shape.head_size;
    TOL_TRY(paged_check_batch(&x->batch, &x->shape));
    TOL_CHECK(x->splits > 0 && x->splits <= INT32_MAX / KN_PAGED_SPAN && x->window <= INT32_MAX,
              TOL_INVALID_ARGUMENT, "%zu spans and a window of %zu", x->splits, x->window);
    TOL_CHECK(!(x->scale < 0) && isfinite(x->scale), TOL_INVALID_ARGUMENT, "a scale of %g",
              (double)x->scale);
    TOL_TRY(kn_place_check_rows("q", x->q, x->batch.rows, x->q_stride, width, sizeof(float), 4));
    if (x->rounded.address != 0) {
        TOL_CHECK(kn_paged_can_round(&x->shape), TOL_INVALID_ARGUMENT,
                  "rows of %zu elements cannot be rounded", width);
        TOL_TRY(kn_place_check("the rounded rows", x->rounded,
                               kn_rounded_bytes(x->batch.rows, width), 16));
    } else {
        TOL_TRY(kn_place_check_rows("out", x->out, x->batch.rows, x->out_stride, width,
                                    sizeof(float), 4));
    }
    TOL_TRY(kn_place_check("workspace", x->workspace,
                           kn_paged_workspace(&x->shape, x->batch.rows, x->splits), 4));
out:
    return status;
}

/* The smallest kernel whose blocks take all heads that share a key, or the largest. */
static const struct kn_variant *paged_span_for(const struct kn_paged_heads *shape) {
    int at = 0;
    const struct kn_variant(*rows)[PAIR_ROWS] = span_rows[shape->cache];
    while (at < LOG2_GROUPS - 1 && rows[at][0].tile[0] < shape->heads / shape->kv_heads) at++;
    assert(at == LOG2_GROUPS - 1 || rows[at][0].tile[0] * shape->kv_heads >= shape->heads);
    return rows[at];
}

bool kn_paged_can_round(const struct kn_paged_heads *shape) {
    return shape->heads * shape->head_size % LINEAR_CHUNK == 0;
}

tol_status kn_paged_prepare(const struct kn_paged *x, struct paged_arguments *arguments) {
    tol_status status = TOL_OK;
    TOL_TRY(paged_check_attention(x));
    const float scale = x->scale > 0 ? x->scale : 1 / sqrtf((float)x->shape.head_size);
    *arguments = (struct paged_arguments){.cache = paged_cache_from(&x->batch, &x->shape),
                                          .q = x->q.address,
                                          .out = x->rounded.address != 0 ? x->rounded.address
                                                                         : x->out.address,
                                          .q_stride = x->q_stride,
                                          .out_stride = x->out_stride,
                                          .parts = x->workspace.address,
                                          .scale_log2 = scale * 1.44269504089f,
                                          .heads = (int32_t)x->shape.heads,
                                          .kv_heads = (int32_t)x->shape.kv_heads,
                                          .head_size = (int32_t)x->shape.head_size,
                                          .window = (int32_t)x->window,
                                          .splits = (int32_t)x->splits};
    assert(arguments->scale_log2 >= 0 && arguments->splits > 0 && arguments->out != 0);
out:
    return status;
}

tol_status kn_paged_merge(struct kn_kernels *kernels, struct tol_stream *stream,
                          const struct kn_paged *x, const struct paged_arguments *arguments) {
    tol_status status = TOL_OK;
    const bool is_rounded = x->rounded.address != 0;
    const struct kn_variant *merge = NULL;
    TOL_TRY(paged_pick(kernels, merge_rows[is_rounded], x->variant, &merge));
    const size_t width = x->shape.heads * x->shape.head_size;
    const size_t blocks = is_rounded ? width / LINEAR_CHUNK : x->shape.heads;
    status = kn_struct_launch(kernels, stream, merge,
                              (struct tol_launch_shape){(unsigned)blocks, (unsigned)x->batch.rows,
                                                        1, merge->threads, 1, 1, 0},
                              arguments, sizeof *arguments);
out:
    return status;
}

tol_status kn_paged_attention(struct kn_kernels *kernels, struct tol_stream *stream,
                              const struct kn_paged *x) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && x != NULL, TOL_INVALID_ARGUMENT,
              "paged attention needs kernels, a stream and a problem");
    if (x->batch.rows == 0) return TOL_OK;
    struct paged_arguments arguments;
    TOL_TRY(kn_paged_prepare(x, &arguments));
    const struct kn_variant *span = NULL;
    TOL_TRY(paged_pick(kernels, paged_span_for(&x->shape), x->variant, &span));
    const size_t group = x->shape.heads / x->shape.kv_heads;
    const size_t times = (group + span->tile[0] - 1) / span->tile[0];
    TOL_TRY(kn_struct_launch(
        kernels, stream, span,
        (struct tol_launch_shape){(unsigned)x->splits, (unsigned)(x->shape.kv_heads * times),
                                  (unsigned)x->batch.rows, span->threads, 1, 1, 0},
        &arguments, sizeof arguments));
    status = kn_paged_merge(kernels, stream, x, &arguments);
out:
    return status;
}

void kn_paged_cache_of(const struct kn_paged_rows *batch, const struct kn_paged_heads *shape,
                       struct paged_cache *cache) {
    *cache = paged_cache_from(batch, shape);
}

tol_status kn_paged_check(const struct kn_paged_rows *batch, const struct kn_paged_heads *shape) {
    return paged_check_batch(batch, shape);
}
