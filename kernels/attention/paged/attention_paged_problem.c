/*
 * Checks a problem of attention over paged sequences.
 */
#include "attention/paged/attention_paged_problem.h"

#include "core/check.h"

#include <assert.h>

enum { PIECE = 8, UNITS_MAX = INT32_MAX };

static tol_status paged_problem_check_part(const struct kn_attention_paged *p, const char *name,
                                           const struct kn_paged_part *part,
                                           struct attention_strides *strides, long long *at,
                                           long long *piece) {
    enum { STRIDE_MAX = 1 << 30 };
    tol_status status = TOL_OK;
    const size_t element = kn_type_bytes(p->attention.type), size = p->attention.head_size;
    TOL_CHECK(part->at % element == 0 && part->at <= UINT32_MAX && part->head_stride < STRIDE_MAX &&
                  part->row_stride < STRIDE_MAX && part->piece_stride < STRIDE_MAX,
              TOL_INVALID_ARGUMENT,
              "%s at byte %zu of a page, heads, rows and pieces %zu, %zu and %zu elements apart",
              name, part->at, part->head_stride, part->row_stride, part->piece_stride);
    *strides =
        (struct attention_strides){0, (long long)part->head_stride, (long long)part->row_stride};
    if (part->head_stride == 0 && part->row_stride == 0) {
        strides->row = (long long)size;
        strides->head = (long long)(p->page_positions * size);
    }
    *at = (long long)part->at;
    *piece = part->piece_stride != 0 ? (long long)part->piece_stride : PIECE;
out:
    return status;
}

static bool part_is_aligned(const struct kn_attention_paged *p,
                            const struct attention_strides *strides, long long at,
                            long long piece) {
    const long long element = (long long)kn_type_bytes(p->attention.type);
    return at % 16 == 0 && strides->row * element % 16 == 0 && strides->head * element % 16 == 0 &&
           piece * element % 16 == 0;
}

static tol_status paged_problem_check_places(const struct kn_attention_paged *p,
                                             const struct attention_paged_problem *problem) {
    tol_status status = TOL_OK;
    const size_t numbers = p->attention.batch * sizeof(int32_t);
    const struct attention_problem *rows = &problem->rows;
    TOL_TRY(attention_check_place(rows, "q_begins", p->q_begins, numbers + sizeof(int32_t), 4));
    TOL_TRY(attention_check_place(rows, "positions", p->positions, numbers, 4));
    TOL_TRY(attention_check_place(rows, "slots", p->slots, numbers, 4));
    TOL_TRY(attention_check_place(rows, "tables", p->tables, p->pages_max * sizeof(uint64_t), 8));
    if (p->pool.address == 0) return TOL_OK;
    status = attention_check_place(rows, "pool", p->pool, p->pool.bytes, 1);
out:
    return status;
}

/* The bytes from the beginning of a page to the end of a part of it. */
static size_t part_end(const struct attention_paged_problem *problem, long long at,
                       const struct attention_strides *by) {
    const struct kn_attention *x = &problem->whole;
    const size_t elements = (x->kv_heads - 1) * (size_t)by->head +
                            (problem->paged->page_positions - 1) * (size_t)by->row + x->head_size;
    return (size_t)at + elements * kn_type_bytes(x->type);
}

/* The units of the pool at which a page may begin; 0: there is no pool, or no page fits. */
static long long count_units(const struct attention_paged_problem *problem) {
    const struct attention_paged_arguments *a = &problem->arguments;
    const struct kn_place *pool = &problem->paged->pool;
    const size_t k = part_end(problem, a->k_at, &a->x.k_strides);
    const size_t v = part_end(problem, a->v_at, &a->x.v_strides);
    const size_t page = k > v ? k : v;
    if (pool->address == 0 || pool->bytes < page) return 0;
    const size_t units = (pool->bytes - page) / ATTENTION_PAGE_UNIT + 1;
    return units < UNITS_MAX ? (long long)units : 0;
}

static int shift_of(size_t page_positions) {
    int shift = 0;
    while ((size_t)1 << shift < page_positions) shift++;
    return shift;
}

/* The rows of all sequences as one problem without keys: for its checks, addresses and strides. */
static tol_status paged_problem_check_rows(const struct kn_attention_paged *p,
                                           struct attention_paged_problem *problem) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &p->attention;
    struct kn_attention *whole = &problem->whole;
    *whole = *x;
    whole->batch = 1, whole->q_length = p->q_rows, whole->kv_length = 0;
    whole->q.batch_stride = whole->out.batch_stride = 0;
    whole->workspace = NULL, whole->variant = NULL, whole->variants = NULL;
    TOL_TRY(attention_check(whole, 0, &problem->rows));
    TOL_CHECK(x->batch <= ATTENTION_GRID_YZ_MAX && x->kv_length < ATTENTION_LENGTH_MAX,
              TOL_OVER_LIMIT, "%zu sequences, and %zu positions of the longest", x->batch,
              x->kv_length);
    TOL_CHECK(x->q_length <= p->q_rows, TOL_OUT_OF_RANGE, "a sequence of %zu rows, of %zu in all",
              x->q_length, p->q_rows);
    TOL_CHECK(p->page_positions >= KN_PAGE_POSITIONS_MIN &&
                  p->page_positions <= KN_PAGE_POSITIONS_MAX &&
                  (p->page_positions & (p->page_positions - 1)) == 0,
              TOL_INVALID_ARGUMENT, "a page of %zu positions, no power of two from %d to %d",
              p->page_positions, KN_PAGE_POSITIONS_MIN, KN_PAGE_POSITIONS_MAX);
    TOL_CHECK(p->pages_max <= INT32_MAX && x->kv_length <= p->pages_max * p->page_positions,
              TOL_OUT_OF_RANGE, "a sequence of %zu positions, and %zu pages of %zu", x->kv_length,
              p->pages_max, p->page_positions);
    whole->kv_length = x->kv_length; /* what variants may refuse */
out:
    return status;
}

tol_status attention_paged_check(const struct kn_attention_paged *p,
                                 struct attention_paged_problem *problem) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &p->attention;
    struct attention_arguments *rows = &problem->rows.arguments;
    problem->paged = p;
    TOL_TRY(paged_problem_check_rows(p, problem));
    struct attention_paged_arguments *a = &problem->arguments;
    TOL_TRY(paged_problem_check_part(p, "k", &p->k, &rows->k_strides, &a->k_at, &a->k_piece));
    TOL_TRY(paged_problem_check_part(p, "v", &p->v, &rows->v_strides, &a->v_at, &a->v_piece));
    problem->is_aligned = part_is_aligned(p, &rows->k_strides, a->k_at, a->k_piece) &&
                          part_is_aligned(p, &rows->v_strides, a->v_at, a->v_piece);
    if (x->batch == 0 || x->heads == 0 || p->q_rows == 0) goto out;
    TOL_TRY(paged_problem_check_places(p, problem));
    rows->kv_length = (int)x->kv_length;
    rows->window = x->window != 0 && x->window < x->kv_length ? (int)x->window : rows->kv_length;
    a->x = *rows;
    a->x.batch = (int)x->batch, a->x.q_length = (int)x->q_length;
    a->q_begins = p->q_begins.address, a->positions = p->positions.address;
    a->slots = p->slots.address, a->tables = p->tables.address;
    a->pages_max = (long long)p->pages_max;
    a->pool = p->pool.address, a->units = count_units(problem);
    a->q_rows = (int)p->q_rows, a->page_shift = shift_of(p->page_positions);
    assert((size_t)1 << a->page_shift == p->page_positions && a->units >= 0);
out:
    return status;
}
