/*
 * The maps as attention_paged_hopper.cuh reads them. Those of q and out are as attention_maps.c has
 * them. Those of k and v describe a page at each unit of the pool, whether one begins there or not,
 * so their groups overlap: the elements of a row, the rows and heads of a page, and pages. A box is
 * 64 elements of the rows of a page, or of a tile of keys if that has fewer.
 */
#include "attention/paged/attention_paged_maps.h"

#include "core/check.h"

static bool page_serves(const struct attention_paged_problem *problem,
                        const struct attention_strides *by) {
    const struct kn_attention *x = &problem->whole;
    return by->row > 0 && kn_tensor_map_takes(x->type, by->row) &&
           (x->kv_heads <= 1 || (by->head > 0 && kn_tensor_map_takes(x->type, by->head)));
}

const char *attention_paged_maps_refuse(const struct attention_paged_problem *problem,
                                        size_t head_size) {
    const struct attention_paged_arguments *a = &problem->arguments;
    const char *clause = attention_maps_refuse(&problem->rows, head_size);
    if (clause != NULL) return clause;
    if (a->k_piece != 8 || a->v_piece != 8) return "keys or values are stored in pieces";
    if (!problem->is_aligned) return "a row does not begin at a multiple of 16 bytes";
    if (problem->paged->pool.address == 0) return "it is not known in which pool the pages lie";
    if (problem->paged->pool.address % 16 != 0 || a->units == 0 ||
        !page_serves(problem, &a->x.k_strides) || !page_serves(problem, &a->x.v_strides)) {
        return "no tensor maps can be made of the pool";
    }
    return NULL;
}

static tol_status make_pages(struct tol_context *context,
                             const struct attention_paged_problem *problem, const char *name,
                             long long at, const struct attention_strides *by, CUtensorMap *map) {
    const struct kn_attention *x = &problem->whole;
    const size_t keys = (size_t)attention_box_keys(x), rows = problem->paged->page_positions;
    const struct kn_tensor tensor = {.name = name,
                                     .address = problem->paged->pool.address + (CUdeviceptr)at,
                                     .type = x->type,
                                     .columns = (int)x->head_size,
                                     .rows = (int)rows,
                                     .matrices = (int)x->kv_heads,
                                     .leading = by->row,
                                     .stride = by->head,
                                     .groups = (int)problem->arguments.units,
                                     .group_stride =
                                         (long long)(ATTENTION_PAGE_UNIT / kn_type_bytes(x->type)),
                                     .box_rows = (int)(rows < keys ? rows : keys)};
    return kn_tensor_map_make(context, &tensor, map);
}

tol_status attention_paged_maps_make(struct tol_context *context,
                                     const struct attention_paged_problem *problem,
                                     CUtensorMap maps[ATTENTION_MAPS]) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &problem->whole;
    const struct attention_paged_arguments *a = &problem->arguments;
    const size_t rows = x->q_length;
    const struct attention_tensor q = {"paged attention's q", a->x.q, &a->x.q_strides, x->heads,
                                       rows};
    const struct attention_tensor out = {"paged attention's out", a->x.out, &a->x.out_strides,
                                         x->heads, rows};
    TOL_TRY(
        attention_tensor_make(context, x, &q, ATTENTION_BOX_ROWS, false, &maps[ATTENTION_MAP_Q]));
    TOL_TRY(attention_tensor_make(context, x, &out, ATTENTION_BOX_ROWS, false,
                                  &maps[ATTENTION_MAP_OUT]));
    TOL_TRY(make_pages(context, problem, "paged attention's k", a->k_at, &a->x.k_strides,
                       &maps[ATTENTION_MAP_K]));
    status = make_pages(context, problem, "paged attention's v", a->v_at, &a->x.v_strides,
                        &maps[ATTENTION_MAP_V]);
out:
    return status;
}
