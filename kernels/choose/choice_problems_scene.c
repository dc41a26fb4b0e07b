/*
 * Draws sizes near the edges of tiles and of what kernels accept.
 */
#include "choice_problems_scene.h"

#include "attention/backward/attention_backward.h"
#include "attention/e4m3/attention_e4m3.h"
#include "attention/packed/attention_packed.h"
#include "attention/paged/attention_paged.h"
#include "core/check.h"
#include "grouped/grouped.h"
#include "norm/norm.h"
#include "quantised/linear/linear.h"
#include "quantised/product/quant_product.h"
#include "row/argmax.h"
#include "row/top_k.h"
#include "softmax/softmax.h"

/* ---- draws ----------------------------------------------------------------------------------- */

static uint64_t draw(struct choice_place *place, uint64_t below) {
    place->state = place->state * 6364136223846793005u + 1442695040888963407u;
    return (place->state >> 33) % below;
}

static bool draw_once_in(struct choice_place *place, unsigned times) {
    return draw(place, times) == 0;
}

static size_t draw_size(struct choice_place *place, size_t most) {
    static const size_t sizes[] = {
        1,    2,    7,     8,   16,  24,   31,   32,  63,  64,   65,   96,   127,   128,  129,
        192,  250,  256,   257, 320, 384,  512,  768, 999, 1000, 1024, 1536, 2048,  4000, 4095,
        4096, 8192, 11008, 257, 640, 5120, 4104, 136, 72,  2056, 3072, 6144, 14336, 16384};
    const size_t size =
        draw_once_in(place, 4)
            ? 1 + draw(place, most)
            : sizes[draw(place, sizeof sizes / sizeof sizes[0])] * (draw_once_in(place, 8) ? 4 : 1);
    const size_t drawn = size <= most ? size : 1 + size % most;
    return place->is_regular && drawn > 8 ? drawn / 8 * 8 : drawn;
}

/* Elements before an operand, or between its rows: mostly none, or what keeps alignment. */
static size_t draw_gap(struct choice_place *place) {
    static const size_t gaps[] = {0, 0, 0, 0, 0, 8, 16, 1, 3, 4};
    const size_t gap = gaps[draw(place, sizeof gaps / sizeof gaps[0])];
    return place->is_regular ? gap / 8 * 8 : gap;
}

static const char *draw_name(struct choice_place *place, const char *const *names, size_t count) {
    return draw_once_in(place, 10) ? names[draw(place, count)] : NULL;
}
#define DRAW_NAME(place, ...)                                                                      \
    draw_name(place, (const char *const[]){__VA_ARGS__},                                           \
              sizeof(const char *const[]){__VA_ARGS__} / sizeof(char *))

static float draw_beta(struct choice_place *place) {
    return draw_once_in(place, 3) ? 0.5f : 0;
}

/* None, one that is too small, or the size that the operation states. */
static tol_status draw_workspace(struct choice_place *place, size_t bytes,
                                 struct tol_buffer **workspace) {
    const uint64_t kind = draw(place, 4);
    *workspace = NULL;
    if (bytes == 0 || bytes > (size_t)1 << 40 || kind == 0) return TOL_OK;
    return tol_buffer_create(kn_kernels_context(place->kernels),
                             kind == 1 ? (bytes + 1) / 2 : bytes, 1, workspace);
}

static struct kn_place place_at(const struct choice_place *place, int buffer, size_t offset) {
    return kn_place_of(place->buffers[buffer], offset);
}

/* ---- products of matrices -------------------------------------------------------------------- */

static struct kn_matrix draw_matrix(struct choice_place *place, int buffer, size_t rows,
                                    size_t columns, size_t batch) {
    struct kn_matrix matrix = {.buffer = place->buffers[buffer], .offset = draw_gap(place)};
    matrix.leading = columns + draw_gap(place);
    if (batch > 1) matrix.batch_stride = rows * matrix.leading + draw_gap(place);
    return matrix;
}

tol_status choice_gemm(struct choice_place *place, size_t *bytes) {
    tol_status status = TOL_OK;
    struct tol_buffer *workspace = NULL;
    const enum kn_gemm_precision precision =
        (enum kn_gemm_precision)draw(place, KN_GEMM_PRECISIONS);
    const enum kn_type type = kn_gemm_input_type(precision);
    const bool is_few = draw_once_in(place, 4);
    struct kn_gemm x = {.precision = precision,
                        .c_type = draw_once_in(place, 2) ? KN_F32 : type,
                        .transpose_a = draw_once_in(place, 2),
                        .transpose_b = draw_once_in(place, 2),
                        .m = draw_size(place, is_few ? 128 : 16384),
                        .n = draw_size(place, 16384),
                        .k = draw_once_in(place, 40) ? 0 : draw_size(place, 16384),
                        .batch = draw_once_in(place, 5) ? 1 + draw(place, 70) : 0,
                        .alpha = draw_once_in(place, 30) ? 0 : 1.25f,
                        .beta = draw_beta(place)};
    if (is_few && draw_once_in(place, 2)) {
        const size_t m = x.m;
        x.m = x.n, x.n = m;
    }
    x.variant = DRAW_NAME(place, "naive", "tensor", "wgmma_128", "wgmma_256", "packed_128",
                          "async_128", "async_256", "wide_64", "vector", "gathered", "parts_128",
                          "wgmma_64_k2", "wgmma_k4", "nothing");
    x.a = draw_matrix(place, 0, x.transpose_a ? x.k : x.m, x.transpose_a ? x.m : x.k, x.batch);
    x.b = draw_matrix(place, 1, x.transpose_b ? x.n : x.k, x.transpose_b ? x.k : x.n, x.batch);
    x.c = draw_matrix(place, 2, x.m, x.n, x.batch);
    if (draw_once_in(place, 4)) x.b.batch_stride = 0;
    if (kn_gemm_workspace(place->kernels, &x, bytes) != TOL_OK) *bytes = 0;
    TOL_TRY(draw_workspace(place, *bytes, &workspace));
    x.workspace = workspace;
    status = kn_gemm(place->kernels, place->stream, &x);
out:
    tol_buffer_destroy(workspace);
    return status;
}

tol_status choice_grouped(struct choice_place *place, size_t *bytes) {
    const enum kn_grouped_type type = (enum kn_grouped_type)(KN_GROUPED_F16 + draw(place, 3));
    struct kn_grouped x = {.type = type,
                           .c_type = (enum kn_grouped_type)draw(place, KN_GROUPED_TYPES),
                           .transpose_b = !draw_once_in(place, 3),
                           .m = draw_size(place, 8192),
                           .n = draw_size(place, 8192),
                           .k = draw_once_in(place, 40) ? 0 : draw_size(place, 8192),
                           .groups = draw_once_in(place, 3) ? 0 : 1 + draw(place, 128),
                           .alpha = 1,
                           .activation = (enum kn_activation)draw(place, KN_ACTIVATIONS)};
    *bytes = 0;
    x.a = draw_matrix(place, 0, x.m, x.k, 1);
    x.b = draw_matrix(place, 1, x.transpose_b ? x.n : x.k, x.transpose_b ? x.k : x.n, 2);
    x.c = draw_matrix(place, 2, x.m, x.n, 1);
    x.begins = (struct kn_vector){.buffer = place->buffers[3]};
    if (draw_once_in(place, 2)) x.bias = (struct kn_vector){place->buffers[4], 0, x.n};
    x.variant = DRAW_NAME(place, "naive", "tensor", "wgmma_128", "wgmma_256", "wgmma_192");
    return kn_grouped(place->kernels, place->stream, &x);
}

tol_status choice_quant(struct choice_place *place, size_t *bytes) {
    const enum kn_quant quant = (enum kn_quant)draw(place, KN_QUANTS);
    const size_t columns =
        draw_once_in(place, 3) ? 1 : 1 + draw(place, draw_once_in(place, 2) ? 9 : 600);
    struct kn_quant_product x = {.quant = quant,
                                 .arithmetic =
                                     (enum kn_quant_arithmetic)draw(place, KN_QUANT_ARITHMETICS),
                                 .rows = draw_size(place, 33000),
                                 .columns = columns,
                                 .k = 256 * (1 + draw(place, draw_once_in(place, 6) ? 200 : 60))};
    if (draw_once_in(place, 20)) x.k = 0;
    x.weights = place_at(place, 0, 2 * draw_gap(place));
    x.x = place_at(place, 1, 4 * draw_gap(place));
    x.y = place_at(place, 2, 4 * draw_gap(place));
    x.x_stride = x.k + draw_gap(place);
    x.y_stride = x.rows + draw_gap(place);
    *bytes = kn_quant_product_workspace(x.arithmetic, x.columns, x.k);
    if (x.arithmetic == KN_QUANT_Q8_1 || draw_once_in(place, 2)) {
        x.workspace = place_at(place, 3, 0);
        x.workspace.bytes = draw_once_in(place, 4) ? 2 * x.columns * x.k : *bytes;
        if (x.arithmetic == KN_QUANT_Q8_1) x.workspace.bytes = *bytes;
    }
    x.variant = DRAW_NAME(place, "naive", "rows", "tensor", "wgmma", "wgmma_256", "wgmma_split",
                          "integers", "early_1", "bulk_early", "columns", "bulk", "staged_1");
    return kn_quant_product(place->kernels, place->stream, &x);
}

tol_status choice_linear(struct choice_place *place, size_t *bytes) {
    const enum kn_weight_format format = (enum kn_weight_format)draw(place, KN_WEIGHT_FORMATS);
    const size_t columns =
        draw_once_in(place, 3) ? 1 : 1 + draw(place, draw_once_in(place, 2) ? 9 : 300);
    const bool has_gate = draw_once_in(place, 3);
    struct kn_linear x = {.format = format,
                          .rows = draw_once_in(place, 2) ? 16 * (1 + draw(place, 1000))
                                                         : draw_size(place, 33000),
                          .columns = columns,
                          .k = 256 * (1 + draw(place, draw_once_in(place, 4) ? 60 : 20)),
                          .adds = !has_gate && draw_once_in(place, 3)};
    x.weights = place_at(place, 0, draw_once_in(place, 5) ? 2 : 0);
    if (has_gate) x.gate = place_at(place, 1, 0);
    if (!has_gate && draw_once_in(place, 3)) x.bias = place_at(place, 2, 0);
    x.x = place_at(place, 3, 0);
    x.y = place_at(place, 4, draw_once_in(place, 4) ? 4 : 0);
    x.x_stride = x.k + 4 * draw(place, 2);
    x.y_stride = x.rows + draw_gap(place);
    *bytes = kn_linear_workspace(x.columns, x.k);
    if (!draw_once_in(place, 4)) x.workspace = place_at(place, 5, 0);
    if (has_gate && x.rows % 256 == 0 && draw_once_in(place, 2)) {
        x.rounded = place_at(place, 6, 0);
        x.tickets = place_at(place, 7, 0);
    }
    x.variant = DRAW_NAME(place, "stay", "kept", "long", "early", "bytes", "wide", "tensor", "fma");
    return kn_linear(place->kernels, place->stream, &x);
}

/* ---- attention ------------------------------------------------------------------------------- */

static struct kn_heads draw_heads(struct choice_place *place, int buffer, size_t heads, size_t rows,
                                  size_t size) {
    struct kn_heads drawn = {.buffer = place->buffers[buffer], .offset = draw_gap(place)};
    if (draw_once_in(place, 2)) return drawn;
    drawn.row_stride = size + draw_gap(place);
    drawn.head_stride = rows * drawn.row_stride + draw_gap(place);
    drawn.batch_stride = heads * drawn.head_stride + draw_gap(place);
    return drawn;
}

static struct kn_attention draw_attention(struct choice_place *place) {
    static const size_t sizes[] = {64, 80, 96, 128, 256, 64, 128, 32, 40, 112, 100, 160, 200, 208};
    const size_t group = draw_once_in(place, 2) ? 1 : (size_t)1 << draw(place, 5);
    const bool is_decode = draw_once_in(place, 3);
    struct kn_attention x = {.type = (enum kn_type)draw(place, KN_TYPES),
                             .batch = 1 + draw(place, 8),
                             .kv_heads = 1 + draw(place, 16),
                             .q_length = draw_size(place, is_decode ? 9 : 4096),
                             .kv_length = draw_size(place, 16384),
                             .head_size = sizes[draw(place, sizeof sizes / sizeof sizes[0])],
                             .causal = draw_once_in(place, 2)};
    x.heads = x.kv_heads * group;
    if (x.causal && draw_once_in(place, 3)) x.window = draw_size(place, 4096);
    x.q = draw_heads(place, 0, x.heads, x.q_length, x.head_size);
    x.k = draw_heads(place, 1, x.kv_heads, x.kv_length, x.head_size);
    x.v = draw_heads(place, 2, x.kv_heads, x.kv_length, x.head_size);
    x.out = draw_heads(place, 3, x.heads, x.q_length, x.head_size);
    if (draw_once_in(place, 2)) x.lse = place->buffers[4];
    return x;
}

tol_status choice_attention(struct choice_place *place, size_t *bytes) {
    tol_status status = TOL_OK;
    struct tol_buffer *workspace = NULL;
    struct kn_attention x = draw_attention(place);
    x.variant = DRAW_NAME(place, "naive", "tiled", "tensor", "wgmma", "decode", "grouped");
    if (kn_attention_workspace(place->kernels, &x, bytes) != TOL_OK) *bytes = 0;
    TOL_TRY(draw_workspace(place, *bytes, &workspace));
    x.workspace = workspace;
    status = kn_attention(place->kernels, place->stream, &x);
out:
    tol_buffer_destroy(workspace);
    return status;
}

tol_status choice_backward(struct choice_place *place, size_t *bytes) {
    tol_status status = TOL_OK;
    struct tol_buffer *workspace = NULL;
    struct kn_attention_backward x = {.forward = draw_attention(place)};
    struct kn_attention *f = &x.forward;
    if (!draw_once_in(place, 3)) f->head_size = draw_once_in(place, 2) ? 64 : 128;
    f->q = f->k = f->v = f->out = (struct kn_heads){0};
    f->q.buffer = place->buffers[0], f->k.buffer = place->buffers[1];
    f->v.buffer = place->buffers[2], f->out.buffer = place->buffers[3];
    if (draw_once_in(place, 5)) f->q.offset = 1;
    f->lse = place->buffers[4];
    x.d_out.buffer = place->buffers[5], x.d_q.buffer = place->buffers[6];
    x.d_k.buffer = place->buffers[7], x.d_v.buffer = place->buffers[8];
    x.variant = DRAW_NAME(place, "naive", "tensor", "wgmma", "ordered");
    *bytes = draw_once_in(place, 2) ? kn_attention_backward_workspace(f)
                                    : kn_attention_backward_workspace_of(&x);
    if (*bytes == 0 || *bytes > (size_t)1 << 40) *bytes = 1;
    TOL_TRY(tol_buffer_create(kn_kernels_context(place->kernels), *bytes, 1, &workspace));
    x.workspace = workspace;
    status = kn_attention_backward(place->kernels, place->stream, &x);
out:
    tol_buffer_destroy(workspace);
    return status;
}

tol_status choice_packed(struct choice_place *place, size_t *bytes) {
    struct kn_attention_packed x = {.attention = draw_attention(place)};
    *bytes = 0;
    x.q_rows = x.attention.batch * x.attention.q_length;
    x.kv_rows = x.attention.batch * x.attention.kv_length;
    x.attention.q.head_stride *= x.attention.batch,
        x.attention.out.head_stride *= x.attention.batch;
    x.attention.k.head_stride *= x.attention.batch, x.attention.v.head_stride *= x.attention.batch;
    x.q_begins = place->buffers[5], x.kv_begins = place->buffers[6];
    x.variant = DRAW_NAME(place, "naive", "tensor", "wgmma");
    return kn_attention_packed(place->kernels, place->stream, &x);
}

tol_status choice_paged(struct choice_place *place, size_t *bytes) {
    struct kn_attention_paged x = {.attention = draw_attention(place), .page_positions = 64};
    const size_t element = kn_type_bytes(x.attention.type);
    *bytes = 0;
    x.q_rows = x.attention.batch * x.attention.q_length;
    x.attention.q.head_stride *= x.attention.batch,
        x.attention.out.head_stride *= x.attention.batch;
    x.pages_max = x.attention.kv_length / 64 + 1;
    x.q_begins = place_at(place, 5, 0);
    x.positions = place_at(place, 6, 0);
    x.slots = place_at(place, 7, 0);
    x.tables = place_at(place, 8, 0);
    x.k.at = draw_once_in(place, 6) ? element : 0;
    x.v.at = x.k.at + x.attention.kv_heads * 64 * x.attention.head_size * element;
    if (draw_once_in(place, 2)) {
        x.pool = place_at(place, 9, 0);
        x.pool.bytes = (size_t)1 << 34;
    }
    x.variant = DRAW_NAME(place, "naive", "tensor", "wgmma");
    return kn_attention_paged(place->kernels, place->stream, &x);
}

tol_status choice_e4m3(struct choice_place *place, size_t *bytes) {
    struct kn_attention_e4m3 x = {.attention = draw_attention(place)};
    *bytes = 0;
    if (x.attention.type == KN_F32) x.attention.type = KN_BF16;
    if (draw_once_in(place, 2)) x.q_scales = place_at(place, 5, 0);
    x.variant = DRAW_NAME(place, "naive", "wgmma");
    return kn_attention_e4m3(place->kernels, place->stream, &x);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static struct kn_rows draw_rows(struct choice_place *place, int buffer, size_t columns) {
    return (struct kn_rows){place->buffers[buffer], draw_gap(place), columns + draw_gap(place)};
}

tol_status choice_softmax(struct choice_place *place, size_t *bytes) {
    struct kn_softmax x = {.type = (enum kn_type)draw(place, KN_TYPES),
                           .rows = draw_size(place, 40000),
                           .columns = draw_size(place, draw_once_in(place, 3) ? 300000 : 20000)};
    *bytes = 0;
    x.in = draw_rows(place, 0, x.columns);
    x.out = draw_rows(place, 1, x.columns);
    if (draw_once_in(place, 4)) x.mask = draw_rows(place, 2, x.columns);
    x.variant = DRAW_NAME(place, "naive", "online", "registers", "whole", "slices_1", "behind_2");
    return kn_softmax(place->kernels, place->stream, &x);
}

tol_status choice_norm(struct choice_place *place, size_t *bytes) {
    const enum kn_type type = (enum kn_type)draw(place, KN_TYPES);
    struct kn_norm x = {.kind = draw_once_in(place, 2) ? KN_LAYERNORM : KN_RMSNORM,
                        .type = type,
                        .rows = draw_size(place, 40000),
                        .columns = draw_size(place, draw_once_in(place, 3) ? 300000 : 20000),
                        .affine_type = draw_once_in(place, 2) ? KN_F32 : type,
                        .epsilon = 1e-5f};
    *bytes = 0;
    x.in = draw_rows(place, 0, x.columns);
    x.out = draw_rows(place, 1, x.columns);
    if (!draw_once_in(place, 4)) x.weight = draw_rows(place, 2, x.columns);
    if (draw_once_in(place, 2)) x.bias = draw_rows(place, 3, x.columns);
    x.variant = DRAW_NAME(place, "naive", "registers", "whole", "early", "ahead", "slices_2");
    return kn_norm(place->kernels, place->stream, &x);
}

tol_status choice_argmax(struct choice_place *place, size_t *bytes) {
    struct kn_argmax x = {.type = (enum kn_type)draw(place, KN_TYPES),
                          .rows = draw_size(place, 40000),
                          .columns = draw_size(place, draw_once_in(place, 3) ? 300000 : 20000)};
    *bytes = 0;
    x.in = draw_rows(place, 0, x.columns);
    x.out = draw_rows(place, 1, 1);
    x.variant = DRAW_NAME(place, "block", "warp", "whole");
    return kn_argmax(place->kernels, place->stream, &x);
}

tol_status choice_top_k(struct choice_place *place, size_t *bytes) {
    struct kn_top_k x = {.type = (enum kn_type)draw(place, KN_TYPES),
                         .rows = draw_size(place, 4000),
                         .columns = draw_size(place, draw_once_in(place, 3) ? 300000 : 20000)};
    *bytes = 0;
    x.k = 1 + draw(place, draw_once_in(place, 3) ? KN_TOP_K_MOST : 64);
    if (x.k > x.columns) x.k = x.columns;
    x.in = draw_rows(place, 0, x.columns);
    if (draw_once_in(place, 2)) x.values = draw_rows(place, 1, x.k);
    x.indices = draw_rows(place, 2, x.k);
    x.variant = DRAW_NAME(place, "block", "warp", "pass");
    return kn_top_k(place->kernels, place->stream, &x);
}
