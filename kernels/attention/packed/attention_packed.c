/*
 * The host's side of attention over packed sequences, and the table of its kernels.
 */
#include "attention/packed/attention_packed.h"

#include "attention/attention_table.h"
#include "attention/forward/attention_launch.h"
#include "attention/forward/attention_maps.h"
#include "attention/packed/attention_packed_arguments.h"
#include "core/check.h"

#include <assert.h>

KN_IMAGES(attention_packed_1_naive);
KN_IMAGES(attention_packed_2_tensor);
KN_IMAGES(attention_packed_3_hopper);
KN_IMAGES(attention_packed_defects);

/* ---- the table ------------------------------------------------------------------------------- */

/* The problem is that of the rows of all sequences. */
static const char *packed_refuse(const struct kn_variant *row, const void *data) {
    const struct attention_problem *problem = data;
    const struct kn_attention *x = problem->attention;
    const char *why = attention_row_refuse(row, x->type, x->head_size, problem->is_aligned);
    if (why != NULL || (row->needs & ATTENTION_BY_MAPS) == 0) return why;
    return attention_maps_refuse(problem, row->size);
}

static const struct kn_variant variants[] = {
#define PACKED(...) ATTENTION_ROWS(attention_packed, packed_refuse, NULL, __VA_ARGS__)
#include "attention/attention_table.def"
#undef PACKED
};
const struct kn_variants kn_attention_packed_variants = {
    "attention over packed sequences", variants, sizeof variants / sizeof variants[0]};

#define DEFECT(which)                                                                              \
    ATTENTION_DEFECT(attention_packed, packed_refuse, which, defects, 90, F16, 64, MAPS, HOPPER)
static const struct kn_variant defects[] = {DEFECT(next_key_seen) DEFECT(next_values_kept)
                                                DEFECT(next_rows_written) DEFECT(next_lse_written)};
const struct kn_variants kn_attention_packed_defects = {
    "defects of attention over packed sequences", defects, sizeof defects / sizeof defects[0]};

/* ---- checks ---------------------------------------------------------------------------------- */

/* The rows of all sequences as one problem: for its checks, addresses and strides. */
static struct kn_attention attention_packed_whole_of(const struct kn_attention_packed *p) {
    struct kn_attention whole = p->attention;
    whole.batch = 1, whole.q_length = p->q_rows, whole.kv_length = p->kv_rows;
    whole.q.batch_stride = whole.k.batch_stride = 0;
    whole.v.batch_stride = whole.out.batch_stride = 0;
    whole.workspace = NULL, whole.variant = NULL, whole.variants = NULL;
    return whole;
}

/* All of out's buffer counts as written. */
static tol_status check_begins(const struct kn_attention_packed *p,
                               struct attention_problem *problem) {
    tol_status status = TOL_OK;
    problem->written[0] = attention_span_of_buffer("out", p->attention.out.buffer);
    const struct tol_buffer *const both[] = {p->q_begins, p->kv_begins};
    static const char *const names[] = {"q_begins", "kv_begins"};
    for (int i = 0; i < 2; i++) {
        TOL_CHECK(both[i] != NULL, TOL_INVALID_ARGUMENT, "%s is missing", names[i]);
        TOL_TRY(attention_check_place(problem, names[i], kn_place_of(both[i], 0),
                                      (p->attention.batch + 1) * sizeof(int32_t), 4));
    }
out:
    return status;
}

static tol_status packed_check(const struct kn_attention_packed *p,
                               const struct kn_attention *whole,
                               struct attention_problem *problem) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &p->attention;
    TOL_TRY(attention_check(whole, 0, problem));
    TOL_CHECK(x->batch <= ATTENTION_GRID_YZ_MAX, TOL_OVER_LIMIT, "%zu sequences", x->batch);
    TOL_CHECK(x->q_length <= p->q_rows && x->kv_length <= p->kv_rows, TOL_OUT_OF_RANGE,
              "a sequence of %zu rows and %zu keys, of %zu and %zu in all", x->q_length,
              x->kv_length, p->q_rows, p->kv_rows);
    if (x->batch > 0 && x->heads > 0 && p->q_rows > 0) TOL_TRY(check_begins(p, problem));
out:
    return status;
}

/* ---- the call -------------------------------------------------------------------------------- */

tol_status kn_attention_packed(struct kn_kernels *kernels, struct tol_stream *stream,
                               const struct kn_attention_packed *p) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    CUtensorMap maps[ATTENTION_MAPS];
    struct attention_launch launch = {.maps = maps};
    struct attention_problem problem = {0};
    TOL_CHECK(kernels != NULL && stream != NULL && p != NULL, TOL_INVALID_ARGUMENT,
              "attention over packed sequences needs a set of kernels, a stream and a problem");
    const struct kn_attention *x = &p->attention, whole = attention_packed_whole_of(p);
    TOL_TRY(packed_check(p, &whole, &problem));
    if (x->batch == 0 || x->heads == 0 || x->q_length == 0) return TOL_OK;
    problem.has_maps = kn_tensor_map_has(kn_kernels_context(kernels));
    TOL_TRY(kn_kernels_choose(kernels, &kn_attention_packed_variants,
                              (struct kn_wish){p->variant, p->variants}, NULL, &problem, &variant,
                              &launch.kernel));
    if ((variant->needs & ATTENTION_BY_MAPS) != 0) {
        TOL_TRY(attention_maps_make(kn_kernels_context(kernels), &problem, false, maps));
        launch.map_count = ATTENTION_MAPS;
    }
    struct attention_packed_arguments arguments = {.x = problem.arguments,
                                                   .q_begins = tol_buffer_address(p->q_begins),
                                                   .kv_begins = tol_buffer_address(p->kv_begins),
                                                   .q_rows = (int)p->q_rows,
                                                   .kv_rows = (int)p->kv_rows};
    arguments.x.batch = (int)x->batch, arguments.x.q_length = (int)x->q_length;
    arguments.x.kv_length = (int)x->kv_length;
    assert(arguments.x.q_length <= arguments.q_rows && arguments.x.kv_length <= arguments.kv_rows);
    launch.shape = attention_tiles(variant, x);
    status = attention_launch(stream, &launch, &arguments, sizeof arguments);
out:
    return status;
}
