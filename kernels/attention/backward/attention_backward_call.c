/*
 * The call of attention's backward pass: checks a problem, picks a kernel, and launches it between
 * its prologue and, for "ordered", its epilogue.
 */
#include "attention/backward/attention_backward_maps.h"
#include "attention/backward/attention_backward_variants.h"
#include "attention/forward/attention_launch.h"
#include "core/check.h"
#include "operand.h"

#include <assert.h>

static bool keeps_sums(const struct kn_variant *variant) {
    return (variant->needs & ATTENTION_TO_SUMS) != 0;
}

/* A block for each tile of keys and each tile of rows, or of keys alone if blocks add to rows in
 * turn. "naive" has a warp for each row and each key. */
static tol_status shape_main(const struct kn_variant *variant,
                             struct attention_backward_problem *problem,
                             struct tol_launch_shape *shape) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &problem->backward->forward;
    const bool is_tiled = variant->tile[0] != 0;
    const size_t tile = is_tiled ? variant->tile[0] : 1;
    const size_t k_tiles = (x->kv_length + tile - 1) / tile;
    const size_t q_tiles = (x->q_length + tile - 1) / tile;
    size_t count = 0;
    const bool fits = kn_add_product(&count, x->batch * x->kv_heads, k_tiles) &&
                      (keeps_sums(variant) || kn_add_product(&count, x->batch * x->heads, q_tiles));
    if (is_tiled) {
        problem->arguments.k_tiles = (int)k_tiles, problem->arguments.q_tiles = (int)q_tiles;
    } else {
        count = count / ATTENTION_WARPS + (count % ATTENTION_WARPS != 0);
    }
    TOL_CHECK(fits && count <= INT32_MAX, TOL_OVER_LIMIT, "%zu blocks for the variant %s", count,
              variant->name);
    *shape = (struct tol_launch_shape){.grid_x = (unsigned)count,
                                       .grid_y = 1,
                                       .grid_z = 1,
                                       .block_x = variant->threads,
                                       .block_y = is_tiled ? 1 : ATTENTION_WARPS,
                                       .block_z = 1,
                                       .shared_bytes = variant->shared_bytes};
    assert(shape->grid_x > 0 && (!is_tiled || (k_tiles > 0 && q_tiles > 0)));
out:
    return status;
}

/* The launch of a kernel over the rows of q of all heads: a block has `rows` of them. */
static tol_status find_beside(struct kn_kernels *kernels, const char *name, unsigned rows,
                              const struct attention_backward_problem *problem,
                              struct attention_launch *launch) {
    const struct attention_backward_arguments *a = &problem->arguments;
    const struct kn_variant *variant = NULL;
    const tol_status status = kn_kernels_pick(kernels, &kn_attention_backward_beside, name, problem,
                                              &variant, &launch->kernel);
    if (status != TOL_OK) return status;
    launch->shape =
        (struct tol_launch_shape){.grid_x = (unsigned)a->figures_pitch / rows,
                                  .grid_y = (unsigned)a->x.heads,
                                  .grid_z = (unsigned)a->x.batch,
                                  .block_x = variant->threads,
                                  .block_y = rows == ATTENTION_WARPS ? ATTENTION_WARPS : 1,
                                  .block_z = 1};
    assert(launch->shape.grid_x > 0);
    return TOL_OK;
}

/* The prologue of a variant, and its epilogue if it has one. */
static tol_status find_prologue(struct kn_kernels *kernels, const struct kn_variant *variant,
                                const struct attention_backward_problem *problem,
                                struct attention_launch *prologue,
                                struct attention_launch *epilogue) {
    enum { TURN = ATTENTION_TURN_ROWS };
    if (!keeps_sums(variant)) {
        return find_beside(kernels, "figures", ATTENTION_WARPS, problem, prologue);
    }
    const tol_status status = find_beside(kernels, "begin", TURN, problem, prologue);
    return status == TOL_OK ? find_beside(kernels, "finish", TURN, problem, epilogue) : status;
}

static tol_status launch_main(struct kn_kernels *kernels, struct tol_stream *stream,
                              const struct kn_variant *variant, struct attention_launch *launch,
                              struct attention_backward_problem *problem) {
    tol_status status = TOL_OK;
    CUtensorMap maps[ATTENTION_BACKWARD_MAPS];
    if ((variant->needs & ATTENTION_BY_MAPS) != 0) {
        TOL_TRY(attention_backward_maps_make(kn_kernels_context(kernels), problem, maps));
        launch->maps = maps, launch->map_count = ATTENTION_BACKWARD_MAPS;
    }
    status = attention_launch(stream, launch, &problem->arguments, sizeof problem->arguments);
out:
    return status;
}

tol_status kn_attention_backward(struct kn_kernels *kernels, struct tol_stream *stream,
                                 const struct kn_attention_backward *b) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    struct attention_launch launch = {0}, prologue = {0}, epilogue = {0};
    struct attention_backward_problem problem = {.backward = b};
    struct attention_backward_arguments *a = &problem.arguments;
    TOL_CHECK(kernels != NULL && stream != NULL, TOL_INVALID_ARGUMENT,
              "attention's backward pass needs a set of kernels and a stream");
    TOL_TRY(attention_backward_check(b, &problem));
    if (b->forward.batch == 0 || b->forward.heads == 0) return TOL_OK;
    problem.has_maps = kn_tensor_map_has(kn_kernels_context(kernels));
    TOL_TRY(kn_kernels_choose(kernels, &kn_attention_backward_variants,
                              (struct kn_wish){b->variant, b->variants}, NULL, &problem, &variant,
                              &launch.kernel));
    TOL_TRY(find_prologue(kernels, variant, &problem, &prologue, &epilogue));
    TOL_TRY(shape_main(variant, &problem, &launch.shape));
    TOL_TRY(attention_launch(stream, &prologue, a, sizeof *a));
    TOL_TRY(launch_main(kernels, stream, variant, &launch, &problem));
    if (epilogue.kernel != NULL) status = attention_launch(stream, &epilogue, a, sizeof *a);
out:
    return status;
}
